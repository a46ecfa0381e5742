//! Calls, reads, prompts and completions that succeed.

use serde_json::{Value, json};

use crate::client::Op;
use crate::ways::everywhere;

#[tokio::test]
async fn results_are_the_same() {
    let cases = [
        (Op::Call("echo", json!({"message": "ahoy ⚓"})), text("ahoy ⚓")),
        (
            Op::Call("add", json!({"a": 2, "b": 3})),
            json!({
                "content": [{"type": "text", "text": "{\"sum\":5}"}],
                "structuredContent": {"sum": 5},
            }),
        ),
        (Op::Read("memo://about"), contents("memo://about", "text/plain", "text", "A fixture.")),
        (Op::Read("memo://dot"), contents("memo://dot", "image/png", "blob", "iVBORw==")),
        (
            Op::Read("weather://Bergen/today"),
            contents("weather://Bergen/today", "text/plain", "text", "Mild in Bergen."),
        ),
        (
            Op::Prompt("explain", json!({"city": "Bern"})),
            json!({
                "description": "Asks for an explanation",
                "messages": [
                    {"role": "user", "content": {"type": "text", "text": "Explain Bern."}},
                    {"role": "assistant", "content": {"type": "text", "text": "In plain words?"}},
                ],
            }),
        ),
        (
            Op::CompletePrompt { prompt: "explain", argument: "city", typed: "ber" },
            json!({"values": ["Bergen", "Berlin", "Bern"], "total": 3, "hasMore": false}),
        ),
        (
            Op::CompleteTemplate { template: "weather://{city}/today", variable: "city", typed: "L" },
            json!({"values": ["Lisbon"], "total": 1, "hasMore": false}),
        ),
    ];
    for (op, expected) in cases {
        assert_eq!(everywhere(op.clone()).await, expected, "{op:?}");
    }
}

#[tokio::test]
async fn every_content_type_arrives() {
    let result = everywhere(Op::Call("contents", json!({}))).await;
    assert_eq!(
        result["content"],
        json!([
            {"type": "text", "text": "a text", "annotations": {"audience": ["user"], "priority": 1.0}},
            {"type": "image", "data": "bm90IHJlYWxseSBhIHBpY3R1cmU=", "mimeType": "image/png"},
            {"type": "audio", "data": "bm90IHJlYWxseSBhIHNvdW5k", "mimeType": "audio/wav"},
            {
                "type": "resource_link",
                "uri": "memo://about",
                "name": "about",
                "title": "About",
                "mimeType": "text/plain",
            },
            {
                "type": "resource",
                "resource": {"uri": "memo://inline", "mimeType": "text/plain", "text": "inside"},
            },
        ])
    );
}

fn text(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

fn contents(uri: &str, mime_type: &str, kind: &str, data: &str) -> Value {
    json!({"contents": [{"uri": uri, "mimeType": mime_type, kind: data}]})
}
