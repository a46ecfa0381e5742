//! Callers of both eras in front of a gateway, at the other end of a stdio connection. They answer what they are asked
//! in the way of their era.

use std::collections::VecDeque;

use serde_json::{Value, json};
use tidegate_edge::stdio::{Settings, serve_streams};
use tidegate_service::Door;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

use crate::rig::in_time;

/// The revisions that callers speak, one of each kind.
pub(crate) const REVISIONS: [&str; 3] = ["2026-07-28", "2025-11-25", "2025-06-18"];

/// A caller with a name, which it gives to whoever asks.
pub(crate) struct Wire {
    name: &'static str,
    revision: &'static str,
    input: DuplexStream,
    output: BufReader<DuplexStream>,
    next: u64,
    /// Least severe log message it wants.
    pub(crate) level: Option<&'static str>,
    /// What it was told that was no answer.
    pub(crate) notes: VecDeque<Value>,
    /// What it was asked.
    pub(crate) asked: Vec<String>,
}

impl Wire {
    /// A caller who can be asked everything.
    pub(crate) async fn open(door: &impl Door, name: &'static str, revision: &'static str) -> Wire {
        let mut wire = Wire::silent(door, name, revision);
        if !wire.is_modern() {
            let hello = json!({"protocolVersion": revision, "capabilities": abilities(),
                "clientInfo": {"name": name, "version": "1"}});
            let answer = wire.request("initialize", hello).await;
            assert_eq!(answer["result"]["protocolVersion"], revision, "{answer}");
            wire.write(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        }
        wire
    }

    /// A caller who has not said anything yet.
    pub(crate) fn silent(door: &impl Door, name: &'static str, revision: &'static str) -> Wire {
        Wire::served(door, name, revision, Settings::default())
    }

    /// The same in front of an edge with these settings.
    pub(crate) fn served(
        door: &impl Door,
        name: &'static str,
        revision: &'static str,
        settings: Settings,
    ) -> Wire {
        let (input, server_input) = tokio::io::duplex(1 << 20);
        let (server_output, output) = tokio::io::duplex(1 << 20);
        tokio::spawn(serve_streams(door.clone(), settings, server_input, server_output));
        let output = BufReader::new(output);
        let (notes, asked) = (VecDeque::new(), Vec::new());
        Wire { name, revision, input, output, next: 0, level: None, notes, asked }
    }

    pub(crate) fn is_modern(&self) -> bool {
        self.revision == "2026-07-28"
    }

    /// Writes one line as it is.
    pub(crate) async fn write(&mut self, line: &str) {
        self.input.write_all(format!("{line}\n").as_bytes()).await.unwrap();
    }

    /// The next line as it is.
    pub(crate) async fn line(&mut self) -> String {
        let mut line = String::new();
        in_time("a line", self.output.read_line(&mut line)).await.unwrap();
        assert_eq!(line.pop(), Some('\n'), "the output has ended");
        line
    }

    async fn message(&mut self) -> Value {
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }

    /// Sends a request on the terms of its era, and gives its id.
    pub(crate) async fn send(&mut self, method: &str, mut params: Value) -> u64 {
        self.next += 1;
        if self.is_modern() {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = self.revision.into();
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": self.name, "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = abilities();
            if let Some(level) = self.level {
                meta["io.modelcontextprotocol/logLevel"] = level.into();
            }
        }
        let request = json!({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params});
        self.write(&request.to_string()).await;
        self.next
    }

    /// The answer to a request. What the server asks until then is answered; the rest is kept.
    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        loop {
            let message = self.message().await;
            match (message["method"].as_str(), message.get("id")) {
                (None, Some(_)) if message["id"] == id => return message,
                (None, _) => panic!("an answer to nothing: {message}"),
                (Some(method), Some(asked)) => {
                    let answer = self.reply(method, &message["params"]);
                    let answer = json!({"jsonrpc": "2.0", "id": asked, "result": answer});
                    self.write(&answer.to_string()).await;
                }
                (Some(_), None) => self.notes.push_back(message),
            }
        }
    }

    /// Makes a request and goes on until it is answered for good.
    pub(crate) async fn request(&mut self, method: &str, mut params: Value) -> Value {
        loop {
            let id = self.send(method, params.clone()).await;
            let answer = self.answer(id).await;
            let result = &answer["result"];
            if result["resultType"] != "input_required" {
                return answer;
            }
            let questions = result["inputRequests"].as_object().expect("questions").clone();
            let answers = questions.iter().map(|(key, asked)| {
                let answer = self.reply(asked["method"].as_str().unwrap(), &asked["params"]);
                (key.clone(), answer)
            });
            params["inputResponses"] = Value::Object(answers.collect());
            params["requestState"] = result["requestState"].clone();
        }
    }

    /// Calls a tool: what it says, and whether that is a failure.
    pub(crate) async fn call(&mut self, tool: &str) -> (String, bool) {
        let answer = self.request("tools/call", json!({"name": tool, "arguments": {}})).await;
        let text = answer["result"]["content"][0]["text"].as_str();
        let text = text.unwrap_or_else(|| panic!("{}: {tool}: {answer}", self.revision)).to_owned();
        (text, answer["result"]["isError"] == true)
    }

    /// The next thing that it is told and that is no answer.
    pub(crate) async fn told(&mut self) -> Value {
        match self.notes.pop_front() {
            Some(note) => note,
            None => {
                let message = self.message().await;
                assert!(message["method"].is_string() && message.get("id").is_none(), "{message}");
                message
            }
        }
    }

    /// Takes what it is told until something comes of this method.
    pub(crate) async fn told_of(&mut self, method: &str) -> Value {
        loop {
            let note = self.told().await;
            if note["method"] == method {
                return note;
            }
        }
    }

    fn reply(&mut self, method: &str, params: &Value) -> Value {
        self.asked.push(method.to_owned());
        match method {
            "elicitation/create" => {
                assert!(params["requestedSchema"].is_object(), "{params}");
                json!({"action": "accept", "content": {"name": self.name}})
            }
            "sampling/createMessage" => {
                let text = format!("{} says {}", self.name, params["messages"][0]["content"]["text"]);
                json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": text}})
            }
            "roots/list" => json!({"roots": [{"uri": format!("file:///{}", self.name)}]}),
            other => panic!("nobody can answer {other}"),
        }
    }
}

fn abilities() -> Value {
    json!({"elicitation": {"form": {}}, "sampling": {}, "roots": {"listChanged": true}})
}
