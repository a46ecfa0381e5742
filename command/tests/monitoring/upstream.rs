//! A server of 2025-11-25 that has as many tools as a test wants, and does not answer calls when it is told not to.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

/// A server on this machine.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    is_failing: Arc<AtomicBool>,
}

impl Upstream {
    /// With tools that are named so.
    pub(crate) fn start(tools: Vec<String>) -> Upstream {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = Upstream { address: listener.local_addr().unwrap(), is_failing: Arc::default() };
        let (tools, is_failing): (Arc<[String]>, _) = (tools.into(), upstream.is_failing.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (tools, is_failing) = (tools.clone(), is_failing.clone());
                std::thread::spawn(move || serve(&stream, &tools, &is_failing));
            }
        });
        upstream
    }

    /// From now on calls of tools are answered with 503, or not any more.
    pub(crate) fn fails(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::SeqCst);
    }
}

/// Answers the requests of a connection.
fn serve(stream: &TcpStream, tools: &[String], is_failing: &AtomicBool) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut line) = (String::new(), String::new());
        while reader.read_line(&mut line).is_ok_and(|read| read > 2) {
            head.push_str(&line.to_ascii_lowercase());
            line.clear();
        }
        let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
        let mut body = vec![0; length.and_then(|length| length.trim().parse().ok()).unwrap_or(0)];
        if head.is_empty() || reader.read_exact(&mut body).is_err() {
            return;
        }
        let message: Value = serde_json::from_slice(&body).unwrap_or_default();
        let is_refused = message["method"] == "tools/call" && is_failing.load(Ordering::SeqCst);
        let (status, body) = match (head.starts_with("post"), message.get("id")) {
            (false, _) => (405, String::new()),
            (true, None) => (202, String::new()),
            (true, Some(_)) if is_refused => (503, String::new()),
            (true, Some(id)) => (200, answer(id, &message, tools).to_string()),
        };
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        if (&mut (&*stream)).write_all((head + &body).as_bytes()).is_err() {
            return;
        }
    }
}

fn answer(id: &Value, message: &Value, tools: &[String]) -> Value {
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "any", "version": "1"}, "capabilities": {"tools": {}}})
        }
        "ping" => json!({}),
        "tools/list" => {
            let list: Value =
                tools.iter().map(|name| json!({"name": name, "inputSchema": {"type": "object"}})).collect();
            json!({"tools": list})
        }
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        _ => {
            return json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}
