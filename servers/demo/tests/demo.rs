//! The demonstration server, made of functions in a crate that has the framework without its facade.

use serde_json::{Value, json};
use tidegate_builtin::Host;
use tidegate_protocol::{Json, Method, Params};
use tidegate_server::Profile;
use tidegate_service::{Call, Context, Door, Reply};

async fn ask(door: &impl Door, method: Method, params: Value) -> Value {
    let params = Params::parse(&Json::from(params), &Default::default()).unwrap();
    match door.answer(Call::new(method, params, Context::local())).await {
        Ok(Reply::Complete(result)) => result.to().unwrap(),
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn it_offers_a_tool_of_each_kind() {
    let door = tidegate_demo::server(&tidegate_demo::Settings::default(), Profile::Strict);
    let listed = ask(&door, Method::ToolsList, json!({})).await;
    let names: Vec<&str> =
        listed["tools"].as_array().unwrap().iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, ["echo", "add", "count", "greet"]);
    let count = &listed["tools"][2];
    assert_eq!(
        (&count["title"], &count["description"]),
        (&json!("Count"), &json!("Counts slowly and tells how far it is"))
    );
    assert_eq!(count["annotations"]["readOnlyHint"], true);
    let to = &count["inputSchema"]["properties"]["to"];
    assert_eq!((&to["minimum"], &to["maximum"]), (&json!(1), &json!(100)));
    assert_eq!(count["inputSchema"]["properties"].get("pace"), None, "that is ours, not the caller's");
    let sum = ask(&door, Method::ToolsCall, json!({"name": "add", "arguments": {"a": 1, "b": 2.5}})).await;
    assert_eq!(sum["structuredContent"], json!({"sum": 3.5}));
}

#[tokio::test]
async fn as_part_of_a_program_it_is_opened_when_somebody_calls() {
    let running = tidegate_demo::builtin().start("trial", None, Host::default());
    let called = json!({"name": "echo", "arguments": {"message": "ahoy"}});
    let said = ask(&running, Method::ToolsCall, called.clone()).await;
    assert_eq!(said["content"][0]["text"], "ahoy");
    let closed = tidegate_demo::builtin().start("trial", None, Host::default());
    closed.clone().close().await;
    let told = closed.open().await.unwrap_err();
    assert_eq!(told.message(), "The demo is closed");
}
