//! Clients of others go on when the gateway is killed and started again: those of the older era with the session they have.

use std::process::Stdio;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

use crate::gateway::Gateway;
use crate::paths;
use crate::server::Program;

const PATIENCE: Duration = Duration::from_secs(120);

/// A client to be connected. It says when it is ready, waits for a line, goes on, and says what came of it.
pub(crate) struct Client {
    pub(crate) name: &'static str,
    pub(crate) program: Program,
    /// Whether it listens to a resource as well.
    pub(crate) subscribes: bool,
}

/// Connects these clients to a gateway, kills that, starts another in its place and lets the clients go on.
pub(crate) async fn go_on_after_kill_9<const N: usize>(clients: [Client; N]) {
    let dir = paths::scratch(&format!("restart-{}", clients[0].name));
    let file = dir.join("tidegate.toml");
    let text = "state_dir = \"state\"\n[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n[memory]\nstore = \"memory.db\"\n";
    std::fs::write(&file, text).expect("a writable target directory");
    let gateway = Gateway::start(&file).await;
    let url = gateway.url.clone();
    let connected = join_all(clients.iter().map(|client| Connected::open(client, &url))).await;
    // What they have subscribed to is written within a second.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let address = url.trim_start_matches("http://").split('/').next().expect("an address").to_owned();
    gateway.kill().await;
    let gateway = Gateway::start_at(&file, &address).await;
    let done = join_all(connected.into_iter().map(Connected::go_on)).await;
    for (client, done) in clients.iter().zip(done) {
        assert_eq!(done, json!({"same": true, "subscribed": client.subscribes}), "{}", client.name);
    }
    gateway.stop().await;
}

/// A client that is connected.
struct Connected {
    name: &'static str,
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Connected {
    async fn open(client: &Client, url: &str) -> Connected {
        let Program { program, args, env } = &client.program;
        let mut child = Command::new(program)
            .args(args)
            .args([url, client.name])
            .envs(env)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(paths::log())
            .kill_on_drop(true)
            .spawn()
            .expect("it starts");
        let lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let mut connected = Connected { name: client.name, child, lines };
        assert_eq!(connected.line().await, "ready", "{}", client.name);
        connected
    }

    async fn line(&mut self) -> String {
        let line = tokio::time::timeout(PATIENCE, self.lines.next_line()).await;
        let line = line.unwrap_or_else(|_| panic!("{}: nothing within {PATIENCE:?}", self.name));
        line.expect("a line").unwrap_or_else(|| panic!("{}: it has ended, see servers.log", self.name))
    }

    async fn go_on(mut self) -> Value {
        self.child.stdin.take().expect("a pipe").write_all(b"\n").await.expect("it reads");
        let line = self.line().await;
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{}: {error}: {line}", self.name))
    }
}
