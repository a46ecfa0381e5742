//! Servers of 2025-11-25 that have whatever tools, prompts and resources a test wants, and do nothing.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::message_server::{serve, write};

/// What a server has, by its own names.
#[derive(Debug, Default, Clone)]
pub(crate) struct Offers {
    pub(crate) tools: Vec<String>,
    pub(crate) prompts: Vec<String>,
    pub(crate) resources: Vec<String>,
}

/// A server, and what it was asked.
pub(crate) struct Upstream {
    pub(crate) address: SocketAddr,
    asked: Arc<Mutex<Vec<Value>>>,
}

impl Upstream {
    pub(crate) fn start(offers: Offers) -> Upstream {
        let asked = Arc::<Mutex<Vec<Value>>>::default();
        let noted = asked.clone();
        let address = serve(move |stream, message| {
            let (status, body) = match message.get("id") {
                None => (202, String::new()),
                Some(id) => (200, answer(id, &message, &offers).to_string()),
            };
            noted.lock().unwrap().push(message);
            write(stream, status, &body)
        });
        Upstream { address, asked }
    }

    /// How often it was asked for something by this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }
}

fn answer(id: &Value, message: &Value, offers: &Offers) -> Value {
    let (params, all) = (&message["params"], |names: &[String], item: fn(&String) -> Value| -> Value {
        names.iter().map(item).collect()
    });
    let result = match message["method"].as_str().unwrap_or_default() {
        "initialize" => {
            json!({"protocolVersion": "2025-11-25", "serverInfo": {"name": "any", "version": "1"},
            "capabilities": {"tools": {}, "prompts": {}, "resources": {}}})
        }
        "ping" | "vendor/method" => json!({}),
        "tools/list" => {
            json!({"tools": all(&offers.tools, |name| json!({"name": name, "inputSchema": {"type": "object"}}))})
        }
        "prompts/list" => json!({"prompts": all(&offers.prompts, |name| json!({"name": name}))}),
        "resources/list" => {
            json!({"resources": all(&offers.resources, |uri| json!({"uri": uri, "name": uri}))})
        }
        "resources/templates/list" => json!({"resourceTemplates": []}),
        "tools/call" => json!({"content": [{"type": "text", "text": "done"}]}),
        "prompts/get" => {
            json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Go on."}}]})
        }
        "resources/read" => json!({"contents": [{"uri": params["uri"], "text": "what is there"}]}),
        _ => {
            return json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}});
        }
    };
    json!({"jsonrpc": "2.0", "id": id, "result": result})
}
