//! Results in words that the negotiated revision knows, from end to end.

use serde_json::{Value, json};
use tidegate_edge::http::Settings;

use crate::common::*;

/// What each revision gets for a method, oldest first; the modern one last.
async fn in_each(method: &str, params: Value) -> String {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let mut table = String::new();
    for revision in LEGACY {
        let session = Session::open(&client, revision).await;
        let answer = session.request(1, method, params.clone()).send().await.json().await;
        table += &format!("{revision}: {}\n", answer["result"]);
    }
    table + &format!("2026-07-28: {}\n", client.ask(method, params).await["result"])
}

#[tokio::test(start_paused = true)]
async fn content() {
    let arguments = json!({
        "content": [
            {"type": "text", "text": "t", "_meta": {"k": 1}, "annotations": {"priority": 1, "lastModified": "2026-01-01"}},
            {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
            {"type": "resource_link", "uri": "mem:a", "name": "a", "icons": [{"src": "https://example.com/i.png"}]},
        ],
        "_meta": {"own": true},
    });
    insta::assert_snapshot!(in_each("tools/call", json!({"name": "content", "arguments": arguments})).await, @"");
}

#[tokio::test(start_paused = true)]
async fn structured_content() {
    let mut table = String::new();
    for (structured, content) in [
        (json!({"a": 1}), json!([{"type": "text", "text": "{\"a\":1}"}])),
        (json!({"a": 1}), json!([])),
        (json!([1, 2]), json!([])),
    ] {
        let arguments = json!({"content": content, "structuredContent": structured});
        table += &in_each("tools/call", json!({"name": "content", "arguments": arguments})).await;
    }
    insta::assert_snapshot!(table, @"");
}

#[tokio::test(start_paused = true)]
async fn definitions() {
    insta::assert_snapshot!(in_each("tools/list", json!({})).await, @"");
    insta::assert_snapshot!(in_each("resources/list", json!({})).await, @"");
}

#[tokio::test(start_paused = true)]
async fn members_that_nobody_knows_pass_untouched() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    // Members of tool arguments come back in their order and spelling: nothing is parsed and rebuilt on the way.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"u":"\u00e9"}}}"#;
    let answer = session.post(&json!({})).body(body).send().await.text().await;
    assert!(answer.contains(r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"u":"\u00e9"}"#), "{answer}");
}
