//! [`Peers`]: the gateways of others, installed once in `target/bench-peers` when they are first asked for.
//!
//! What cannot be installed is remembered with the reason, and becomes a line of the table.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use serde_json::Value;

/// A compiler on a busy machine takes its time; a network that does not answer must not take forever.
const PATIENCE: Duration = Duration::from_secs(20 * 60);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Peer {
    McpProxy,
    FastMcp,
    PythonMcpProxy,
    Supergateway,
}

impl Peer {
    /// Exact versions, so that figures of different days can be compared.
    fn version(self) -> &'static str {
        match self {
            Self::McpProxy => "0.6.0",
            Self::FastMcp => "4.1.2",
            Self::PythonMcpProxy => "0.13.0",
            Self::Supergateway => "4.0.0",
        }
    }

    /// What the package is called where it comes from.
    fn package(self) -> &'static str {
        match self {
            Self::McpProxy | Self::PythonMcpProxy => "mcp-proxy",
            Self::FastMcp => "fastmcp",
            Self::Supergateway => "supergateway",
        }
    }

    fn directory(self) -> String {
        let from = match self {
            Self::McpProxy => "crates",
            Self::FastMcp | Self::PythonMcpProxy => "pypi",
            Self::Supergateway => "npm",
        };
        format!("{from}-{}-{}", self.package(), self.version())
    }

    /// The file in its directory that is run, by itself or by an interpreter.
    fn file(self) -> &'static str {
        match self {
            Self::McpProxy => "bin/mcp-proxy",
            Self::FastMcp | Self::PythonMcpProxy => "bin/python",
            Self::Supergateway => "node_modules/supergateway/dist/index.js",
        }
    }

    fn install(self, into: &Path) -> Result<()> {
        let (package, version) = (self.package(), self.version());
        match self {
            Self::McpProxy => run(
                // A directory of its own, so that the builds of this workspace do not wait for it.
                Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
                    .env_remove("CARGO_TARGET_DIR")
                    .args(["install", package, "--version", &format!("={version}"), "--locked", "--root"])
                    .arg(into)
                    .args(["--features", "protocol-2026-07-28"]),
            ),
            Self::FastMcp | Self::PythonMcpProxy => {
                run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(into))?;
                let options =
                    ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
                run(Command::new(into.join(self.file())).args(options).arg(format!("{package}=={version}")))
            }
            Self::Supergateway => {
                std::fs::create_dir_all(into)?;
                let options = ["install", "--silent", "--no-audit", "--no-fund", "--prefix"];
                run(Command::new("npm").args(options).arg(into).arg(format!("{package}@{version}")))
            }
        }
    }
}

/// Where they are, or why not.
pub(crate) struct Peers(Vec<(Peer, Result<PathBuf, String>)>);

impl Peers {
    pub(crate) fn install(peers: impl IntoIterator<Item = Peer>) -> Result<Self> {
        let mut found: Vec<(Peer, Result<PathBuf, String>)> = Vec::new();
        for peer in peers {
            if found.iter().any(|(there, _)| *there == peer) {
                continue;
            }
            let directory = target_directory()?.join("bench-peers").join(peer.directory());
            found.push((peer, installed(peer, &directory).map_err(|error| format!("{error:#}"))));
        }
        Ok(Self(found))
    }

    /// The file to run.
    pub(crate) fn file(&self, peer: Peer) -> Result<&Path> {
        let found = self.0.iter().find(|(there, _)| *there == peer).context("not asked for")?;
        found.1.as_deref().map_err(|why| anyhow::anyhow!("not installed: {why}"))
    }
}

fn installed(peer: Peer, directory: &Path) -> Result<PathBuf> {
    // Written last: what was interrupted is installed again.
    let done = directory.join("installed");
    if !done.exists() {
        eprintln!("installing {} {}", peer.package(), peer.version());
        peer.install(directory)?;
        std::fs::write(&done, "")?;
    }
    let file = directory.join(peer.file());
    anyhow::ensure!(file.exists(), "there is no {}", peer.file());
    Ok(file)
}

/// Runs a command to its end, for at most [`PATIENCE`].
fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::inherit())
        .spawn()
        .with_context(|| format!("starting {name}"))?;
    let status = wait(&mut child, PATIENCE)?;
    anyhow::ensure!(status.success(), "{name}: {status}");
    Ok(())
}

fn wait(child: &mut Child, patience: Duration) -> Result<std::process::ExitStatus> {
    let deadline = Instant::now() + patience;
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(status);
        }
        if Instant::now() > deadline {
            child.kill()?;
            child.wait()?;
            anyhow::bail!("took more than {patience:?}");
        }
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Cargo itself says where it is.
fn target_directory() -> Result<PathBuf> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["metadata", "--no-deps", "--format-version", "1"])
        .stderr(Stdio::null())
        .output()
        .context("running cargo")?;
    let metadata: Value = serde_json::from_slice(&output.stdout).context("what cargo metadata says")?;
    Ok(metadata["target_directory"].as_str().context("no target directory")?.into())
}
