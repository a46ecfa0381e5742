//! Clients of 2025-11-25 that ask for tasks, with Tidegate between them and a server of either era.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, ClientSettings, ElicitAnswer, Handlers};
use tidegate_edge::Eras;

use super::world::{World, listen};

/// A client of 2025-11-25, which speaks to the server through the door of another client.
async fn client(world: &World) -> Client {
    let url = listen(world.client(|_| {}).door(), Eras::Both).await;
    let mut options = ClientSettings::default();
    options.offer_revision(tidegate_protocol::Revision::V2025_11_25);
    let handlers = Handlers::new().on_elicit(false, |question| async move {
        assert!(question.message.ends_with('?'));
        let answer = json!({"name": question.message.trim_end_matches('?')});
        ElicitAnswer::Accept(answer.as_object().unwrap().clone())
    });
    Client::builder(url.as_str()).unwrap().settings(options).handlers(handlers).lazy().unwrap()
}

async fn ask(client: &Client, method: &str, params: Value) -> Value {
    let asked = tokio::time::timeout(Duration::from_secs(20), client.request(method, params)).await;
    asked.expect("an answer").unwrap_or_else(|error| panic!("{method}: {error}")).to().unwrap()
}

/// Calls a tool as a task and gives its id.
async fn start(client: &Client, tool: &str) -> String {
    let created =
        ask(client, "tools/call", json!({"name": tool, "arguments": {}, "task": {"ttl": 60000}})).await;
    assert!(created["task"]["createdAt"].is_string() && created.get("resultType").is_none(), "{created}");
    created["task"]["taskId"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn tasks_are_offered_whatever_the_server_calls_them() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let client = client(&World::of(eras).await).await;
        assert!(client.has_capability("tasks.requests.tools.call").await.unwrap(), "{eras:?}");
        let tools = client.tools().await.unwrap();
        let quick = tools.iter().find(|tool| tool.name() == "quick").unwrap();
        let support = quick.definition().to::<Value>().unwrap()["execution"]["taskSupport"].clone();
        // A modern server says nothing about it beforehand.
        let expected = if eras == Eras::Legacy { "required" } else { "optional" };
        assert_eq!(support, expected, "{eras:?}");
    }
}

#[tokio::test]
async fn from_creation_to_result() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::of(eras).await;
        let client = client(&world).await;
        let id = start(&client, "gated").await;
        let working = ask(&client, "tasks/get", json!({"taskId": id})).await;
        assert_eq!((&working["taskId"], &working["status"]), (&json!(id), &json!("working")), "{eras:?}");
        let listed = ask(&client, "tasks/list", json!({})).await;
        assert_eq!(listed["tasks"][0]["taskId"], id);
        world.gate.open();
        let result = ask(&client, "tasks/result", json!({"taskId": id})).await;
        assert_eq!(result["content"], json!([{"type": "text", "text": "open"}]), "{eras:?}");
        assert_eq!(result["_meta"]["io.modelcontextprotocol/related-task"], json!({"taskId": id}));
    }
}

#[tokio::test]
async fn the_questions_of_a_task() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let client = client(&World::of(eras).await).await;
        let id = start(&client, "asks_twice").await;
        let result = ask(&client, "tasks/result", json!({"taskId": id})).await;
        assert_eq!(result["content"][0]["text"], "First then Second", "{eras:?}");
    }
}

#[tokio::test]
async fn a_task_can_be_cancelled() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let world = World::of(eras).await;
        let client = client(&world).await;
        let id = start(&client, "long").await;
        let cancelled = ask(&client, "tasks/cancel", json!({"taskId": id})).await;
        assert_eq!(cancelled["status"], "cancelled", "{eras:?}");
        let again = client.request("tasks/cancel", json!({"taskId": id})).await.unwrap_err();
        assert!(again.message.contains("already"), "{again}");
    }
}

#[tokio::test]
async fn what_is_answered_at_once_is_a_task_that_is_done() {
    let client = client(&World::of(Eras::Modern).await).await;
    let id = start(&client, "never").await;
    let task = ask(&client, "tasks/get", json!({"taskId": id})).await;
    assert_eq!((&task["status"], &task["ttl"]), (&json!("completed"), &Value::Null));
    let result = ask(&client, "tasks/result", json!({"taskId": id})).await;
    assert_eq!(result["content"][0]["text"], "never");
    assert!(result.get("resultType").is_none(), "{result}");
    assert_eq!(ask(&client, "tasks/list", json!({})).await["tasks"][0]["taskId"], id);
}

#[tokio::test]
async fn who_did_not_ask_for_a_task_gets_the_result() {
    for eras in [Eras::Legacy, Eras::Modern] {
        let client = client(&World::of(eras).await).await;
        let result = client.call("quick", json!({})).await.unwrap();
        assert_eq!(result.text(), "done", "{eras:?}");
        let result = client.call("asks", json!({})).await.unwrap();
        assert_eq!(result.text(), "Hello, Who is there!", "{eras:?}");
    }
}
