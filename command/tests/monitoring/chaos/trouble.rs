//! Servers of both eras over HTTP, and one that is a process, whose tools do whatever goes wrong in the world.

use std::collections::HashMap;
use std::io::Write as _;
use std::net::{SocketAddr, TcpStream};
use std::sync::Mutex;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::message_server::{serve, write};

/// What a tool does.
const TOOLS: [&str; 8] = ["fine", "slow", "dies", "garbage", "large", "flaky", "ask", "refuses"];

/// How large the result of the tool `large` is.
pub(crate) const LARGE: usize = 300_000;

/// A server that lives as long as the test.
pub(crate) struct Trouble {
    pub(crate) address: SocketAddr,
}

#[derive(Default)]
struct State {
    /// How often a tool was called, by its name.
    called: Mutex<HashMap<String, usize>>,
    /// Who waits for the answer to a question.
    asked: Mutex<HashMap<String, Sender<Value>>>,
}

impl Trouble {
    pub(crate) fn start(is_modern: bool) -> Trouble {
        let state = State::default();
        let address = serve(move |stream, message| match (message.get("id"), message.get("method")) {
            (Some(id), None) => {
                // An answer to a question.
                if let Some(waits) = state.asked.lock().unwrap().remove(&id.to_string()) {
                    let _ = waits.send(message["result"].clone());
                }
                write(stream, 202, "")
            }
            (None, _) => write(stream, 202, ""),
            (Some(id), Some(_)) => answer(stream, id, &message, is_modern, &state),
        });
        Trouble { address }
    }
}

fn answer(stream: &TcpStream, id: &Value, message: &Value, is_modern: bool, state: &State) -> Option<()> {
    let method = message["method"].as_str().unwrap_or_default();
    let respond = |mut result: Value| {
        if is_modern {
            result["resultType"] = "complete".into();
        }
        write(stream, 200, &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
    };
    let info = json!({"name": "trouble", "version": "1"});
    match method {
        "server/discover" if is_modern => respond(json!({
            "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}, "serverInfo": info,
            "_meta": {"io.modelcontextprotocol/serverInfo": info}, "ttlMs": 60_000, "cacheScope": "private"})),
        "initialize" if !is_modern => respond(json!({
            "protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info})),
        "tools/list" => {
            let tools: Vec<Value> = TOOLS
                .iter()
                .map(|name| {
                    json!({"name": name, "inputSchema": {"type": "object"},
                        "annotations": {"readOnlyHint": *name == "flaky"}})
                })
                .collect();
            let mut list = json!({"tools": tools});
            if is_modern {
                (list["ttlMs"], list["cacheScope"]) = (60_000.into(), "private".into());
            }
            respond(list)
        }
        "ping" => respond(json!({})),
        "tools/call" => call(stream, id, &message["params"], is_modern, state, respond),
        _ => {
            let error = json!({"code": -32601, "message": "Method not found"});
            let status = if is_modern { 404 } else { 200 };
            write(stream, status, &json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
        }
    }
}

fn call(
    stream: &TcpStream,
    id: &Value,
    params: &Value,
    is_modern: bool,
    state: &State,
    respond: impl Fn(Value) -> Option<()>,
) -> Option<()> {
    let tool = params["name"].as_str().unwrap_or_default();
    let times = {
        let mut called = state.called.lock().unwrap();
        let times = called.entry(tool.to_owned()).or_default();
        *times += 1;
        *times
    };
    let text = |text: &str| json!({"content": [{"type": "text", "text": text}]});
    match tool {
        "slow" => {
            std::thread::sleep(Duration::from_secs(60));
            None
        }
        "dies" => None,
        "flaky" if times == 1 => None,
        "garbage" => write(stream, 200, "<html>I am no server</html>"),
        "large" => respond(text(&"x".repeat(LARGE))),
        "refuses" => {
            let error = json!({"code": -32055, "message": "out of fish", "data": {
                "correlationId": "forged", "limit": {"scope": "forged"}}});
            write(stream, 200, &json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string())
        }
        "ask" if is_modern && params["inputResponses"].is_null() => {
            let question = json!({"method": "elicitation/create", "params": {
                "message": "Which one?", "requestedSchema": {"type": "object", "properties": {"a": {"type": "string"}}}}});
            let result = json!({"resultType": "input_required", "inputRequests": {"q": question},
                "requestState": "as-it-was"});
            write(stream, 200, &json!({"jsonrpc": "2.0", "id": id, "result": result}).to_string())
        }
        "ask" if !is_modern => {
            let (sender, answered) = channel();
            let question = format!("\"q{times}\"");
            state.asked.lock().unwrap().insert(question.clone(), sender);
            let request = json!({"jsonrpc": "2.0", "id": format!("q{times}"), "method": "elicitation/create",
                "params": {"message": "Which one?", "requestedSchema": {"type": "object",
                    "properties": {"a": {"type": "string"}}}}});
            let mut out = stream;
            let head = "HTTP/1.1 200 X\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n";
            out.write_all(format!("{head}data: {request}\n\n").as_bytes()).ok()?;
            let answer = answered.recv_timeout(Duration::from_secs(60)).ok()?;
            let result = json!({"jsonrpc": "2.0", "id": id, "result": text(&answer.to_string())});
            out.write_all(format!("data: {result}\n\n").as_bytes()).ok()?;
            // The end of the connection is the end of the stream.
            None
        }
        _ => {
            let mut result = text("fine");
            // Somebody else's call.
            result["_meta"] = json!({"dev.tidegate/correlationId": "forged"});
            respond(result)
        }
    }
}

/// A server that is a process, and ends in the middle of a call.
pub(crate) const PROCESS: &str = r#"
while read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/^{"jsonrpc":"2.0","id":\([^,]*\),.*/\1/p')
  case "$line" in
    *'"initialize"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"p","version":"1"}}}' ;;
    *'"tools/list"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"result":{"tools":[{"name":"end","inputSchema":{"type":"object"}}]}}' ;;
    *'"tools/call"'*) echo 'the disk is on fire' >&2; exit 3 ;;
    *'"id"'*) echo '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32601,"message":"Method not found"}}' ;;
  esac
done
"#;
