//! [`Site`]: `tidegate serve` with a memory of its own.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http;

/// A gateway with a memory, which both go when the test is over.
pub(crate) struct Site {
    child: Child,
    folder: TempDir,
    pub(crate) port: u16,
    prefix: &'static str,
}

impl Site {
    /// One in which nothing is remembered, its tools as they are.
    pub(crate) fn start() -> Site {
        Site::with_prefix("")
    }

    /// One whose tools have this before their names.
    pub(crate) fn with_prefix(prefix: &'static str) -> Site {
        Site::with(prefix, "")
    }

    /// One that pages of this origin may call.
    pub(crate) fn for_pages_of(origin: &str) -> Site {
        Site::with("", &format!("allow_origins = [\"{origin}\"]\n"))
    }

    fn with(prefix: &'static str, more: &str) -> Site {
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("tidegate.toml");
        let server = format!("{more}[servers.memory]\nbuiltin = \"memory\"\nprefix = \"{prefix}\"\n");
        std::fs::write(&config, server).unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_tidegate"))
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&config)
            .env("TIDEGATE_MEMORY_FILE", folder.path().join("memory.db"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
        let greeting: Vec<String> = lines.by_ref().take(4).collect();
        // Whatever else it says is read, so that it never waits for somebody to.
        std::thread::spawn(move || lines.for_each(drop));
        let port = greeting[0].split("127.0.0.1:").nth(1).and_then(|rest| rest.split('/').next());
        let port = port.and_then(|port| port.parse().ok()).unwrap_or_else(|| panic!("no port: {greeting:?}"));
        assert!(greeting[3].ends_with("/memory"), "the page is told of: {greeting:?}");
        let site = Site { child, folder, port, prefix };
        // The gateway answers while the server behind it is still starting.
        let start = Instant::now();
        while !site.ask("tools/list", json!({})).to_string().contains("read_graph") {
            assert!(start.elapsed() < Duration::from_secs(30), "the memory never came");
            std::thread::sleep(Duration::from_millis(20));
        }
        site
    }

    /// A folder that goes with it.
    pub(crate) fn folder(&self) -> &std::path::Path {
        self.folder.path()
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}/memory", self.port)
    }

    /// Calls a tool of the memory.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        let params = json!({"name": format!("{}{tool}", self.prefix), "arguments": arguments});
        let result = self.ask("tools/call", params);
        assert_ne!(result["isError"], json!(true), "{tool}: {result}");
        // The text says the same, also for clients that know nothing of structured results.
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap_or_default()
    }

    /// The result of a request to the endpoint.
    fn ask(&self, method: &str, params: Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let answer = http::request(self.port, "POST", "/mcp", Some(&body));
        let mut message: Value = serde_json::from_str(&answer.body).unwrap();
        assert!(message["result"].is_object(), "{method}: {message}");
        message["result"].take()
    }

    /// Remembers an entity.
    pub(crate) fn remember(&self, name: &str, kind: &str, observations: &[&str]) {
        let entity = json!({"name": name, "entityType": kind, "observations": observations});
        self.call("create_entities", json!({"entities": [entity]}));
    }

    /// Remembers a relation.
    pub(crate) fn relate(&self, from: &str, kind: &str, to: &str) {
        let relation = json!({"from": from, "to": to, "relationType": kind});
        self.call("create_relations", json!({"relations": [relation]}));
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
