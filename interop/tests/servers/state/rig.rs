//! The gateway with servers that keep state, and clients of all kinds.

use serde_json::{Value, json};
use tidegate_client::{Client, ElicitAnswer, EraChoice, Handlers, Target};

use crate::gateway::{Gateway, tools};
use crate::meeting::Over;
use crate::paths;
use crate::server::Program;

/// What a client says it can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// 2026-07-28, and the user can be asked.
    ModernAskable,
    /// 2025-11-25, and the user can be asked.
    Legacy,
    /// 2026-07-28, and nothing else.
    Bare,
}

/// A gateway.
pub(crate) struct Rig {
    gateway: Gateway,
}

/// How a server is started.
fn command(server: &str) -> Vec<String> {
    let script = match server {
        "thinking" => "@modelcontextprotocol/server-sequential-thinking/dist/index.js",
        "everything" => "@modelcontextprotocol/server-everything/dist/index.js",
        "browser" => "@playwright/mcp/cli.js",
        _ => unreachable!(),
    };
    let mut command = vec![paths::node(), paths::package(script)];
    if server == "browser" {
        command.extend(["--headless", "--isolated", "--no-sandbox", "--executable-path"].map(str::to_owned));
        command.push(chromium());
    }
    command
}

/// The browser of this machine.
fn chromium() -> String {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome"];
    let mut all = std::env::split_paths(&path).flat_map(|folder| names.map(|name| folder.join(name)));
    let found = all.find(|program| program.is_file()).expect("Chromium, which xtask has looked for");
    found.to_str().expect("a path in UTF-8").to_owned()
}

/// A configuration with these servers.
fn configuration(servers: &[&str], name: &str) -> String {
    let dir = paths::scratch(&format!("state/{name}"));
    let entry = |server: &&str| {
        let command = command(server);
        format!(
            "[servers.{server}]\ncommand = {}\nargs = {}\n{}",
            json!(command[0]),
            json!(command[1..]),
            // It asks for roots a moment after it has started; a client that gives it some makes the session its own.
            if *server == "everything" { "capabilities = [\"elicitation\", \"sampling\"]\n" } else { "" },
        )
    };
    let text: String = servers.iter().map(entry).collect();
    let file = dir.join("tidegate.toml");
    std::fs::write(&file, text).expect("a writable target directory");
    file.to_str().expect("the path of this repository is UTF-8").to_owned()
}

async fn connect(target: Target, kind: Kind) -> Client {
    let mut builder = Client::builder(target).expect("a target").configure(|options| {
        options.era = if kind == Kind::Legacy { EraChoice::Legacy } else { EraChoice::Modern };
        options.timeout = std::time::Duration::from_secs(120);
    });
    if kind != Kind::Bare {
        builder = builder.handlers(Handlers::new().on_elicit(true, |_| async { ElicitAnswer::Decline }));
    }
    builder.connect().await.expect("the gateway is there")
}

fn prefixes(servers: &[&str]) -> Vec<String> {
    servers.iter().map(|server| format!("{server}_")).collect()
}

impl Rig {
    /// Starts the gateway and waits for its servers.
    pub(crate) async fn start(servers: &[&str]) -> Rig {
        let file = configuration(servers, &servers.join("-"));
        let gateway = Gateway::start(std::path::Path::new(&file)).await;
        tools(Target::url(&gateway.url).expect("an address"), &prefixes(servers)).await;
        Rig { gateway }
    }

    pub(crate) async fn client(&self, over: Over, kind: Kind) -> Client {
        assert!(matches!(over, Over::Http));
        connect(Target::url(&self.gateway.url).expect("an address"), kind).await
    }

    /// How many processes the gateway has started that are still there.
    pub(crate) async fn processes(&self) -> usize {
        let gateway = self.gateway.pid().to_string();
        let all = std::fs::read_dir("/proc").expect("processes").flatten();
        let parents = all.filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok());
        // The state and the parent come after the name, which is in parentheses.
        let of_gateway = |stat: &String| {
            let rest: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
            rest.get(1) == Some(&gateway.as_str())
        };
        parents.filter(of_gateway).count()
    }

    pub(crate) async fn stop(self) {
        self.gateway.stop().await;
    }
}

/// A client that starts a gateway with these servers itself.
pub(crate) async fn over_stdio(servers: &[&str], kind: Kind) -> Client {
    let file = configuration(servers, &format!("stdio-{}-{kind:?}", servers.join("-")));
    let client =
        connect(Program::new(paths::tidegate(), &["serve", "--stdio", "--config", &file]).target(), kind)
            .await;
    for _ in 0..600 {
        let listed = client.request("tools/list", json!({})).await.expect("tools");
        if servers.iter().all(|server| listed.as_str().contains(&format!("\"{server}_"))) {
            return client;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    panic!("{servers:?} did not start");
}

/// Calls a tool, and returns the text of its result.
pub(crate) async fn call(client: &Client, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await.unwrap_or_else(|error| panic!("{tool}: {error:?}"));
    assert!(!result.is_error(), "{tool}: {}", result.text());
    result.text().to_owned()
}
