//! Servers of 2025-11-25 that have whatever tools, prompts and resources a test wants, and do nothing.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

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
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let upstream = Upstream { address: listener.local_addr().unwrap(), asked: Arc::default() };
        let asked = upstream.asked.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (offers, asked) = (offers.clone(), asked.clone());
                std::thread::spawn(move || serve(&stream, &offers, &asked));
            }
        });
        upstream
    }

    /// How often it was asked for something by this method.
    pub(crate) fn count(&self, method: &str) -> usize {
        self.asked.lock().unwrap().iter().filter(|message| message["method"] == method).count()
    }
}

/// Answers the requests of a connection.
fn serve(stream: &TcpStream, offers: &Offers, asked: &Mutex<Vec<Value>>) {
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
        let (status, body) = match (head.starts_with("post"), message.get("id")) {
            (false, _) => (405, String::new()),
            (true, None) => (202, String::new()),
            (true, Some(id)) => (200, answer(id, &message, offers).to_string()),
        };
        asked.lock().unwrap().push(message);
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        if (&mut (&*stream)).write_all((head + &body).as_bytes()).is_err() {
            return;
        }
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
