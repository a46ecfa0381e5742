//! Readers that ask for much and take nothing.

use std::io::Write as _;
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

use crate::http;
use crate::rig::{Gateway, until};

const READERS: usize = 16;

/// A memory whose whole graph is given to a client as about five megabytes, more than a socket takes.
fn full() -> Gateway {
    let gateway = Gateway::memory();
    for batch in 0..26 {
        let entities: Vec<Value> = (0..20)
            .map(|n| {
                let observations = [format!("{batch} {n} {}", "lorem ipsum ".repeat(400))];
                json!({"name": format!("e{batch}-{n}"), "entityType": "thing", "observations": observations})
            })
            .collect();
        let made = gateway.call("create_entities", json!({"entities": entities}));
        assert!(made["result"].is_object() && made["result"]["isError"] != true, "{made}");
    }
    gateway
}

/// Asks and never reads. The system takes little of the answer, so the rest waits in the server.
fn ask(gateway: &Gateway, headers: &[(&str, &str)], body: &[u8]) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.set_recv_buffer_size(4096).unwrap();
    socket.connect(&gateway.address.into()).unwrap();
    let mut stream = TcpStream::from(socket);
    stream.write_all(http::head("POST", headers, body.len()).as_bytes()).unwrap();
    stream.write_all(body).unwrap();
    stream
}

/// Has many readers ask for an answer that they do not take; gives how many copies of it each costs.
fn copies_for_each(gateway: &Gateway, headers: &[(&str, &str)], body: impl Fn(usize) -> Vec<u8>) -> f64 {
    let size = gateway.post(headers, &body(0)).body.len();
    assert!(size > 4 << 20, "an answer of {size} bytes");
    let before = gateway.resident();
    let readers: Vec<TcpStream> = (1..=READERS).map(|id| ask(gateway, headers, &body(id))).collect();
    let (mut last, mut same) = (0, 0);
    until("all are answered as far as they can be", || {
        std::thread::sleep(Duration::from_millis(200));
        let now = gateway.resident();
        same = if now == last { same + 1 } else { 0 };
        last = now;
        same == 5
    });
    gateway.answers_others();
    let each = gateway.resident().saturating_sub(before) as f64 / READERS as f64;
    drop(readers);
    each / (size as f64 / (1 << 20) as f64)
}

/// One copy, and what the allocator keeps for later, which is more on a busy machine. Not two and that.
const ABOUT_ONE: f64 = 2.2;

#[test]
fn a_modern_reader_costs_one_copy_of_its_answer() {
    let mut gateway = full();
    let params = json!({"name": "read_graph", "arguments": {}});
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "read_graph")];
    let body = |id| http::modern(id as u64, "tools/call", params.clone());
    let copies = copies_for_each(&gateway, &headers, body);
    assert!(copies < ABOUT_ONE, "{copies:.2} copies each");
    gateway.ends_cleanly();
}

#[test]
fn a_legacy_reader_costs_one_copy_of_its_answer() {
    let mut gateway = full();
    let session = gateway.initialize("2025-11-25");
    let params = json!({"name": "read_graph", "arguments": {}});
    let body = |id| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}).to_string().into_bytes()
    };
    let copies = copies_for_each(&gateway, &[("Mcp-Session-Id", &session)], body);
    assert!(copies < ABOUT_ONE, "{copies:.2} copies each");
    gateway.ends_cleanly();
}
