//! connect: raw lines of either era in, a server of either era behind, and questions in both directions.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{Receiver, channel};

use serde_json::{Value, json};

use crate::rig::{Folder, PATIENCE, command, with_demo};

/// A running `tidegate connect`, spoken to in raw lines.
struct Bridge {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<String>,
    _folder: Folder,
}

impl Bridge {
    fn start(args: &[String]) -> Bridge {
        let folder = Folder::new();
        let mut connect = command(folder.path());
        connect.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = connect.spawn().unwrap();
        let (sender, lines) = channel();
        let output = BufReader::new(child.stdout.take().unwrap());
        std::thread::spawn(move || {
            for line in output.lines() {
                let _ = sender.send(line.unwrap());
            }
        });
        Bridge { input: child.stdin.take(), child, lines, _folder: folder }
    }

    fn to(era: &str) -> Bridge {
        Bridge::start(&with_demo(&["connect"], era))
    }

    fn send(&mut self, message: Value) {
        writeln!(self.input.as_mut().unwrap(), "{message}").unwrap();
    }

    /// The next line, which is a message: nothing else may be on standard output.
    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).unwrap();
        let message: Value = serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert_eq!(message["jsonrpc"], "2.0", "{line}");
        message
    }

    fn ask(&mut self, id: u32, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let answer = self.next();
        assert_eq!(answer["id"], id, "{answer}");
        answer
    }

    fn initialize(&mut self) -> Value {
        let answer = self.ask(
            1,
            "initialize",
            json!({"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}},
                "clientInfo": {"name": "raw", "version": "1"}}),
        );
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        answer
    }

    /// Closes standard input and waits for the end.
    fn end(mut self) {
        self.input.take();
        assert!(self.lines.recv_timeout(PATIENCE).is_err(), "something came after the end");
        assert_eq!(self.child.wait().unwrap().code(), Some(0));
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn meta() -> Value {
    json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}}},
    })
}

#[test]
fn a_legacy_client_in_front_of_both_eras() {
    for era in ["legacy", "modern"] {
        let mut bridge = Bridge::to(era);
        let hello = bridge.initialize();
        assert_eq!(hello["result"]["protocolVersion"], "2025-06-18", "{hello}");
        assert_eq!(hello["result"]["serverInfo"]["name"], "tidegate");
        let tools = bridge.ask(2, "tools/list", json!({}));
        assert_eq!(tools["result"]["tools"].as_array().unwrap().len(), 4);
        let sum = bridge.ask(3, "tools/call", json!({"name": "add", "arguments": {"a": 1, "b": 2}}));
        assert_eq!(sum["result"]["structuredContent"]["sum"], 3.0);

        bridge.send(json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call",
            "params": {"name": "greet", "arguments": {}}}));
        let question = bridge.next();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        assert_eq!(question["params"]["message"], "[demo] What is your name?");
        bridge.send(json!({"jsonrpc": "2.0", "id": question["id"],
            "result": {"action": "accept", "content": {"name": "Ada"}}}));
        let greeting = bridge.next();
        assert_eq!(
            (&greeting["id"], &greeting["result"]["content"][0]["text"]),
            (&4.into(), &"Hello, Ada!".into())
        );
        bridge.end();
    }
}

#[test]
fn a_modern_client_in_front_of_both_eras() {
    for era in ["legacy", "modern"] {
        let mut bridge = Bridge::to(era);
        let found = bridge.ask(1, "server/discover", json!({"_meta": meta()}));
        assert_eq!(found["result"]["supportedVersions"][0], "2026-07-28", "{found}");
        let asked = bridge.ask(2, "tools/call", json!({"name": "greet", "arguments": {}, "_meta": meta()}));
        assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
        let questions = asked["result"]["inputRequests"].as_object().unwrap();
        let (key, question) = questions.iter().next().unwrap();
        assert_eq!(question["params"]["message"], "[demo] What is your name?");
        let mut params = json!({"name": "greet", "arguments": {}, "_meta": meta(), "inputResponses": {
            key: {"action": "accept", "content": {"name": "Ada"}}}});
        params["requestState"] = asked["result"]["requestState"].clone();
        let greeting = bridge.ask(3, "tools/call", params);
        assert_eq!(greeting["result"]["content"][0]["text"], "Hello, Ada!", "{greeting}");
        bridge.end();
    }
}

#[test]
fn progress_comes_through() {
    let mut bridge = Bridge::to("modern");
    bridge.initialize();
    bridge.send(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params":
        {"name": "count", "arguments": {"to": 2}, "_meta": {"progressToken": "p"}}}));
    let first = bridge.next();
    assert_eq!(first["method"], "notifications/progress", "{first}");
    assert_eq!((&first["params"]["progressToken"], &first["params"]["total"]), (&"p".into(), &2.into()));
    assert_eq!(bridge.next()["params"]["message"], "counted to 2");
    assert_eq!(bridge.next()["result"]["content"][0]["text"], "Counted to 2");
    bridge.end();
}

#[test]
fn a_server_that_cannot_be_reached_is_an_error_that_the_client_can_show() {
    let args = ["connect", "http://127.0.0.1:1/mcp"].map(str::to_owned);
    let mut bridge = Bridge::start(&args);
    let refused = bridge.initialize();
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    // Where it is and why it cannot be reached is in the log: a model reads this too.
    assert_eq!(message, "The server cannot be reached", "{refused}");
    bridge.end();
}
