//! [`Gateway`]: `tidegate serve`.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::{Client, Target};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

use crate::paths;

/// How long all the servers may take to start together, and the gateway to end them.
const PATIENCE: Duration = Duration::from_secs(300);

/// The gateway. Dropping it kills it, and what it started ends with its input.
pub(crate) struct Gateway {
    pub(crate) url: String,
    child: Child,
}

impl Gateway {
    /// Starts it with this configuration.
    pub(crate) async fn start(file: &Path) -> Gateway {
        Gateway::start_at(file, "127.0.0.1:0").await
    }

    /// The same at this address.
    pub(crate) async fn start_at(file: &Path, address: &str) -> Gateway {
        let mut child = Command::new(paths::tidegate())
            .args(["serve", "--listen", address, "--config"])
            .arg(file)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(paths::log())
            .kill_on_drop(true)
            .spawn()
            .expect("tidegate starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = lines.next_line().await.expect("a line").unwrap_or_default();
        let url = first.rsplit(' ').next().filter(|word| word.starts_with("http://"));
        let url = url.unwrap_or_else(|| panic!("it says where it is: {first}")).to_owned();
        tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
        Gateway { url, child }
    }

    /// Its process.
    pub(crate) fn pid(&self) -> u32 {
        self.child.id().expect("it runs")
    }

    /// Ends it without warning.
    pub(crate) async fn kill(mut self) {
        self.child.kill().await.expect("kill -9");
    }

    /// Ends it in an orderly way.
    pub(crate) async fn stop(mut self) {
        let pid = self.pid().to_string();
        let told = Command::new("kill").args(["-TERM", &pid]).status().await.expect("kill");
        assert!(told.success(), "kill -TERM {pid}: {told}");
        let ended = tokio::time::timeout(PATIENCE, self.child.wait()).await;
        let status = ended.expect("it ends when it is told to").expect("its status");
        assert!(status.success(), "it ends well: {status}");
    }
}

/// The names of the tools that are listed there, as soon as there is one with each of these prefixes.
pub(crate) async fn tools(target: Target, prefixes: &[String]) -> Vec<String> {
    let client = Client::connect(target).await.expect("it is there");
    let waiting = tokio::time::Instant::now();
    let names = loop {
        let tools = client.request("tools/list", json!({})).await.expect("tools");
        let tools: Value = tools.to().expect("JSON");
        let listed = tools["tools"].as_array().into_iter().flatten();
        let names: Vec<String> = listed.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect();
        let lacks = |prefix: &&String| !names.iter().any(|name| name.starts_with(*prefix));
        let missing: Vec<_> = prefixes.iter().filter(lacks).collect();
        if missing.is_empty() {
            break names;
        }
        assert!(waiting.elapsed() < PATIENCE, "{missing:?} did not start within {PATIENCE:?}");
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    client.close().await;
    names
}
