//! What starts the agents.

use serde_json::json;

use super::desk::Desk;
use super::script::PROMPT;
use crate::meeting::Over;
use crate::place;
use crate::server::Program;

/// Claude Code.
pub(crate) fn claude_code(desk: &Desk) -> Program {
    let server = match desk.over {
        Over::Stdio => json!({"type": "stdio", "command": desk.command[0], "args": desk.command[1..]}),
        _ => json!({"type": "http", "url": desk.url}),
    };
    let servers = desk.file("servers.json", &json!({"mcpServers": {"tidegate": server}}).to_string());
    let words =
        ["-p", PROMPT, "--mcp-config", &servers, "--strict-mcp-config", "--allowedTools", "mcp__tidegate"];
    node("npm-usual", "@anthropic-ai/claude-code/cli-wrapper.cjs", &words)
        .env("ANTHROPIC_BASE_URL", &desk.model)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DISABLE_TELEMETRY", "1")
        // All tools in each request, and not first one to search them with.
        .env("ENABLE_TOOL_SEARCH", "false")
}

/// Codex.
pub(crate) fn codex(desk: &Desk) -> Program {
    let server = match desk.over {
        Over::Stdio => format!("command = {}\nargs = {}", json!(desk.command[0]), json!(desk.command[1..])),
        _ => format!("url = {}", json!(desk.url)),
    };
    let provider = format!("name = \"loopback\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"", desk.model);
    // What it would fetch on the side.
    let quiet =
        "[analytics]\nenabled = false\n[features]\napps = false\nplugins = false\nremote_plugin = false";
    let config = format!(
        "model = {}\nmodel_provider = \"loopback\"\ncheck_for_update_on_startup = false\n\
         [model_providers.loopback]\n{provider}\n[mcp_servers.tidegate]\n{server}\n{quiet}\n",
        json!(super::MODEL),
    );
    desk.file(".codex/config.toml", &config);
    let words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT];
    node("npm-usual", "@openai/codex/bin/codex.js", &words)
}

/// A program from npm.
fn node(folder: &str, script: &str, words: &[&str]) -> Program {
    let [node, script] = place::agent_node(folder, script);
    words.iter().fold(Program::new(node, &[&script]), |program, &word| program.arg(word))
}

/// A framework from PyPI, which a script of ours uses.
pub(crate) fn python(desk: &Desk, framework: &str, words: &[&str]) -> Program {
    let tools = match desk.over {
        Over::Stdio => json!(desk.command).to_string(),
        _ => desk.url.clone(),
    };
    let script = place::agent(&format!("python/{framework}_agent.py"));
    let program = Program::new(place::agent_python(framework), &[&script, &desk.model, &tools, PROMPT]);
    words.iter().fold(program, |program, &word| program.arg(word))
}
