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
    insta::assert_snapshot!(in_each("tools/call", json!({"name": "content", "arguments": arguments})).await, @r#"
    2024-11-05: {"_meta":{"own":true},"content":[{"annotations":{"priority":1},"text":"t","type":"text"},{"text":"[Audio of type audio/wav, 3 bytes, which this revision of the protocol cannot carry]","type":"text"},{"text":"[Resource a: mem:a]","type":"text"}]}
    2025-03-26: {"_meta":{"own":true},"content":[{"annotations":{"priority":1},"text":"t","type":"text"},{"data":"AAAA","mimeType":"audio/wav","type":"audio"},{"text":"[Resource a: mem:a]","type":"text"}]}
    2025-06-18: {"_meta":{"own":true},"content":[{"_meta":{"k":1},"annotations":{"lastModified":"2026-01-01","priority":1},"text":"t","type":"text"},{"data":"AAAA","mimeType":"audio/wav","type":"audio"},{"name":"a","type":"resource_link","uri":"mem:a"}]}
    2025-11-25: {"_meta":{"own":true},"content":[{"_meta":{"k":1},"annotations":{"lastModified":"2026-01-01","priority":1},"text":"t","type":"text"},{"data":"AAAA","mimeType":"audio/wav","type":"audio"},{"icons":[{"src":"https://example.com/i.png"}],"name":"a","type":"resource_link","uri":"mem:a"}]}
    2026-07-28: {"_meta":{"own":true},"content":[{"_meta":{"k":1},"annotations":{"lastModified":"2026-01-01","priority":1},"text":"t","type":"text"},{"data":"AAAA","mimeType":"audio/wav","type":"audio"},{"icons":[{"src":"https://example.com/i.png"}],"name":"a","type":"resource_link","uri":"mem:a"}],"resultType":"complete"}
    "#);
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
    insta::assert_snapshot!(table, @r#"
    2024-11-05: {"content":[{"text":"{\"a\":1}","type":"text"}]}
    2025-03-26: {"content":[{"text":"{\"a\":1}","type":"text"}]}
    2025-06-18: {"content":[{"text":"{\"a\":1}","type":"text"}],"structuredContent":{"a":1}}
    2025-11-25: {"content":[{"text":"{\"a\":1}","type":"text"}],"structuredContent":{"a":1}}
    2026-07-28: {"content":[{"text":"{\"a\":1}","type":"text"}],"resultType":"complete","structuredContent":{"a":1}}
    2024-11-05: {"content":[{"text":"{\"a\":1}","type":"text"}]}
    2025-03-26: {"content":[{"text":"{\"a\":1}","type":"text"}]}
    2025-06-18: {"content":[],"structuredContent":{"a":1}}
    2025-11-25: {"content":[],"structuredContent":{"a":1}}
    2026-07-28: {"content":[],"resultType":"complete","structuredContent":{"a":1}}
    2024-11-05: {"content":[{"text":"[1,2]","type":"text"}]}
    2025-03-26: {"content":[{"text":"[1,2]","type":"text"}]}
    2025-06-18: {"content":[{"text":"[1,2]","type":"text"}]}
    2025-11-25: {"content":[{"text":"[1,2]","type":"text"}]}
    2026-07-28: {"content":[],"resultType":"complete","structuredContent":[1,2]}
    "#);
}

#[tokio::test(start_paused = true)]
async fn definitions() {
    insta::assert_snapshot!(in_each("tools/list", json!({})).await, @r#"
    2024-11-05: {"tools":[{"description":"Echo","inputSchema":{"type":"object"},"name":"echo"}]}
    2025-03-26: {"tools":[{"annotations":{"readOnlyHint":true,"title":"Echo"},"inputSchema":{"type":"object"},"name":"echo"}]}
    2025-06-18: {"tools":[{"annotations":{"readOnlyHint":true},"inputSchema":{"type":"object"},"name":"echo","outputSchema":{"type":"object"},"title":"Echo"}]}
    2025-11-25: {"tools":[{"annotations":{"readOnlyHint":true},"icons":[{"src":"https://example.com/i.png"}],"inputSchema":{"type":"object"},"name":"echo","outputSchema":{"type":"object"},"title":"Echo"}]}
    2026-07-28: {"cacheScope":"public","resultType":"complete","tools":[{"annotations":{"readOnlyHint":true},"icons":[{"src":"https://example.com/i.png"}],"inputSchema":{"type":"object"},"name":"echo","outputSchema":{"type":"object"},"title":"Echo"}],"ttlMs":0}
    "#);
    insta::assert_snapshot!(in_each("resources/list", json!({})).await, @r#"
    2024-11-05: {"resources":[{"description":"A","name":"a","uri":"mem:a"}]}
    2025-03-26: {"resources":[{"description":"A","name":"a","uri":"mem:a"}]}
    2025-06-18: {"resources":[{"name":"a","title":"A","uri":"mem:a"}]}
    2025-11-25: {"resources":[{"name":"a","title":"A","uri":"mem:a"}]}
    2026-07-28: {"resources":[{"name":"a","title":"A","uri":"mem:a"}],"resultType":"complete"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn members_that_nobody_knows_pass_untouched() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    // Members of tool arguments come back in their order and spelling: nothing is parsed and rebuilt on the way.
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"raw","arguments":{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"u":"\u00e9"}}}"#;
    let answer = session.post(&json!({})).body(body).send().await.text().await;
    assert!(
        answer.contains(r#"{"z":1.0,"a":1e2,"big":123456789012345678901234567890,"u":"\u00e9"}"#),
        "{answer}"
    );
}
