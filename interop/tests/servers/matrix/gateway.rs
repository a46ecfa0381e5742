//! [`Gateway`]: `tidegate serve`, and the servers behind it.

use std::fmt::Write as _;

use serde_json::json;
use tidegate_client::Target;

use super::mounts::Mount;
use crate::gateway::tools;
use crate::meeting::{Over, eventually};
use crate::paths;
use crate::server::{Program, Serving, processes_with};

/// The gateway. Dropping it kills it, and what it started ends with its input.
pub(crate) struct Gateway {
    pub(crate) url: String,
    serving: crate::gateway::Gateway,
    mounts: Vec<Mount>,
    /// The words in the command lines of what the gateway starts.
    marks: Vec<String>,
    /// What it does not start.
    _listening: Vec<Serving>,
}

impl Gateway {
    /// Starts the servers that listen, and the gateway, and waits until it has read all lists. `instances` says whose the
    /// sessions of legacy servers are.
    pub(crate) async fn start(mounts: Vec<Mount>, instances: &str) -> Gateway {
        let (mut marks, mut listening) = (Vec::new(), Vec::new());
        // As busy as the machine may be, only what hangs takes that long.
        let mut text = format!(
            "state_dir = false\n[defaults]\ntimeout = \"2m\"\nstart_timeout = \"4m\"\ninstances = {}\n",
            json!(instances)
        );
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
        let file = paths::scratch(&format!("matrix-{}-{instances}", mounts.len())).join("tidegate.toml");
        std::fs::write(&file, text).expect("a writable target directory");

        let serving = crate::gateway::Gateway::start(&file).await;
        let gateway = Gateway { url: serving.url.clone(), serving, mounts, marks, _listening: listening };
        gateway.ready().await;
        gateway
    }

    /// The servers behind it.
    pub(crate) fn mounts(&self) -> impl Iterator<Item = &Mount> {
        self.mounts.iter()
    }

    async fn ready(&self) {
        let target = Target::url(&self.url).expect("an address");
        let prefixes: Vec<String> = self.mounts().map(Mount::prefix).collect();
        tools(target, &prefixes).await;
    }

    /// Ends it in an orderly way. Nothing that it started stays.
    pub(crate) async fn stop(self) {
        self.serving.stop().await;
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
