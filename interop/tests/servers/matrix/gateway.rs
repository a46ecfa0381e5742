//! [`Gateway`]: `tidegate serve`, and the servers behind it.

use std::fmt::Write as _;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, Target};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use super::mounts::Mount;
use crate::meeting::{Over, eventually};
use crate::place;
use crate::server::{Program, Serving, processes_with};

/// How long all the servers may take to start together, and the gateway to end them.
const PATIENCE: Duration = Duration::from_secs(300);

/// The gateway. Dropping it kills it, and what it started ends with its input.
pub(crate) struct Gateway {
    pub(crate) url: String,
    child: Child,
    mounts: Vec<Mount>,
    /// The words in the command lines of what the gateway starts.
    marks: Vec<String>,
    /// What it does not start.
    _listening: Vec<Serving>,
}

impl Gateway {
    /// Starts the servers that listen, and the gateway, and waits until it has read all lists.
    pub(crate) async fn start(mounts: Vec<Mount>) -> Gateway {
        let (mut marks, mut listening) = (Vec::new(), Vec::new());
        // As busy as the machine may be, only what hangs takes that long.
        let mut text = "state_dir = false\n[defaults]\ntimeout = \"2m\"\nstart_timeout = \"4m\"\n".to_owned();
        for mount in &mounts {
            let _ = write!(text, "\n[servers.{}]\nera = {}\n", mount.name(), json!(mount.era));
            if mount.over == Over::Stdio {
                let (program, mark) = mount.program.clone().marked();
                marks.push(mark);
                text.push_str(&command(&program));
            } else {
                let serving = tokio::task::block_in_place(|| Serving::start(&mount.program));
                let _ = writeln!(text, "url = {}", json!(serving.target(mount.path).url.as_str()));
                listening.push(serving);
            }
        }
        let file = place::scratch(&format!("matrix-{}", mounts.len())).join("tidegate.toml");
        std::fs::write(&file, text).expect("a writable target directory");

        let mut child = Command::new(place::tidegate())
            .args(["serve", "--listen", "127.0.0.1:0", "--config"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(place::log())
            .kill_on_drop(true)
            .spawn()
            .expect("tidegate starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = lines.next_line().await.expect("a line").unwrap_or_default();
        let url = first.rsplit(' ').next().filter(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("it says where it is: {first}")).to_owned();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        let gateway = Gateway { url, child, mounts, marks, _listening: listening };
        gateway.ready().await;
        gateway
    }

    /// The servers behind it.
    pub(crate) fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    async fn ready(&self) {
        let client = Client::connect(Target::url(&self.url).expect("an address")).await.expect("it is there");
        let waiting = tokio::time::Instant::now();
        loop {
            let tools = client.request("tools/list", json!({})).await.expect("tools");
            let tools: Value = tools.to().expect("JSON");
            let names: Vec<&str> = tools["tools"]
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(|tool| tool["name"].as_str())
                .collect();
            let lacks = |mount: &&Mount| !names.iter().any(|name| name.starts_with(&mount.prefix()));
            let missing: Vec<String> = self.mounts().filter(lacks).map(Mount::name).collect();
            if missing.is_empty() {
                break;
            }
            assert!(waiting.elapsed() < PATIENCE, "{missing:?} did not start within {PATIENCE:?}");
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
        client.close().await;
    }

    /// Ends it in an orderly way. Nothing that it started stays.
    pub(crate) async fn stop(mut self) {
        let pid = self.child.id().expect("it runs").to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill");
        assert!(told.success(), "kill -TERM {pid}: {told}");
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.expect("it ends when it is told to").expect("its status");
        assert!(status.success(), "it ends well: {status}");
        for mark in &self.marks {
            eventually("the processes are gone", async || processes_with(mark) == 0).await;
        }
    }
}

/// A program, as the configuration has it.
fn command(Program { program, args, env }: &Program) -> String {
    let words: Vec<_> = std::iter::once(program).chain(args).collect();
    // Texts and lists are written alike in JSON and in TOML.
    let env: Vec<_> = env.iter().map(|(name, value)| format!("{name} = {}", json!(value))).collect();
    format!("command = {}\nenv = {{ {} }}\n", json!(words), env.join(", "))
}
