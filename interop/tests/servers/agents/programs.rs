//! What starts the agents.

use serde_json::json;

use super::agent::Workspace;
use super::script::PROMPT;
use crate::meeting::Over;
use crate::paths;
use crate::server::Program;

/// Claude Code.
pub(crate) fn claude_code(workspace: &Workspace) -> Program {
    let server = match workspace.over {
        Over::Stdio => {
            json!({"type": "stdio", "command": workspace.command[0], "args": workspace.command[1..]})
        }
        _ => json!({"type": "http", "url": workspace.url}),
    };
    let servers = workspace.file("servers.json", &json!({"mcpServers": {"tidegate": server}}).to_string());
    let words =
        ["-p", PROMPT, "--mcp-config", &servers, "--strict-mcp-config", "--allowedTools", "mcp__tidegate"];
    node("npm-usual", "@anthropic-ai/claude-code/cli-wrapper.cjs", &words)
        .env("ANTHROPIC_BASE_URL", &workspace.model)
        .env("CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1")
        .env("DISABLE_AUTOUPDATER", "1")
        .env("DISABLE_TELEMETRY", "1")
        // All tools in each request, and not first one to search them with.
        .env("ENABLE_TOOL_SEARCH", "false")
}

/// Codex.
pub(crate) fn codex(workspace: &Workspace) -> Program {
    let server = match workspace.over {
        Over::Stdio => {
            format!("command = {}\nargs = {}", json!(workspace.command[0]), json!(workspace.command[1..]))
        }
        _ => format!("url = {}", json!(workspace.url)),
    };
    let provider =
        format!("name = \"loopback\"\nbase_url = \"{}/v1\"\nwire_api = \"responses\"", workspace.model);
    // What it would fetch on the side.
    let quiet =
        "[analytics]\nenabled = false\n[features]\napps = false\nplugins = false\nremote_plugin = false";
    let config = format!(
        "model = {}\nmodel_provider = \"loopback\"\ncheck_for_update_on_startup = false\n\
         [model_providers.loopback]\n{provider}\n[mcp_servers.tidegate]\n{server}\n{quiet}\n",
        json!(super::MODEL),
    );
    workspace.file(".codex/config.toml", &config);
    let words = ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", PROMPT];
    node("npm-usual", "@openai/codex/bin/codex.js", &words)
}

/// Copilot CLI.
pub(crate) fn copilot(workspace: &Workspace) -> Program {
    let server = json!({"type": "http", "url": workspace.url, "tools": ["*"]});
    let servers = workspace.file("servers.json", &json!({"mcpServers": {"tidegate": server}}).to_string());
    let servers = format!("@{servers}");
    let words = ["-p", PROMPT, "--allow-all-tools", "--additional-mcp-config", &servers, "--no-color"];
    node("npm-wider", "@github/copilot/npm-loader.js", &words)
        .env("COPILOT_OFFLINE", "true")
        .env("COPILOT_MODEL", super::MODEL)
        .env("COPILOT_PROVIDER_BASE_URL", format!("{}/v1", workspace.model))
}

/// Gemini CLI.
pub(crate) fn gemini_cli(workspace: &Workspace) -> Program {
    let settings = json!({
        "mcpServers": {"tidegate": {"httpUrl": workspace.url, "trust": true}},
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false},
    });
    workspace.file(".gemini/settings.json", &settings.to_string());
    let words = ["-p", PROMPT, "--yolo", "--skip-trust", "-m", "gemini-2.5-flash"];
    node("npm-wider", "@google/gemini-cli/bundle/gemini.js", &words)
        .env("GOOGLE_GEMINI_BASE_URL", &workspace.model)
}

/// Qwen Code.
pub(crate) fn qwen_code(workspace: &Workspace) -> Program {
    let settings = json!({
        "mcpServers": {"tidegate": {"httpUrl": workspace.url, "trust": true}},
        "security": {"auth": {"selectedType": "openai"}},
        // All tools in each request, and not first one to search them with.
        "tools": {"toolSearch": {"enabled": false}},
        "general": {"enableAutoUpdate": false},
        "privacy": {"usageStatisticsEnabled": false},
    });
    workspace.file(".qwen/settings.json", &settings.to_string());
    let address = format!("{}/v1", workspace.model);
    let words =
        ["--yolo", "-m", super::MODEL, "--auth-type", "openai", "--openai-base-url", &address, PROMPT];
    node("npm-wider", "@qwen-code/qwen-code/cli-entry.js", &words)
}

/// opencode.
pub(crate) fn opencode(workspace: &Workspace) -> Program {
    let provider = json!({
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": format!("{}/v1", workspace.model), "apiKey": "none"},
        "models": {(super::MODEL): {"tool_call": true}},
    });
    let config = json!({
        "autoupdate": false, "share": "disabled", "model": format!("loopback/{}", super::MODEL),
        "provider": {"loopback": provider},
        "mcp": {"tidegate": {"type": "remote", "url": workspace.url, "enabled": true}},
    });
    workspace.file("opencode.json", &config.to_string());
    let os = if cfg!(target_os = "macos") { "darwin" } else { std::env::consts::OS };
    let arch = if cfg!(target_arch = "x86_64") { "x64" } else { "arm64" };
    let [_, binary] = paths::agent_node("npm-wider", &format!("opencode-{os}-{arch}/bin/opencode"));
    Program::new(binary, &["run", PROMPT]).env("OPENCODE_DISABLE_MODELS_FETCH", "1")
}

/// Continue's command line.
pub(crate) fn continue_cli(workspace: &Workspace) -> Program {
    let model = json!({
        "name": "scripted", "provider": "openai", "model": super::MODEL, "apiKey": "none",
        "apiBase": format!("{}/v1", workspace.model), "roles": ["chat"], "capabilities": ["tool_use"],
    });
    let server = json!({"name": "tidegate", "type": "streamable-http", "url": workspace.url});
    let config = json!({
        "name": "loopback", "version": "1.0.0", "schema": "v1", "models": [model], "mcpServers": [server],
    });
    // YAML is a superset of JSON.
    let config = workspace.file("config.yaml", &config.to_string());
    node("npm-wider", "@continuedev/cli/dist/cn.js", &["-p", "--auto", "--config", &config, PROMPT])
        .env("CONTINUE_TELEMETRY_ENABLED", "0")
}

/// A framework from npm, which a script of ours uses.
pub(crate) fn javascript(workspace: &Workspace, framework: &str) -> Program {
    let [node, _] = paths::agent_node("npm-wider", "");
    let script = paths::agent(&format!("node/{framework}.mjs"));
    Program::new(node, &[&script, &workspace.model, &workspace.url, PROMPT])
        .env("TIDEGATE_NODE_MODULES", paths::agents("npm-wider").display().to_string())
}

/// A program from npm.
fn node(folder: &str, script: &str, words: &[&str]) -> Program {
    let [node, script] = paths::agent_node(folder, script);
    words.iter().fold(Program::new(node, &[&script]), |program, &word| program.arg(word))
}

/// A framework from PyPI, which a script of ours uses.
pub(crate) fn python(workspace: &Workspace, framework: &str, words: &[&str]) -> Program {
    let tools = match workspace.over {
        Over::Stdio => json!(workspace.command).to_string(),
        _ => workspace.url.clone(),
    };
    let script = paths::agent(&format!("python/{framework}_agent.py"));
    let program = Program::new(paths::agent_python(framework), &[&script, &workspace.model, &tools, PROMPT]);
    words.iter().fold(program, |program, &word| program.arg(word))
}
