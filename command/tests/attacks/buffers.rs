//! More bytes than the process may hold, message by message each within its limit.

use std::io::Write as _;

use serde_json::json;

use crate::http::{self, Answer};
use crate::rig::Gateway;

/// A memory whose graph has about this many bytes, behind a gateway that may hold 64 MiB.
fn with_graph(bytes: usize) -> Gateway {
    let gateway =
        Gateway::start("max_buffered = \"64MiB\"\n[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n");
    for at in 0..bytes / 200_000 {
        let observations: Vec<String> =
            (0..50).map(|n| format!("{at} {n} {}", "tide ".repeat(780))).collect();
        let entity = json!({"entities": [{"name": format!("e{at}"), "entityType": "t", "observations": observations}]});
        let made = gateway.call("create_entities", entity);
        assert!(made["result"]["isError"] != json!(true), "{made}");
    }
    gateway
}

fn read_graph(gateway: &Gateway, session: &str) -> Answer {
    let call = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/call", "params": {
        "name": "read_graph", "arguments": {}, "_meta": {"progressToken": 1}}});
    let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
    gateway.post(&headers, call.to_string().as_bytes())
}

/// Asks for a large answer and goes away at once, so that it is kept to come back for.
fn ask_and_leave(gateway: &Gateway, session: &str, id: usize) {
    let call = json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {
        "name": "read_graph", "arguments": {}}});
    let body = call.to_string();
    let headers = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", "2025-11-25")];
    let mut stream = http::connect(gateway.address);
    stream.write_all((http::head("POST", &headers, body.len()) + &body).as_bytes()).unwrap();
}

#[test]
fn answers_that_nobody_comes_back_for_are_bounded() {
    let mut gateway = with_graph(2_000_000);
    let before = gateway.resident();
    for _ in 0..20 {
        let session = gateway.initialize("2025-11-25");
        for id in 0..16 {
            ask_and_leave(&gateway, &session, 10 + id);
        }
    }
    // 640 MB of answers were asked for.
    let session = gateway.initialize("2025-11-25");
    let answer = read_graph(&gateway, &session);
    assert!(answer.status == 200 || answer.status == 503, "{}", answer.head);
    gateway.answers_others();
    let peak = gateway.peak();
    assert!(peak < before + 300, "{before} MiB before, {peak} MiB at the most");
    gateway.ends_cleanly();
}

#[test]
fn bodies_beyond_the_budget_are_refused_and_what_ends_things_is_not() {
    let mut gateway =
        Gateway::start("max_buffered = \"16MiB\"\n[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n");
    let session = gateway.initialize("2025-11-25");
    // Announced and never sent: each sets 4 MB aside. One that comes while a probe below is read may be refused itself, so
    // there is another after each probe that passes.
    let mut waiting = Vec::new();
    let mut refused = None;
    crate::rig::until("a large body is refused", || {
        let mut stream = http::connect(gateway.address);
        stream.write_all(http::head("POST", &[], 4_000_000).as_bytes()).unwrap();
        stream.write_all(b"{").unwrap();
        waiting.push(stream);
        let answer = gateway.post(&[], &vec![b' '; 4_000_000]);
        refused = (answer.status == 503).then_some(answer);
        refused.is_some()
    });
    let refused = refused.unwrap();
    assert_eq!(refused.header("retry-after"), Some("2"), "{refused:?}");
    assert!(refused.body.contains("retryAfterMs"), "{refused:?}");
    // What is small and ends something passes.
    let cancelled = br#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":9}}"#;
    assert_eq!(gateway.post(&[("Mcp-Session-Id", &session)], cancelled).status, 202);
    assert_eq!(http::request(gateway.address, "DELETE", &[("Mcp-Session-Id", &session)], b"").status, 204);
    gateway.answers_others();
    waiting.clear();
    crate::rig::until("bytes are given back", || gateway.post(&[], &vec![b' '; 3_000_000]).status != 503);
    assert!(gateway.peak() < 200, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}
