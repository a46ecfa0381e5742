//! Notifications that the protocol does not define, both ways.

use serde_json::{Value, json};
use tidegate_edge::{http, stdio};

use crate::common::*;

const OWN: [&str; 3] = ["notifications/initialized", "notifications/cancelled", "notifications/progress"];
const OTHERS: [&str; 2] = ["notifications/vendor/thing", "notifications/roots/list_changed"];

fn message(method: &str) -> Value {
    json!({"jsonrpc": "2.0", "method": method, "params": {"requestId": 99, "n": 1}})
}

/// What the service was told.
fn told(stub: &Stub) -> Vec<String> {
    stub.calls().into_iter().filter(|call| call.starts_with("notifications/") || call == "odd/name").collect()
}

#[tokio::test(start_paused = true)]
async fn what_a_legacy_client_tells_is_handed_over() {
    let stub = Stub::new();
    let session = Session::open(&Client::new(&stub, http::Settings::default()), "2025-11-25").await;
    for method in OWN.into_iter().chain(OTHERS).chain(["odd/name"]) {
        session.notify(method, json!({"requestId": 99})).await;
    }
    settle().await;
    assert_eq!(told(&stub), OTHERS, "over HTTP");

    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-11-25").await;
    for method in OWN.into_iter().chain(OTHERS).chain(["odd/name"]) {
        pipe.send(&message(method)).await;
    }
    pipe.call(1, "echo", json!({})).await;
    pipe.recv().await;
    assert_eq!(told(&stub), OTHERS, "over stdio");
}

#[tokio::test(start_paused = true)]
async fn what_a_modern_client_tells_is_handed_over() {
    let stub = Stub::new();
    let client = Client::new(&stub, http::Settings::default());
    for method in OWN.into_iter().chain(OTHERS).chain(["odd/name"]) {
        let ask = client.post(message(method).to_string()).header("mcp-protocol-version", "2026-07-28");
        assert_eq!(ask.send().await.status, 202);
    }
    settle().await;
    assert_eq!(told(&stub), OTHERS, "over HTTP");

    let stub = Stub::new();
    let mut pipe = Pipe::open(&stub, stdio::Settings::default());
    for method in OWN.into_iter().chain(OTHERS).chain(["odd/name"]) {
        pipe.send(&message(method)).await;
    }
    pipe.ask(&modern(1, "tools/call", json!({"name": "echo", "arguments": {}}))).await;
    assert_eq!(told(&stub), OTHERS, "over stdio");
}

/// The whole notification of the tool, with a spelling that nobody would choose.
const TOLD: &str = r#"{"jsonrpc":"2.0","method":"notifications/vendor","params":{ "n":1.0e0 }}"#;
const ARGUMENTS: &str = r#"{ "n":1.0e0 }"#;

fn call(meta: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"tells","arguments":{ARGUMENTS}{meta}}}}}"#
    )
}

const MODERN: &str = r#","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;

#[tokio::test(start_paused = true)]
async fn what_a_server_tells_reaches_a_legacy_client_as_it_came() {
    let stub = Stub::new();
    let session = Session::open(&Client::new(&stub, http::Settings::default()), "2025-11-25").await;
    let asked = session.post(&Value::Null).body(call(""));
    assert!(asked.send().await.text().await.contains(&format!("data: {TOLD}\n")), "over HTTP");
    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-11-25").await;
    pipe.write(format!("{}\n", call(""))).await;
    assert_eq!(pipe.line().await.as_deref().map(str::trim_end), Some(TOLD), "over stdio");
}

#[tokio::test(start_paused = true)]
async fn what_a_server_tells_reaches_a_modern_client_of_a_relay_as_it_came() {
    for relays in [true, false] {
        let stub = Stub::new();
        let mut settings = http::Settings::default();
        settings.edge.relays = relays;
        let asked = Client::new(&stub, settings).post(call(MODERN));
        let asked = asked.header("mcp-protocol-version", "2026-07-28").header("mcp-method", "tools/call");
        let answer = asked.header("mcp-name", "tells").send().await;
        assert_eq!(answer.text().await.contains(&format!("data: {TOLD}\n")), relays, "over HTTP");
        let mut settings = stdio::Settings::default();
        settings.edge.relays = relays;
        let mut pipe = Pipe::open(&stub, settings);
        pipe.write(format!("{}\n", call(MODERN))).await;
        let line = pipe.line().await;
        assert_eq!(line.as_deref().map(str::trim_end) == Some(TOLD), relays, "over stdio: {line:?}");
    }
}
