//! The program with an audit trail.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{Answer, request, until};

/// A folder with a configuration, a file of API keys, and whatever the program leaves there.
pub(crate) struct Folder(TempDir);

const CONFIG: &str =
    "state_dir = \"state\"\n[auth]\nkeys = \"keys.toml\"\n[servers.demo]\nbuiltin = \"demo\"\n[audit]\n";

impl Folder {
    /// With these fields in `[audit]`.
    pub(crate) fn new(audit: &str) -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.write("tidegate.toml", &format!("{CONFIG}{audit}\n"));
        folder.key("nobody");
        folder
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        String::from_utf8_lossy(&std::fs::read(self.path(name)).unwrap_or_default()).into_owned()
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    /// A command line of the program in here.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        command(self.0.path(), arguments)
    }

    /// Runs one to its end.
    pub(crate) fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.command(arguments).stdin(Stdio::null()).output().unwrap())
    }

    /// A new API key of somebody.
    pub(crate) fn key(&self, name: &str) -> String {
        self.run(&["keys", "add", name, "--tenant", "reef"]).exits(0).out.trim_end().to_owned()
    }

    /// Serves.
    pub(crate) fn serve(&self) -> Served {
        let file = |name: &str| std::fs::File::create(self.path(name)).unwrap();
        let mut command = self.command(&["serve", "--listen", "127.0.0.1:0"]);
        let child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        let mut served = Served { child, address: ([127, 0, 0, 1], 0).into() };
        until("it is ready", || {
            assert!(served.child.try_wait().unwrap().is_none(), "{}", self.read("err"));
            self.read("err").contains(" server ready: ")
        });
        let said = self.read("out") + &self.read("err");
        let url = said.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next());
        served.address = url.unwrap().parse().unwrap();
        served
    }

    /// The records that are in the trail.
    pub(crate) fn records(&self) -> Vec<Value> {
        let lines = self.read("audit.jsonl");
        let records = lines.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        records.filter(|record| record["kind"] != "file").collect()
    }
}

fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
    command.env_clear().env("HOME", folder).current_dir(folder).args(arguments);
    command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command
}

/// A program that serves. Killed at the end.
pub(crate) struct Served {
    child: Child,
    address: SocketAddr,
}

impl Served {
    /// Calls a tool with this key; without credentials if there is none.
    pub(crate) fn call(&self, key: Option<&str>, tool: &str, arguments: Value) -> Answer {
        let params = json!({"name": tool, "arguments": arguments, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {}}});
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).to_string();
        let bearer = key.map(|key| format!("Bearer {key}"));
        let mut headers =
            vec![("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
        headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
        request(self.address, "POST", "/mcp", &headers, &body)
    }

    /// Ends it as operators do, and waits.
    pub(crate) fn stop(mut self) {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").arg(id).status().unwrap().success());
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }

    /// Ends it as nobody should.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What came of a command.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Done {
    fn of(output: Output) -> Done {
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Done { code: output.status.code(), out: text(output.stdout), err: text(output.stderr) }
    }

    #[track_caller]
    pub(crate) fn exits(self, code: i32) -> Done {
        assert_eq!(self.code, Some(code), "{self:?}");
        self
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}
