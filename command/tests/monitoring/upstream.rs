//! A server of 2025-11-25 that has as many tools as a test wants, and does not answer calls when it is told not to.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::{Value, json};

use crate::message_server::{serve, write};

/// A server on this machine.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    is_failing: Arc<AtomicBool>,
}

impl Upstream {
    /// With tools that are named so.
    pub(crate) fn start(tools: Vec<String>) -> Upstream {
        let is_failing = Arc::new(AtomicBool::new(false));
        let fails = is_failing.clone();
        let address = serve(move |stream, message| match message.get("id") {
            None => write(stream, 202, ""),
            Some(_) if message["method"] == "tools/call" && fails.load(Ordering::SeqCst) => {
                write(stream, 503, "")
            }
            Some(id) => write(stream, 200, &answer(id, &message, &tools).to_string()),
        });
        Upstream { address, is_failing }
    }

    /// From now on calls of tools are answered with 503, or not any more.
    pub(crate) fn fails(&self, is_failing: bool) {
        self.is_failing.store(is_failing, Ordering::SeqCst);
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
