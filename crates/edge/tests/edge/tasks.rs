//! Tasks of 2025-11-25, made from modern ones.

use serde_json::{Value, json};
use tidegate_edge::http::Settings;

use crate::common::*;

async fn session(stub: &Stub, revision: &str) -> Session {
    Session::open(&Client::new(stub, Settings::default()), revision).await
}

/// Calls the tool as a task and returns the answer.
async fn start(session: &Session, script: Value) -> Value {
    let params = json!({"name": "task", "arguments": {"script": script}, "task": {"ttl": 60000}});
    session.request(1, "tools/call", params).send().await.json().await
}

async fn ask(session: &Session, method: &str, id: &str) -> Value {
    session.request(2, method, json!({"taskId": id})).send().await.json().await
}

#[tokio::test(start_paused = true)]
async fn from_creation_to_result() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut got = vec![start(&session, json!(["working", "working", "working", "completed"])).await];
    for method in ["tasks/get", "tasks/list", "tasks/result", "tasks/get", "tasks/cancel"] {
        got.push(ask(&session, method, "task-1").await);
    }
    insta::assert_snapshot!(lines(&got), @r#"
    {"id":1,"jsonrpc":"2.0","result":{"task":{"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","pollInterval":50,"status":"working","taskId":"task-1","ttl":60000}}}
    {"id":2,"jsonrpc":"2.0","result":{"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","pollInterval":50,"status":"working","taskId":"task-1","ttl":60000}}
    {"id":2,"jsonrpc":"2.0","result":{"tasks":[{"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","pollInterval":50,"status":"working","taskId":"task-1","ttl":60000}]}}
    {"id":2,"jsonrpc":"2.0","result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}},"content":[{"text":"none","type":"text"}]}}
    {"id":2,"jsonrpc":"2.0","result":{"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","pollInterval":50,"status":"completed","taskId":"task-1","ttl":60000}}
    {"error":{"code":-32602,"message":"Invalid params: task task-1 is already completed"},"id":2,"jsonrpc":"2.0"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn what_is_answered_at_once_is_a_task_that_is_done() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let params = json!({"name": "echo", "arguments": {"text": "hi"}, "task": {}});
    let created = session.request(1, "tools/call", params.clone()).send().await.json().await;
    let task = &created["result"]["task"];
    assert_eq!((&task["status"], &task["ttl"]), (&json!("completed"), &Value::Null), "{created}");
    let id = task["taskId"].as_str().unwrap();
    assert_eq!(ask(&session, "tasks/get", id).await["result"], *task);
    let result = ask(&session, "tasks/result", id).await;
    assert_eq!(text(&result), "hi");
    assert_eq!(result["result"]["_meta"], json!({"io.modelcontextprotocol/related-task": {"taskId": id}}));
    assert_eq!(ask(&session, "tasks/list", "").await["result"]["tasks"], json!([task]));
    assert_eq!(code(&ask(&session, "tasks/cancel", id).await).0, -32602);
    let other = Session::open(&client, "2025-11-25").await;
    assert_eq!(code(&ask(&other, "tasks/get", id).await).0, -32602, "it is this session's alone");
    // Where there are no tasks, nobody gets one.
    let older = Session::open(&client, "2025-06-18").await;
    assert_eq!(text(&older.request(1, "tools/call", params).send().await.json().await), "hi");
}

#[tokio::test(start_paused = true)]
async fn only_so_many_results_are_kept() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut ids = Vec::new();
    for _ in 0..3 {
        let params = json!({"name": "big", "arguments": {"n": 1_800_000}, "task": {}});
        let created = session.request(1, "tools/call", params).send().await.json().await;
        ids.push(created["result"]["task"]["taskId"].as_str().unwrap().to_owned());
    }
    assert_eq!(code(&ask(&session, "tasks/get", &ids[0]).await).0, -32602, "the oldest made room");
    for id in &ids[1..] {
        assert_eq!(text(&ask(&session, "tasks/result", id).await).len(), 1_800_000);
    }
}

#[tokio::test(start_paused = true)]
async fn tasks_that_fail_or_are_cancelled() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    start(&session, json!(["working", "failed"])).await;
    start(&session, json!(["working"])).await;
    let waiting = tokio::spawn(session.request(9, "tasks/result", json!({"taskId": "task-2"})).send());
    settle().await;
    let got = [
        ask(&session, "tasks/result", "task-1").await,
        ask(&session, "tasks/cancel", "task-1").await,
        ask(&session, "tasks/cancel", "task-2").await,
        waiting.await.unwrap().json().await,
        ask(&session, "tasks/cancel", "task-2").await,
        ask(&session, "tasks/result", "task-3").await,
    ];
    insta::assert_snapshot!(lines(&got), @r#"
    {"error":{"code":-32603,"data":{"why":"so"},"message":"it broke"},"id":2,"jsonrpc":"2.0"}
    {"error":{"code":-32602,"message":"Invalid params: task task-1 is already failed"},"id":2,"jsonrpc":"2.0"}
    {"id":2,"jsonrpc":"2.0","result":{"createdAt":"2026-01-01T00:00:00Z","lastUpdatedAt":"2026-01-01T00:00:00Z","pollInterval":50,"status":"cancelled","taskId":"task-2","ttl":60000}}
    {"error":{"code":-32602,"message":"Invalid params: task task-2 was cancelled"},"id":9,"jsonrpc":"2.0"}
    {"error":{"code":-32602,"message":"Invalid params: task task-2 is already cancelled"},"id":2,"jsonrpc":"2.0"}
    {"error":{"code":-32602,"message":"Unknown task: task-3"},"id":2,"jsonrpc":"2.0"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_waiting_result_can_be_cancelled_and_the_task_goes_on() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    start(&session, json!(["working"])).await;
    let waiting = tokio::spawn(session.request(9, "tasks/result", json!({"taskId": "task-1"})).send());
    settle().await;
    session.notify("notifications/cancelled", json!({"requestId": 9})).await;
    assert_eq!(waiting.await.unwrap().text().await, "");
    assert_eq!(stub.task_states(), ["working"]);
    let before = stub.calls().len();
    tokio::time::sleep(std::time::Duration::from_secs(10)).await;
    assert_eq!(stub.calls().len(), before, "nobody looks any more");
}

#[tokio::test(start_paused = true)]
async fn a_tasks_questions_name_their_task() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    start(&session, json!(["input_required form", "input_required roots", "completed"])).await;
    assert_eq!(ask(&session, "tasks/get", "task-1").await["result"]["status"], "input_required");
    let mut events = session.request(3, "tasks/result", json!({"taskId": "task-1"})).send().await.events();
    let mut got = Vec::new();
    for answer in [json!({"action": "decline"}), json!({"roots": []})] {
        got.push(events.message().await);
        session.answer(got.last().unwrap(), answer).await;
    }
    got.push(events.message().await);
    insta::assert_snapshot!(lines(&got), @r#"
    {"id":1,"jsonrpc":"2.0","method":"elicitation/create","params":{"_meta":{"dev.tidegate/input":{"key":"form1","of":1},"io.modelcontextprotocol/related-task":{"taskId":"task-1"}},"message":"Name?","requestedSchema":{"properties":{"name":{"type":"string"}},"type":"object"}}}
    {"id":2,"jsonrpc":"2.0","method":"roots/list","params":{"_meta":{"dev.tidegate/input":{"key":"roots1","of":1},"io.modelcontextprotocol/related-task":{"taskId":"task-1"}}}}
    {"id":3,"jsonrpc":"2.0","result":{"_meta":{"io.modelcontextprotocol/related-task":{"taskId":"task-1"}},"content":[{"text":"{\"roots1\":{\"roots\":[]}}","type":"text"}]}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_waits_for_nothing_is_looked_at_with_patience() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    start(&session, json!(["input_required nothing"])).await;
    let waiting = tokio::spawn(session.request(3, "tasks/result", json!({"taskId": "task-1"})).send());
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(stub.calls().len() < 100, "{}", stub.calls().len());
    session.notify("notifications/cancelled", json!({"requestId": 3})).await;
    assert_eq!(waiting.await.unwrap().text().await, "");
}

#[tokio::test(start_paused = true)]
async fn without_the_request_the_edge_waits() {
    let stub = Stub::new();
    for revision in LEGACY {
        let session = session(&stub, revision).await;
        let script = json!(["working", "working", "completed"]);
        let answer = session.call(1, "task", json!({"script": script})).send().await;
        assert_eq!(text(&answer.json().await), "none", "{revision}");
    }
    // Its questions are those of a call like any other.
    let session = session(&stub, "2025-11-25").await;
    let script = json!(["input_required form", "completed"]);
    let mut events = session.call(1, "task", json!({"script": script})).send().await.events();
    let question = events.message().await;
    assert_eq!(question["params"]["_meta"], json!({"dev.tidegate/input": {"key": "form1", "of": 1}}));
    session.answer(&question, json!({"action": "decline"})).await;
    assert_eq!(text(&events.message().await), r#"{"form1":{"action":"decline"}}"#);
    let failed = session.call(1, "task", json!({"script": ["failed"]})).send().await;
    assert_eq!(code(&failed.json().await), (-32603, json!(1)));
}

#[tokio::test(start_paused = true)]
async fn a_task_that_the_client_did_not_ask_for_ends_with_its_call() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let waiting = tokio::spawn(session.call(1, "task", json!({"script": ["working"]})).send());
    settle().await;
    session.notify("notifications/cancelled", json!({"requestId": 1})).await;
    assert_eq!(waiting.await.unwrap().text().await, "");
    settle().await;
    assert_eq!(stub.task_states(), ["cancelled"]);
}

#[tokio::test(start_paused = true)]
async fn only_2025_11_25_has_them() {
    let stub = Stub::new();
    for revision in &LEGACY[..3] {
        let session = session(&stub, revision).await;
        for method in ["tasks/get", "tasks/result", "tasks/list", "tasks/cancel", "tasks/update"] {
            assert_eq!(code(&ask(&session, method, "task-1").await).0, -32601, "{revision} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_session_lists_its_own() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let [one, two] = [Session::open(&client, "2025-11-25").await, Session::open(&client, "2025-11-25").await];
    start(&one, json!(["working"])).await;
    start(&two, json!(["working"])).await;
    start(&one, json!(["working"])).await;
    let listed = |answer: Value| -> Vec<String> {
        answer["result"]["tasks"].as_array().unwrap().iter().map(|t| t["taskId"].to_string()).collect()
    };
    assert_eq!(listed(ask(&one, "tasks/list", "").await), [r#""task-1""#, r#""task-3""#]);
    assert_eq!(listed(ask(&two, "tasks/list", "").await), [r#""task-2""#]);
}

#[tokio::test(start_paused = true)]
async fn over_stdio() {
    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, tidegate_edge::stdio::Settings::default(), "2025-11-25").await;
    let params =
        json!({"name": "task", "arguments": {"script": ["input_required form", "completed"]}, "task": {}});
    pipe.request(1, "tools/call", params).await;
    assert_eq!(pipe.recv().await["result"]["task"]["taskId"], "task-1");
    pipe.request(2, "tasks/result", json!({"taskId": "task-1"})).await;
    let question = pipe.recv().await;
    assert_eq!(
        question["params"]["_meta"]["io.modelcontextprotocol/related-task"],
        json!({"taskId": "task-1"})
    );
    pipe.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "cancel"}})).await;
    let result = pipe.recv().await;
    assert_eq!(text(&result), r#"{"form1":{"action":"cancel"}}"#);
    assert_eq!(
        result["result"]["_meta"]["io.modelcontextprotocol/related-task"],
        json!({"taskId": "task-1"})
    );
}
