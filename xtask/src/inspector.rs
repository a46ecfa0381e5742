//! The MCP Inspector's command line against the fixture server: it lists the tools and calls one, over stdio and
//! over Streamable HTTP, as a client of each era. And against the servers that are part of Tidegate: it finds nothing in
//! their schemas that some client cannot read.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

use crate::conformance::Era;
use crate::fixture::{self, Fixture};
use crate::leg::Leg;
use crate::npm::Tools;
use crate::shell;

const TOOL: &str = "test_simple_text";
const TEXT: &str = "This is a simple text response for testing.";

/// Runs all combinations that a server of this era answers.
pub(crate) fn run(era: Era) -> Result<()> {
    let tools = Tools::install()?;
    let program = fixture::build(Leg::Server)?;
    let server = Fixture::start(era)?;
    for client in [Era::Legacy, Era::Modern].into_iter().filter(|client| era.includes(*client)) {
        for target in [Target::Stdio { program: &program, era }, Target::Http { url: &server.url() }] {
            list(&tools, &target, client).with_context(|| failed("tools/list", &target, client))?;
            call(&tools, &target, client).with_context(|| failed("tools/call", &target, client))?;
            println!("MCP Inspector, {} client over {}: lists and calls", client.name(), target.name());
        }
    }
    strict(&tools)
        .context("the MCP Inspector's --strict is not content with the schemas of the built-in servers")
}

/// Lists all tools of the built-in servers, and has their schemas looked at.
fn strict(tools: &Tools) -> Result<()> {
    let dir = shell::conformance_dir()?;
    let (file, store) = (dir.join("builtin.toml"), dir.join("builtin.db"));
    let settings = format!(
        "state_dir = false\n[memory]\ntools = \"all\"\nstore = {:?}\n[servers.memory]\nbuiltin = \"memory\"\n\
         [servers.demo]\nbuiltin = \"demo\"\n",
        store.display().to_string()
    );
    std::fs::write(&file, settings).with_context(|| format!("writing {}", file.display()))?;
    let mut command = tools.inspector();
    command.args(["--format", "json", "--quiet", "--method", "tools/list", "--strict", "--"]);
    command.arg(fixture::program("tidegate")?).args(["serve", "--stdio", "--config"]).arg(&file);
    let reply = shell::output(&mut command)?;
    ensure!(reply.contains("\"name\":\"memory_create_entities\""), "the memory's tools are not in: {reply}");
    ensure!(!reply.contains("\"schemaFindings\""), "it found something: {reply}");
    println!("MCP Inspector: the schemas of the built-in servers are portable");
    Ok(())
}

fn list(tools: &Tools, target: &Target<'_>, client: Era) -> Result<()> {
    let reply = ask(tools, target, client, &["--method", "tools/list"])?;
    ensure!(reply.contains(&format!("\"name\":\"{TOOL}\"")), "no tool `{TOOL}` in: {reply}");
    Ok(())
}

fn call(tools: &Tools, target: &Target<'_>, client: Era) -> Result<()> {
    let reply = ask(tools, target, client, &["--method", "tools/call", "--tool-name", TOOL])?;
    ensure!(reply.contains(&format!("\"text\":\"{TEXT}\"")), "not the expected text: {reply}");
    ensure!(!reply.contains("\"isError\":true"), "the tool failed: {reply}");
    Ok(())
}

/// One run of the inspector; the reply is JSON on one line.
fn ask(tools: &Tools, target: &Target<'_>, client: Era, request: &[&str]) -> Result<String> {
    let mut command = tools.inspector();
    command.args(["--format", "json", "--quiet", "--protocol-era", client.name()]).args(request);
    target.add_to(&mut command);
    shell::output(&mut command)
}

fn failed(method: &str, target: &Target<'_>, client: Era) -> String {
    format!("the MCP Inspector's {method} failed ({} client over {})", client.name(), target.name())
}

/// How the inspector reaches the server.
enum Target<'a> {
    Stdio { program: &'a Path, era: Era },
    Http { url: &'a str },
}

impl Target<'_> {
    fn name(&self) -> &'static str {
        match self {
            Self::Stdio { .. } => "stdio",
            Self::Http { .. } => "Streamable HTTP",
        }
    }

    fn add_to(&self, command: &mut Command) {
        match self {
            // What follows the dashes is the server's command line.
            Self::Stdio { program, era } => {
                command.arg("--").arg(program).args(["--stdio", "--era", era.name()]);
            }
            Self::Http { url } => {
                command.args(["--transport", "http", "--server-url", url]);
            }
        }
    }
}
