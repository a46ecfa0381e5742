//! [`Recipe`]: how each gateway is told what is behind it and where to listen.

use std::ffi::OsString;
use std::fmt::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use super::case::Era;
use super::extra::{Extra, KEYS, api_key};
use super::peers::Peer;
use super::running::Behind;
use super::{Gateway, Kit};
use crate::binaries::Program;
use crate::credentials::Credentials;
use crate::measure::fairness::{CALL_MS, FLOOD, PLACES};

/// A command line, and what is known about the door before it runs.
pub(super) struct Recipe {
    pub(super) words: Vec<OsString>,
    pub(super) listens: Listens,
    pub(super) path: &'static str,
    /// Under which name the echo is offered.
    pub(super) tool: &'static str,
    /// What callers bring.
    pub(super) credentials: Option<Arc<Credentials>>,
}

pub(super) enum Listens {
    /// It takes any free port and says on stdout which.
    Announced,
    /// It has to be told one.
    At(u16),
}

impl Recipe {
    /// `folder` is for what has to be in files. `port` is free at the moment.
    pub(super) fn of(
        gateway: Gateway,
        era: Era,
        behind: &Behind,
        Kit { binaries, peers }: Kit<'_>,
        folder: &Path,
        port: u16,
    ) -> Result<Self> {
        let file = |name: &str, content: String| -> Result<OsString> {
            let path: PathBuf = folder.join(name);
            std::fs::write(&path, content).with_context(|| format!("writing {}", path.display()))?;
            Ok(path.into())
        };
        let at_port = Listens::At(port);
        let mut credentials = None;
        let (words, listens, path, tool): (Vec<OsString>, _, _, _) = match gateway {
            Gateway::Direct => anyhow::bail!("there is nothing to start"),
            Gateway::FloorProxy => {
                let proxy = binaries.path(Program::peer("floor-proxy"))?.to_owned();
                let to = behind.addr().context("it has only HTTP behind it")?.to_string();
                let words = vec![proxy, "--listen".into(), "127.0.0.1:0".into(), "--to".into(), to.into()];
                (words, Listens::Announced, behind.floor_path(), "echo")
            }
            Gateway::Ours | Gateway::OursWith(_) => {
                let mut words = vec![binaries.path(Program::OUR_GATEWAY)?.to_owned(), "serve".into()];
                words.extend(["--listen".into(), "127.0.0.1:0".into()]);
                let level = gateway.extra().and_then(Extra::log_level).map(OsString::from);
                if let Some(level) = level.or_else(|| std::env::var_os("BENCH_LOG")) {
                    words.extend(["--log-level".into(), level]);
                }
                if matches!(behind, Behind::Demonstration) {
                    words.push("--demo".into());
                } else {
                    let mut config = ours(era, behind, gateway.extra())?;
                    if let Some(extra) = gateway.extra() {
                        let program = binaries.path(Program::OUR_GATEWAY)?;
                        let (sections, brought) = extra.configuration(program, folder)?;
                        credentials = brought.map(Arc::new);
                        config += &sections;
                    }
                    words.extend(["--config".into(), file("tidegate.toml", config)?]);
                }
                (words, Listens::Announced, "/mcp", "echo")
            }
            Gateway::OursWithTenants => {
                let program = binaries.path(Program::OUR_GATEWAY)?;
                let keys = ["reef", "tide"].map(|tenant| api_key(program, folder, tenant));
                credentials =
                    Some(Arc::new(Credentials::of_tenants(keys.into_iter().collect::<Result<_>>()?)));
                let config = file("tidegate.toml", two_tenants())?;
                let words = vec![program.to_owned(), "serve".into(), "--listen".into(), "127.0.0.1:0".into()];
                let words = [words, vec!["--config".into(), config]].concat();
                (words, Listens::Announced, "/mcp", "demo_count")
            }
            Gateway::McpProxy => {
                let config = file("proxy.toml", mcp_proxy(behind, port)?)?;
                let words = vec![peers.file(Peer::McpProxy)?.into(), "--config".into(), config];
                (words, at_port, "/", "up/echo")
            }
            Gateway::FastMcp => {
                let config = file("servers.json", mcp_servers(behind)?)?;
                let python = peers.file(Peer::FastMcp)?.into();
                (
                    vec![python, beside("fastmcp_proxy.py"), config, port.to_string().into()],
                    at_port,
                    "/mcp",
                    "echo",
                )
            }
            Gateway::PythonMcpProxy => {
                let mut words: Vec<OsString> = vec![peers.file(Peer::PythonMcpProxy)?.into()];
                words.extend(["-m".into(), "mcp_proxy".into(), "--port".into(), port.to_string().into()]);
                words.push("--".into());
                words.extend(behind.command()?.iter().map(OsString::from));
                (words, at_port, "/mcp", "echo")
            }
            Gateway::Supergateway => {
                let mut words = vec!["node".into(), "--require".into(), beside("loopback.cjs")];
                words.push(peers.file(Peer::Supergateway)?.into());
                words.extend(["--stdio".into(), behind.command()?.join(" ").into()]);
                // Without sessions it would start a server for each request.
                words.extend(["--outputTransport", "streamableHttp", "--stateful", "--port"].map(Into::into));
                words.push(port.to_string().into());
                (words, at_port, "/mcp", "echo")
            }
        };
        Ok(Self { words, listens, path, tool, credentials })
    }
}

/// A script of this benchmark.
fn beside(name: &str) -> OsString {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(name).into()
}

/// The servers of a configuration: their names and what they are.
fn servers(behind: &Behind) -> Result<Vec<(String, Server)>> {
    let at = |addr: &SocketAddr, path: &str| Server::Url(format!("http://{addr}{path}"));
    Ok(match behind {
        Behind::Http(addr) => vec![("up".into(), at(addr, "/mcp"))],
        Behind::Stdio(command) => vec![("up".into(), Server::Command(command.clone()))],
        Behind::Many(addr, count) => {
            (0..*count).map(|n| (format!("s{n}"), at(addr, &format!("/s/{n}/mcp")))).collect()
        }
        Behind::Demonstration => anyhow::bail!("only ours brings a server of its own"),
    })
}

enum Server {
    Url(String),
    Command(Vec<String>),
}

/// Everything is as it is by default, but for the name of the one tool that is called, and for what is measured: that has a row of its own.
fn ours(era: Era, behind: &Behind, extra: Option<Extra>) -> Result<String> {
    let metrics = matches!(extra, Some(Extra::Metrics | Extra::Telemetry));
    let stories = if matches!(extra, Some(Extra::Stories | Extra::Telemetry)) { 4 << 20 } else { 0 };
    let mut out = format!("state_dir = false\n\n[telemetry]\nmetrics = {metrics}\nstories = {stories}\n");
    let era = match era {
        Era::Modern => "modern",
        Era::Legacy => "legacy",
    };
    for (name, server) in servers(behind)? {
        let what = match server {
            Server::Url(url) => format!("url = {}", json!(url)),
            Server::Command(words) => format!("command = {}", json!(words)),
        };
        let _ = write!(out, "\n[servers.{name}]\n{what}\nera = \"{era}\"\n");
        if name == "up" {
            out.push_str("prefix = \"\"\n");
        }
    }
    Ok(out)
}

/// A slow tool that all tenants share.
fn two_tenants() -> String {
    let queue = 2 * FLOOD;
    format!(
        "state_dir = false\n[servers.demo]\nbuiltin = \"demo\"\n[demo]\npace = \"{CALL_MS}ms\"\n\
         [limits]\ntenant = false\nserver = {{ concurrent = {PLACES}, queue = {queue} }}\n{KEYS}"
    )
}

/// Without its timeouts, retries and limits, which are off by default.
fn mcp_proxy(behind: &Behind, port: u16) -> Result<String> {
    let mut out = format!(
        "[proxy]\nname = \"bench\"\nshutdown_timeout_seconds = 2\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {port}\n"
    );
    for (name, server) in servers(behind)? {
        let what = match server {
            Server::Url(url) => format!("transport = \"http\"\nurl = {}", json!(url)),
            Server::Command(words) => {
                let (program, args) = words.split_first().context("no command")?;
                format!("transport = \"stdio\"\ncommand = {}\nargs = {}", json!(program), json!(args))
            }
        };
        let _ = write!(out, "\n[[backends]]\nname = \"{name}\"\n{what}\n");
    }
    Ok(out)
}

fn mcp_servers(behind: &Behind) -> Result<String> {
    let mut all = Map::new();
    for (name, server) in servers(behind)? {
        let what = match server {
            Server::Url(url) => json!({"url": url}),
            Server::Command(words) => {
                let (program, args) = words.split_first().context("no command")?;
                json!({"command": program, "args": args})
            }
        };
        all.insert(name, what);
    }
    Ok(Value::from(Map::from_iter([("mcpServers".to_owned(), Value::from(all))])).to_string())
}
