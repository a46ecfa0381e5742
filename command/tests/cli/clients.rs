//! What clients meet at a gateway over its standard streams: retries as they write them, and changes only where there are
//! any.

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use serde_json::{Value, json};

use crate::rig::{Folder, PATIENCE, TIDEGATE, command, until};

/// A gateway in front of the demonstration server, which is a process of the old era.
struct Gateway {
    child: Child,
    to: ChildStdin,
    lines: Receiver<String>,
}

impl Gateway {
    fn start(folder: &Folder) -> Gateway {
        folder.write("elsewhere/empty", "");
        let pid = folder.path().join("pid").display().to_string();
        let demo = format!("{TIDEGATE} --log-level error serve --demo --stdio --era legacy");
        let script = format!("echo $$ > {pid}; exec {demo}");
        let server = format!("[servers.demo]\ncommand = [\"sh\", \"-c\", {script:?}]\ncwd = \"elsewhere\"\n");
        folder.write("tidegate.toml", &server);
        let mut served = command(folder.path());
        served.args(["--log-level", "error", "serve", "--stdio"]);
        let mut child = served.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let (to, from) = (child.stdin.take().unwrap(), BufReader::new(child.stdout.take().unwrap()));
        let (said, lines) = channel();
        std::thread::spawn(move || from.lines().map_while(Result::ok).all(|line| said.send(line).is_ok()));
        Gateway { child, to, lines }
    }

    /// Sends a line, and waits for the answer to the request of this id. What comes before it is noted.
    fn send(&mut self, id: u32, line: &str, noted: &mut Vec<String>) -> Value {
        writeln!(self.to, "{line}").unwrap();
        loop {
            let line = self.lines.recv_timeout(PATIENCE).expect("an answer in time");
            let message: Value = serde_json::from_str(&line).unwrap();
            if message["id"] == id && message.get("method").is_none() {
                return message;
            }
            noted.push(line);
        }
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_retry_may_put_the_name_before_the_arguments() {
    let folder = Folder::new();
    let mut gateway = Gateway::start(&folder);
    let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientInfo":{"name":"c","version":"1"},"io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}"#;
    // Whoever lists waits for the server to start.
    let list = format!(r#"{{"jsonrpc":"2.0","id":0,"method":"tools/list","params":{{{meta}}}}}"#);
    until(|| gateway.send(0, &list, &mut Vec::new()).to_string().contains("demo_greet"));
    let mut make = |id: u32, params: String| {
        let line =
            format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{{params},{meta}}}}}"#);
        let answer = gateway.send(id, &line, &mut Vec::new());
        assert!(answer["result"].is_object(), "{answer}");
        answer["result"].clone()
    };
    let asked = make(1, r#""arguments":{},"name":"demo_greet""#.to_owned());
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let answers = r#""inputResponses":{"name":{"action":"accept","content":{"name":"Ann"}}}"#;
    let state = &asked["requestState"];
    let greeted =
        make(2, format!(r#""name":"demo_greet","requestState":{state},{answers},"arguments":{{ }}"#));
    assert_eq!(greeted["content"][0]["text"], "Hello, Ann!", "{greeted}");
}

#[test]
fn a_process_that_was_started_again_is_no_news_if_it_lists_the_same() {
    let folder = Folder::new();
    let mut gateway = Gateway::start(&folder);
    let mut noted = Vec::new();
    let request = |id: u32, method: &str, params: Value| {
        json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).to_string()
    };
    let info = json!({"name": "c", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    gateway.send(1, &request(1, "initialize", hello), &mut noted);
    writeln!(gateway.to, "{}", json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).unwrap();
    let listed = gateway.send(2, &request(2, "tools/list", json!({})), &mut noted);
    assert!(listed["result"]["tools"].as_array().is_some_and(|tools| tools.len() > 2), "{listed}");
    let echo = json!({"name": "demo_echo", "arguments": {"message": "hi"}});
    gateway.send(3, &request(3, "tools/call", echo.clone()), &mut noted);
    noted.clear();
    let pid = folder.read("pid");
    assert!(Command::new("kill").args(["-9", pid.trim()]).status().unwrap().success());
    let mut id = 3;
    // The call that finds the process gone may fail.
    until(|| {
        id += 1;
        let answer = gateway.send(id, &request(id, "tools/call", echo.clone()), &mut noted);
        let now = folder.read("pid");
        answer["result"]["content"][0]["text"] == "hi" && !now.trim().is_empty() && now != pid
    });
    // Every second it is seen to that somebody listens to the process.
    loop {
        match gateway.lines.recv_timeout(Duration::from_secs(3)) {
            Ok(line) => noted.push(line),
            Err(RecvTimeoutError::Timeout) => break,
            Err(gone) => panic!("{gone}"),
        }
    }
    let news: Vec<_> = noted.iter().filter(|line| line.contains("list_changed")).collect();
    assert!(news.is_empty(), "{news:?}");
}
