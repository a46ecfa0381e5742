//! `cargo xtask agents`: real agents with a scripted model, in front of our gateway (`interop/tests/servers/agents`); and what
//! they need.
//!
//! All of it is pinned, and installed once into `target/interop/agents`. What packages from PyPI bring along is pinned by the
//! files in `interop/agents/constraints`, because these frameworks break when it moves.

use std::path::PathBuf;
use std::sync::Mutex;
use std::thread;

use anyhow::{Context as _, Result, anyhow, bail};

use crate::packages::{NO_NPM, Package, Packages};
use crate::{fixture, servers, shell};

/// The step in the table of all steps.
pub(crate) const STEP: &str = "real agents";

/// Agents that are tested together. Their tests are in a module of that name.
struct Set {
    module: &'static str,
    npm: &'static [Package],
    node_at_least: (u32, u32),
    pypi: &'static [Framework],
}

/// An agent framework from PyPI. Each has a virtual environment of its own, because no two agree on what they need.
struct Framework {
    name: &'static str,
    packages: &'static [&'static str],
}

/// What every change meets.
const USUAL: Set = Set {
    module: "usual",
    npm: &[
        ("@anthropic-ai/claude-code", "2.1.325"),
        ("@openai/codex", "0.166.0"),
        // No agent, but the server that all of them call.
        ("@modelcontextprotocol/server-sequential-thinking", "2026.8.31"),
    ],
    node_at_least: (20, 0),
    pypi: &[
        // The largest first: the others are done beside it.
        Framework { name: "crewai", packages: &["crewai==1.15.30", "crewai-tools[mcp]==1.15.30"] },
        Framework { name: "pydantic_ai", packages: &["pydantic-ai-slim[anthropic,openai,mcp]==2.66.0"] },
        Framework {
            name: "langchain",
            packages: &["langchain-mcp-adapters==0.3.2", "langchain==1.4.7", "langchain-openai==1.7.3"],
        },
        Framework {
            name: "autogen",
            packages: &["autogen-agentchat==0.7.5", "autogen-ext[openai,mcp]==0.7.5"],
        },
    ],
};

/// What is met by whoever asks for it.
const WIDER: Set = Set { module: "wider", npm: &[], node_at_least: (22, 19), pypi: &[] };

/// What this machine lacks for it, if anything.
pub(crate) fn lacks() -> Option<&'static str> {
    if !cfg!(unix) {
        return Some("the agents are started and stopped as process groups, which only Unix has");
    }
    if !shell::installed("npm") {
        return Some(NO_NPM);
    }
    servers::python().is_none().then_some(servers::NO_PYTHON)
}

/// Installs the usual agents if they are missing, and runs them.
pub(crate) fn test() -> Result<()> {
    test_sets(&[&USUAL])
}

/// The command.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let sets: &[&Set] = match args {
        [] => &[&USUAL],
        [all] if all == "--all" => &[&USUAL, &WIDER],
        _ => bail!("`cargo xtask agents` knows `--all` and nothing else"),
    };
    match lacks() {
        Some(why) => bail!(why),
        None => test_sets(sets),
    }
}

fn test_sets(sets: &[&Set]) -> Result<()> {
    for set in sets {
        set.install()?;
    }
    // The tests start it.
    fixture::program("tidegate")?;
    let test = ["test", "--package", "tidegate-interop", "--test", "servers", "--"];
    let modules = sets.iter().map(|set| format!("agents::{}::", set.module));
    // Agents start slowly and then wait for each other's processes more than they compute. All that are wrong are told of.
    shell::check(shell::cargo(&test).args(modules).arg("agents::script::").arg("--test-threads=2"))
}

impl Set {
    /// Installs what is missing, two things at a time.
    fn install(&self) -> Result<()> {
        let rest = Mutex::new(self.pypi.iter());
        let next = || rest.lock().ok()?.next();
        let frameworks = || std::iter::from_fn(next).try_for_each(Framework::install);
        thread::scope(|scope| {
            let beside = scope.spawn(|| self.install_from_npm().and_then(|()| frameworks()));
            let here = frameworks();
            beside.join().map_err(|_| anyhow!("the installation panicked"))?.and(here)
        })
    }

    fn install_from_npm(&self) -> Result<()> {
        let dir = directory()?.join(format!("npm-{}", self.module));
        Packages::install(dir, self.npm, self.node_at_least)?.note_node()
    }
}

impl Framework {
    fn install(&self) -> Result<()> {
        servers::virtual_environment(&directory()?.join(self.name), self.packages, Some(&self.constraints()))
            .with_context(|| format!("installing {}", self.name))
    }

    /// The file that pins what the packages bring along.
    fn constraints(&self) -> PathBuf {
        shell::root().join("interop/agents/constraints").join(format!("{}.txt", self.name))
    }
}

/// `target/interop/agents`.
fn directory() -> Result<PathBuf> {
    Ok(shell::target_dir()?.join("interop").join("agents"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_pinned() {
        for set in [&USUAL, &WIDER] {
            for (package, version) in set.npm {
                assert!(version.starts_with(|c: char| c.is_ascii_digit()), "{package} {version}");
            }
            for framework in set.pypi {
                for package in framework.packages {
                    assert!(package.contains("=="), "{package}");
                }
                let file = framework.constraints();
                let pinned =
                    std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
                for line in pinned.lines() {
                    assert!(line.contains("=="), "{}: {line}", file.display());
                }
            }
        }
    }
}
