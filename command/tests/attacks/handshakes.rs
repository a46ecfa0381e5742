//! Handshakes that want to be remembered whole.

use serde_json::json;

use crate::http;
use crate::rig::Gateway;

#[test]
fn fat_handshakes_leave_nothing_behind() {
    let mut gateway = Gateway::memory();
    let fat = json!({"name": "x".repeat(3 << 20), "version": "1"});
    for round in 0..60 {
        let (info, capabilities) = if round % 2 == 0 { (&fat, &json!({})) } else { (&json!({}), &fat) };
        let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": "2025-11-25", "capabilities": capabilities, "clientInfo": info}});
        let refused = gateway.post(&[], hello.to_string().as_bytes());
        assert_eq!(refused.header("mcp-session-id"), None);
        let refused = refused.json();
        assert_eq!(refused["error"]["code"], -32602, "{refused}");
        assert!(refused["error"]["message"].as_str().unwrap().contains("may have at most 16384 bytes"));
    }
    gateway.answers_others();
    // 180 MiB would have been kept.
    assert!(gateway.resident() < 150, "{} MiB", gateway.resident());
    gateway.ends_cleanly();
}

#[test]
fn long_ids_and_tokens_are_not_echoed() {
    let mut gateway = Gateway::memory();
    let long = "x".repeat(3 << 20);
    let ping = json!({"jsonrpc": "2.0", "id": long, "method": "ping"});
    let refused = gateway.post(&[], ping.to_string().as_bytes());
    assert!(refused.status == 400 && refused.body.len() < 1000, "{}", refused.head);
    let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    let mut request: serde_json::Value =
        serde_json::from_slice(&http::modern(1, "tools/list", json!({}))).unwrap();
    request["params"]["_meta"]["progressToken"] = json!(long);
    let refused = gateway.post(&headers, request.to_string().as_bytes());
    assert!(
        refused.body.len() < 1000 && refused.body.contains("progressToken may have at most"),
        "{refused:?}"
    );
    gateway.answers_others();
    gateway.ends_cleanly();
}
