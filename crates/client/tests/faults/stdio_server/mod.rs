//! The misbehaving server over stdio: a process of its own, in which this program runs again.
//!
//! libtest greets on standard output before it lets us run, so that every test meets a server that prints a banner.

mod tools;

use std::collections::HashMap;
use std::io::{BufRead, Write};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use serde_json::Value;

use crate::wire::{Asked, Era};

/// Where the server notes what it sees. Also how its processes are recognized.
pub(crate) const LOG: &str = "FAULT_LOG";
/// The era it speaks.
pub(crate) const ERA: &str = "FAULT_ERA";
/// What it does wrong from the start.
pub(crate) const START: &str = "FAULT_START";

/// The server, shared by its threads.
pub(crate) struct Server {
    era: Era,
    start: String,
    log: Mutex<std::fs::File>,
    /// The client's answers to our questions, by id.
    answers: Mutex<HashMap<u64, Value>>,
    answered: Condvar,
}

/// Runs the server if this process was started for that, and does not come back then.
pub(crate) fn run_if_asked() {
    let Ok(log) = std::env::var(LOG) else { return };
    let before = std::fs::read_to_string(&log).unwrap_or_default().matches("start ").count();
    let log = std::fs::OpenOptions::new().create(true).append(true).open(log).expect("the log opens");
    let era = if std::env::var(ERA).as_deref() == Ok("legacy") { Era::Legacy } else { Era::Modern };
    let mut start = std::env::var(START).unwrap_or_default();
    if let Some(later) = start.strip_prefix("second:") {
        start = if before == 0 { String::new() } else { later.to_owned() };
    }
    if let Some(file) = start.strip_prefix("crash_while:") {
        start = if std::path::Path::new(file).exists() { "crash".to_owned() } else { String::new() };
    }
    let server =
        Server { era, start, log: Mutex::new(log), answers: Mutex::default(), answered: Condvar::new() };
    server.note(&format!("start {}", std::process::id()));
    Arc::new(server).serve();
    std::process::exit(0);
}

impl Server {
    fn note(&self, what: &str) {
        // In one piece, so that several processes can share the file.
        let line = format!("{what}\n");
        self.log.lock().unwrap().write_all(line.as_bytes()).expect("the log takes a line");
    }

    /// Writes bytes to standard output, past what libtest captures.
    fn write(&self, bytes: &[u8]) {
        let mut out = std::io::stdout().lock();
        if out.write_all(bytes).and_then(|()| out.flush()).is_err() {
            std::process::exit(0);
        }
    }

    fn say(&self, message: &str) {
        self.write(format!("{message}\n").as_bytes());
    }

    fn serve(self: Arc<Self>) {
        match self.start.as_str() {
            "crash" => {
                std::io::stderr().write_all(b"no configuration\n").ok();
                std::process::exit(3);
            }
            "mute" => stay(),
            "banner" => {
                self.write(b"\n\r\n \t \nWelcome to the server!\n{\"level\":30,\"msg\":\"listening\"}\n\xff\xfe\n[1,2]\nnull\n")
            }
            _ => {}
        }
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            let Ok(message) = serde_json::from_str::<Value>(&line) else { continue };
            self.take(&message);
        }
        if self.start == "stubborn" {
            stay();
        }
        self.note("end");
    }

    fn take(self: &Arc<Self>, message: &Value) {
        let Some(asked) = Asked::read(message) else { return self.told(message) };
        self.note(&format!("method {}", asked.method));
        match (self.start.as_str(), asked.method.as_str()) {
            ("mute_handshake", "initialize") => return,
            ("crash_after_handshake", "tools/list" | "tools/call") => std::process::exit(4),
            ("crash_at_ping", "ping") => std::process::exit(4),
            _ => {}
        }
        match asked.plain(self.era, &self.start) {
            Some(answer) => self.say(&answer),
            None => self.call(asked),
        }
    }

    /// A notification, or the answer to a question.
    fn told(&self, message: &Value) {
        match message["method"].as_str() {
            Some("notifications/cancelled") => self.note("cancelled"),
            Some("notifications/initialized") if self.start == "asks" => self.say(&Asked::question(900)),
            Some(_) => {}
            None => {
                self.note(&format!("answer {message}"));
                let id = message["id"].as_u64().unwrap_or_default();
                self.answers.lock().unwrap().insert(id, message.clone());
                self.answered.notify_all();
            }
        }
    }

    /// Asks and waits for the answer.
    fn ask(&self, id: u64) -> Value {
        self.say(&Asked::question(id));
        let mut answers = self.answers.lock().unwrap();
        loop {
            match answers.remove(&id) {
                Some(answer) => return answer,
                None => answers = self.answered.wait(answers).unwrap(),
            }
        }
    }
}

/// Does nothing, for longer than any test runs. Not for ever, should a test leave the process behind.
fn stay() {
    std::thread::sleep(Duration::from_secs(120));
    std::process::exit(0);
}
