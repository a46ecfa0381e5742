//! What a server refuses before anything else looks at it, and what it understands without listing it.

mod common;

use common::{Client, error_code, text_of};
use serde_json::{Value, json};
use tidegate_server::{
    Cx, Prompt, PromptArgs, Resource, ResourceTemplate, Server, ServerDoor, Symbol, Tool, ToolError, Vars,
};

fn door() -> ServerDoor {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Args {
        #[serde(rename = "n")]
        _n: u32,
    }
    Server::new("s", "1")
        .tool(Tool::new("t").handler(|_: Args, _cx: Cx| async { "done" }))
        .prompt(Prompt::new("p").handler(|_: PromptArgs, _cx: Cx| async { Ok("") }))
        .resource(Resource::text("x:1", "x", ""))
        .resource_template(ResourceTemplate::new("y:{a}", "y").reader(|_: Vars, _cx: Cx| async { Ok("y") }))
        .resource_template(
            ResourceTemplate::new("y:{a}{?b}", "y").reader(|_: Vars, _cx: Cx| async { Ok("y") }).unlisted(),
        )
        .admit(|call| match &call.context.principal.subject {
            Some(subject) if &**subject == "eve" => Err(ToolError::new(Symbol::TenantNotFound, "No")),
            _ => Ok(()),
        })
        .may_watch(|principal, uri| principal.subject.is_some() || uri != "x:2")
        .build()
}

#[tokio::test]
async fn every_call_is_looked_at_first() {
    let (eve, ann) = (Client::modern(&door()).named("eve"), Client::modern(&door()).named("ann"));
    let refused = eve.tool("t", json!({"n": "no number"})).await;
    assert_eq!((text_of(&refused), &refused["isError"]), (Some("No"), &json!(true)), "before its arguments");
    for (method, params) in [
        ("tools/list", json!({})),
        ("prompts/get", json!({"name": "p"})),
        ("resources/read", json!({"uri": "x:1"})),
        ("resources/list", json!({})),
        ("subscriptions/listen", json!({"notifications": {}})),
    ] {
        let refused = eve.request(method, params.clone()).await;
        assert_eq!(error_code(&refused), Some(-32602), "{method}: {refused}");
        if method != "subscriptions/listen" {
            assert_eq!(error_code(&ann.request(method, params).await), None, "{method}");
        }
    }
    assert_eq!(ann.tool_text("t", json!({"n": 1})).await, "done");
}

#[tokio::test]
async fn some_resources_are_not_for_everybody_to_watch() {
    let wanted = || json!({"resourceSubscriptions": ["x:1", "x:2"]});
    let some = Client::modern(&door()).listen(wanted()).await;
    assert_eq!(some.acknowledged.to::<Value>().unwrap(), json!({"resourceSubscriptions": ["x:1"]}));
    let all = Client::modern(&door()).named("ann").listen(wanted()).await;
    assert_eq!(all.acknowledged.to::<Value>().unwrap(), wanted());
}

#[tokio::test]
async fn a_template_that_is_not_listed_is_understood() {
    let client = Client::modern(&door());
    let listed = client.request("resources/templates/list", json!({})).await;
    let all = listed["resourceTemplates"].as_array().unwrap();
    assert_eq!(all.iter().map(|one| &one["uriTemplate"]).collect::<Vec<_>>(), ["y:{a}"]);
    for uri in ["y:1", "y:1?b=2"] {
        let read = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["contents"][0]["text"], "y", "{uri}: {read}");
    }
}

#[tokio::test]
async fn a_call_in_the_callers_name_is_part_of_the_callers() {
    use std::sync::{Arc, Mutex};

    use tidegate_protocol::{Json, Limits, Method, Params};
    use tidegate_service::{Call, Context, Door, Held};

    let noted = Arc::new(Mutex::new(None));
    let note = noted.clone();
    let tool = Tool::new("t").handler(move |_: (), cx: Cx| {
        *note.lock().unwrap() = Some(cx.on_behalf());
        async { "done" }
    });
    let server = Server::new("s", "1").tool(tool).build();
    let params = Params::parse(&Json::trusted(r#"{"name":"t"}"#), &Limits::default()).unwrap();
    let mut context = Context::local();
    context.extensions.insert(Arc::new(Held(Box::new([7]))));
    let _ = server.answer(Call::new(Method::ToolsCall, params, context)).await;
    let part = noted.lock().unwrap().take().unwrap();
    assert!(part.is_admitted, "it waits for no second place");
    assert!(part.extensions.get::<Held>().unwrap().has(7));
}
