//! The program under attack.

use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::{self, Answer};

/// Longer than this, and something hangs.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// What somebody else waits at most while an attack is under way. Wide: it tells slow from locked out.
const OTHERS_WAIT: Duration = Duration::from_secs(30);

/// A served configuration, in a directory of its own. Killed and removed at the end.
pub(crate) struct Gateway {
    pub(crate) child: Child,
    pub(crate) address: SocketAddr,
    pub(crate) folder: TempDir,
}

impl Gateway {
    /// Serves the memory alone, as without any configuration.
    pub(crate) fn memory() -> Gateway {
        Gateway::start("[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n")
    }

    /// Serves this configuration.
    pub(crate) fn start(config: &str) -> Gateway {
        Gateway::start_with(config, |_| {})
    }

    /// The same, with something changed about the command line.
    pub(crate) fn start_with(config: &str, change: impl FnOnce(&mut Command)) -> Gateway {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("tidegate.toml"), config).unwrap();
        let file = |name: &str| std::fs::File::create(folder.path().join(name)).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_tidegate"));
        command.env_clear().env("HOME", folder.path()).env("PATH", std::env::var_os("PATH").unwrap());
        command.args(["serve", "--listen", "127.0.0.1:0"]).current_dir(&folder);
        change(&mut command);
        let child = command.stdin(Stdio::null()).stdout(file("out")).stderr(file("err")).spawn().unwrap();
        let mut gateway = Gateway { child, address: ([127, 0, 0, 1], 0).into(), folder };
        gateway.address = gateway.wait_for_address();
        gateway
    }

    fn wait_for_address(&mut self) -> SocketAddr {
        let mut found = None;
        until("the endpoint is said", || {
            let out = std::fs::read_to_string(self.folder.path().join("out")).unwrap_or_default();
            let address = out.split("http://").nth(1).and_then(|rest| rest.split("/mcp").next());
            found = address.and_then(|address| address.parse().ok());
            if let Some(status) = self.child.try_wait().unwrap() {
                panic!("it ended at once with {status}: {}", self.log());
            }
            found.is_some()
        });
        found.unwrap()
    }

    /// What it has logged so far.
    pub(crate) fn log(&self) -> String {
        String::from_utf8_lossy(&std::fs::read(self.folder.path().join("err")).unwrap_or_default())
            .into_owned()
    }

    /// A POST with this body.
    pub(crate) fn post(&self, headers: &[(&str, &str)], body: &[u8]) -> Answer {
        http::request(self.address, "POST", headers, body)
    }

    /// Calls a tool as a modern client; gives the whole message that comes back.
    pub(crate) fn call(&self, tool: &str, arguments: Value) -> Value {
        let body = http::modern(1, "tools/call", json!({"name": tool, "arguments": arguments}));
        let headers =
            [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
        self.post(&headers, &body).json()
    }

    /// Opens a legacy session; gives its id.
    pub(crate) fn initialize(&self, revision: &str) -> String {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
            "protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "attacks", "version": "1"}}});
        let answer = self.post(&[], body.to_string().as_bytes());
        let session = answer.header("mcp-session-id").unwrap_or_else(|| panic!("{answer:?}")).to_owned();
        let told = self.post(
            &[("Mcp-Session-Id", &session)],
            br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        );
        assert_eq!(told.status, 202);
        session
    }

    /// Resident memory now, in MiB.
    pub(crate) fn resident(&self) -> u64 {
        self.memory_line("VmRSS:")
    }

    /// The most resident memory that it ever had, in MiB.
    pub(crate) fn peak(&self) -> u64 {
        self.memory_line("VmHWM:")
    }

    fn memory_line(&self, name: &str) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find(|line| line.starts_with(name)).unwrap();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
    }

    /// Somebody else lists the tools meanwhile, and is answered.
    #[track_caller]
    pub(crate) fn answers_others(&self) {
        let started = Instant::now();
        let body = http::modern(7, "tools/list", json!({}));
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
        let answer = self.post(&headers, &body);
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(answer.json()["result"]["tools"].is_array(), "{answer:?}");
        assert!(started.elapsed() < OTHERS_WAIT, "others waited for {:?}", started.elapsed());
    }

    /// Sends a signal, such as `TERM`.
    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.child.id().to_string()).status();
        assert!(sent.unwrap().success());
    }

    /// SIGTERM ends it in time, and well.
    #[track_caller]
    pub(crate) fn ends_cleanly(&mut self) {
        self.signal("TERM");
        let mut ended = None;
        until("it ends on SIGTERM", || {
            ended = self.child.try_wait().unwrap();
            ended.is_some()
        });
        assert_eq!(ended.unwrap().code(), Some(0), "{}", self.log());
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until something is so.
#[track_caller]
pub(crate) fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < PATIENCE, "it does not happen: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}
