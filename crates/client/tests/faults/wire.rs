//! What both misbehaving servers say while they behave.

use serde_json::{Value, json};

/// Which era a server speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Era {
    Modern,
    Legacy,
}

/// Every tool there is; most are named after what goes wrong when they are called.
pub(crate) const TOOLS: &[&str] = &[
    "echo",
    "slow",
    "hang",
    "crash",
    "crash_half",
    "twice",
    "wrong_id",
    "duplicate",
    "garbage",
    "utf8",
    "html",
    "oversize",
    "oversize_event",
    "drip",
    "flood",
    "flood_forever",
    "ask",
    "ask_forever",
    "half_closed",
    "half_chunked",
    "resume",
    "close_output",
    "close_input",
    "deaf",
];

/// A request as it came.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Value,
}

impl Asked {
    /// A request, or `None` if the message is something else.
    pub(crate) fn read(message: &Value) -> Option<Asked> {
        let id = message.get("id")?.clone();
        let method = message.get("method")?.as_str()?.to_owned();
        Some(Asked { id, method, params: message.get("params").cloned().unwrap_or_default() })
    }

    /// The tool that is called.
    pub(crate) fn tool(&self) -> &str {
        self.params["name"].as_str().unwrap_or_default()
    }

    /// An argument of the tool.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.params["arguments"][name].as_u64().unwrap_or_default()
    }

    pub(crate) fn progress_token(&self) -> Value {
        self.params["_meta"]["progressToken"].clone()
    }

    /// The answer of a tool.
    pub(crate) fn text(&self, text: &str) -> String {
        self.result(json!({"resultType": "complete", "content": [{"type": "text", "text": text}]}))
    }

    pub(crate) fn result(&self, result: Value) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "result": result}).to_string()
    }

    pub(crate) fn error(&self, code: i32, message: &str) -> String {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": code, "message": message}}).to_string()
    }

    /// One page of the list of tools. `start` may ask for lists that do not end.
    pub(crate) fn page(&self, start: &str) -> String {
        let mut page = json!({"resultType": "complete", "ttlMs": 60_000, "cacheScope": "public"});
        let cursor = self.params["cursor"].as_str().unwrap_or("0").to_owned();
        match start {
            "same_page" => page["nextCursor"] = "0".into(),
            "endless_pages" => {
                page["nextCursor"] = (cursor.parse::<u64>().unwrap_or_default() + 1).to_string().into();
            }
            _ => {}
        }
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        page["tools"] = TOOLS.iter().map(|name| tool(name)).collect();
        self.result(page)
    }

    /// What every server can answer; `None` for tool calls.
    pub(crate) fn plain(&self, era: Era, start: &str) -> Option<String> {
        let capabilities = json!({"tools": {}, "logging": {}});
        Some(match (self.method.as_str(), era) {
            ("server/discover", Era::Modern) => {
                let version = if start == "unknown_version" { "2099-12-31" } else { "2026-07-28" };
                self.result(json!({
                    "resultType": "complete", "supportedVersions": [version], "capabilities": capabilities,
                    "ttlMs": 0, "cacheScope": "public",
                }))
            }
            ("initialize", Era::Legacy) => {
                let version = if start == "unknown_version" { "2099-12-31" } else { "2025-11-25" };
                self.result(json!({
                    "protocolVersion": version, "capabilities": capabilities,
                    "serverInfo": {"name": "misbehaving", "version": "1"},
                }))
            }
            ("ping" | "logging/setLevel", Era::Legacy) => self.result(json!({})),
            ("tools/list", _) => self.page(start),
            ("tools/call", _) => return None,
            _ => self.error(-32601, "Method not found"),
        })
    }

    /// A question to whoever calls, in the middle of a call (legacy).
    pub(crate) fn question(id: u64) -> String {
        let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        json!({"jsonrpc": "2.0", "id": id, "method": "elicitation/create",
            "params": {"message": "Who are you?", "requestedSchema": form}})
        .to_string()
    }

    /// The same as the answer to a call (modern).
    pub(crate) fn input_required(&self, round: u64) -> String {
        let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
        let question = json!({"method": "elicitation/create",
            "params": {"mode": "form", "message": "Who are you?", "requestedSchema": form}});
        self.result(json!({"resultType": "input_required", "inputRequests": {"who": question},
            "requestState": format!("round {round}")}))
    }
}

pub(crate) fn notification(method: &str, params: Value) -> String {
    json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string()
}

/// A log message and a progress notification of a call.
pub(crate) fn chatter(asked: &Asked, n: u64) -> [String; 2] {
    let padding = "x".repeat(100);
    [
        notification("notifications/message", json!({"level": "info", "data": format!("{n} {padding}")})),
        notification(
            "notifications/progress",
            json!({"progressToken": asked.progress_token(), "progress": n}),
        ),
    ]
}
