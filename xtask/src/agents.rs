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

/// Agents that are tested together.
struct Set {
    /// The module of the tests.
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
        framework("crewai", &["crewai==1.15.30", "crewai-tools[mcp]==1.15.30"]),
        framework("pydantic_ai", &["pydantic-ai-slim[anthropic,openai,mcp]==2.66.0"]),
        framework(
            "langchain",
            &["langchain-mcp-adapters==0.3.2", "langchain==1.4.7", "langchain-openai==1.7.3"],
        ),
        framework("autogen", &["autogen-agentchat==0.7.5", "autogen-ext[openai,mcp]==0.7.5"]),
    ],
};

/// What is met by whoever asks for it. CAMEL is not here, because it counts tokens with a table that it fetches; and it leaves
/// out every tool with an argument that is called `from`.
const WIDER: Set = Set {
    module: "wider",
    npm: &[
        ("@ai-sdk/mcp", "2.0.96"),
        ("@ai-sdk/openai-compatible", "3.0.90"),
        ("@continuedev/cli", "1.5.47"),
        ("@github/copilot", "1.0.102"),
        ("@google/gemini-cli", "0.61.0"),
        ("@langchain/core", "1.2.13"),
        ("@langchain/mcp-adapters", "1.1.4"),
        ("@langchain/openai", "1.5.8"),
        ("@mastra/core", "1.71.0"),
        ("@mastra/mcp", "2.0.0"),
        ("@openai/agents", "0.20.0"),
        ("@qwen-code/qwen-code", "0.24.4"),
        ("ai", "7.0.169"),
        ("langchain", "1.5.14"),
        ("opencode-ai", "1.18.33"),
        ("zod", "4.6.7"),
    ],
    node_at_least: (22, 19),
    pypi: &[
        framework("semantic_kernel", &["semantic-kernel[mcp]==1.45.0"]),
        framework("ag2", &["ag2[openai,mcp]==1.2.1"]),
        framework(
            "agent_framework",
            &[
                "agent-framework-core==1.23.0",
                "agent-framework-openai==1.17.0",
                "mcp==2.3.0",
                "tenacity==9.2.1",
            ],
        ),
        framework("agno", &["agno==3.1.10", "fastmcp==4.1.2", "openai==3.49.0"]),
        framework("dspy", &["dspy[mcp]==3.4.1"]),
        framework("google_adk", &["google-adk[mcp]==2.13.0"]),
        framework("haystack", &["haystack-ai==3.3.0", "mcp-haystack==2.1.1"]),
        framework("llama_index", &["llama-index-tools-mcp==0.6.0", "llama-index-llms-openai-like==0.8.1"]),
        framework("mcp_use", &["mcp-use==1.7.1", "langchain-openai==1.7.3"]),
        framework("openai_agents", &["openai-agents==0.24.0"]),
        framework("smolagents", &["smolagents[mcp,openai]==1.26.0", "websockets==17.4"]),
        framework("strands", &["strands-agents[openai]==1.62.0"]),
    ],
};

const fn framework(name: &'static str, packages: &'static [&'static str]) -> Framework {
    Framework { name, packages }
}

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
    let test = ["test", "--package", "tidegate-interop", "--test", "servers", "--", "agents::"];
    let mut cargo = shell::cargo(&test);
    if sets.iter().all(|set| set.module != WIDER.module) {
        cargo.args(["--skip", "agents::wider::"]);
    }
    // Two at a time: they start slowly, and have a deadline.
    shell::check(cargo.arg("--test-threads=2"))
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
