//! Readers that ask for much and take nothing.

use std::io::Write as _;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::http;
use crate::rig::{Gateway, until};

const READERS: usize = 200;

/// A memory whose whole graph is about two megabytes.
fn full() -> Gateway {
    let gateway = Gateway::memory();
    for batch in 0..10 {
        let entities: Vec<Value> = (0..20)
            .map(|n| {
                let observations = [format!("{batch} {n} {}", "lorem ipsum ".repeat(900))];
                json!({"name": format!("e{batch}-{n}"), "entityType": "thing", "observations": observations})
            })
            .collect();
        let made = gateway.call("create_entities", json!({"entities": entities}));
        assert!(made["result"].is_object() && made["result"]["isError"] != true, "{made}");
    }
    gateway
}

/// Asks and never reads. The receive window is what the system gives; the rest waits in the server.
fn ask(gateway: &Gateway, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
    let mut stream = http::connect(gateway.address);
    stream.write_all(http::head("POST", headers, body.len()).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    stream
}

/// Has many readers ask for an answer that they do not take; gives how many MiB each costs beyond what was there.
fn cost_of_each(gateway: &Gateway, headers: &[(&str, &str)], body: &[u8]) -> f64 {
    let size = gateway.post(headers, body).body.len();
    assert!(size > 1 << 20, "an answer of {size} bytes");
    let before = gateway.resident();
    let readers: Vec<TcpStream> = (0..READERS).map(|_| ask(gateway, headers, body)).collect();
    gateway.answers_others();
    let mut last = 0;
    until("all are answered as far as they can be", || {
        std::thread::sleep(std::time::Duration::from_millis(500));
        let now = gateway.resident();
        std::mem::replace(&mut last, now) == now
    });
    gateway.answers_others();
    let each = gateway.resident().saturating_sub(before) as f64 / READERS as f64;
    eprintln!("answer {size} bytes, each reader {each:.2} MiB, peak {} MiB", gateway.peak());
    drop(readers);
    each / (size as f64 / (1 << 20) as f64)
}

#[test]
fn a_modern_reader_costs_one_copy_of_its_answer() {
    let mut gateway = full();
    let body = http::modern(1, "tools/call", json!({"name": "read_graph", "arguments": {}}));
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "read_graph")];
    let copies = cost_of_each(&gateway, &headers, &body);
    assert!(copies < 1.3, "{copies} copies each");
    gateway.ends_cleanly();
}

#[test]
fn a_legacy_reader_costs_one_copy_of_its_answer() {
    let mut gateway = full();
    let session = gateway.initialize("2025-11-25");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "read_graph", "arguments": {}}});
    let bare = cost_of_each(&gateway, &[], body.to_string().as_bytes());
    assert!(bare < 1.3, "{bare} copies each");
    let _ = session;
    gateway.ends_cleanly();
}
