//! Where the servers are in a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::dialect::Dialect;
use super::expand::Surroundings;
use super::{Input, ServersFile, ServersFileError, jsonc};

/// Members of an entry that say what to connect to.
pub(super) const ADDRESSES: [&str; 3] = ["httpUrl", "url", "serverUrl"];

pub(super) fn parse(
    text: &str,
    origin: &Path,
    around: &Surroundings<'_>,
) -> Result<ServersFile, ServersFileError> {
    let file = || origin.to_owned();
    let no_servers =
        |hint: Option<&str>| ServersFileError::NoServers { file: file(), hint: hint.map(str::to_owned) };
    if origin.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml")) {
        let servers =
            codex(text, origin)?.ok_or_else(|| no_servers(Some("it has no [mcp_servers.NAME] table")))?;
        return Ok(ServersFile {
            origin: file(),
            servers: usual(Dialect::Codex, servers),
            inputs: Vec::new(),
        });
    }
    // Programs create the file empty.
    let root = if text.trim().is_empty() {
        Value::Object(Map::from_iter([("mcpServers".to_owned(), Value::Object(Map::new()))]))
    } else {
        serde_json::from_str(&jsonc::plain(text))
            .map_err(|error| ServersFileError::Json { file: file(), reason: error.to_string() })?
    };
    let Value::Object(mut root) = root else {
        return Err(no_servers(Some("it is not a JSON object")));
    };
    let inputs = inputs(root.get("inputs").or_else(|| root.get("mcp")?.get("inputs")));
    let of_project = of_project(&root, around);
    // Settings files have objects for many things, so what looks like a server there need not be one.
    let is_settings = origin.file_name().is_some_and(|name| name == "settings.json");
    let mut dialect = Dialect::of_json(origin);
    let servers = if let Some(servers) = root.remove("mcpServers").or_else(|| root.remove("servers")) {
        servers
    } else if let Some(servers) = root.get_mut("mcp").and_then(|mcp| mcp.get_mut("servers")) {
        servers.take()
    } else if let Some(servers) = root.remove("context_servers") {
        dialect = Dialect::Zed;
        servers
    } else if root.contains_key("projects") {
        Value::Object(Map::new())
    } else if is_settings {
        return Err(no_servers(None));
    } else if is_server(&root) {
        return Err(no_servers(Some(
            "it describes one server without a name; wrap it as {\"mcpServers\": {\"NAME\": {…}}}",
        )));
    } else if root.values().any(|value| value.as_object().is_some_and(is_server)) {
        root.retain(|_, value| value.as_object().is_some_and(is_server));
        Value::Object(root)
    } else {
        return Err(no_servers(None));
    };
    let Value::Object(mut servers) = servers else {
        return Err(no_servers(Some("the servers must be an object that maps names to servers")));
    };
    servers.extend(of_project);
    Ok(ServersFile { origin: file(), servers: usual(dialect, servers), inputs })
}

fn usual(dialect: Dialect, servers: Map<String, Value>) -> BTreeMap<String, Value> {
    servers.into_iter().map(|(name, server)| (name, dialect.usual(server))).collect()
}

/// The servers of a configuration of Codex.
fn codex(text: &str, origin: &Path) -> Result<Option<Map<String, Value>>, ServersFileError> {
    let mut root: Map<String, Value> = toml::from_str(text).map_err(|error| {
        // The whole error quotes the text, which may hold secrets.
        let before = error.span().and_then(|span| text.get(..span.start));
        let line = before.map(|before| before.matches('\n').count() + 1);
        let reason = match line {
            Some(line) => format!("line {line}: {}", error.message()),
            None => error.message().to_owned(),
        };
        ServersFileError::Toml { file: origin.to_owned(), reason }
    })?;
    match root.remove("mcp_servers") {
        Some(Value::Object(servers)) => Ok(Some(servers)),
        _ => Ok(None),
    }
}

/// Whether this looks like the description of a server.
fn is_server(members: &Map<String, Value>) -> bool {
    ADDRESSES.iter().chain(&["command"]).any(|key| members.get(*key).is_some_and(Value::is_string))
}

/// The servers that Claude Code keeps for the current directory only. They come before those of the user.
fn of_project(root: &Map<String, Value>, around: &Surroundings<'_>) -> Map<String, Value> {
    let servers = || {
        let projects = root.get("projects")?.as_object()?;
        let here = around.here.to_str()?;
        projects.get(here)?.get("mcpServers")?.as_object()
    };
    servers().cloned().unwrap_or_default()
}

fn inputs(list: Option<&Value>) -> Vec<Input> {
    let text = |input: &Value, key: &str| input.get(key).and_then(Value::as_str).map(str::to_owned);
    list.and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|input| {
            Some(Input {
                id: text(input, "id")?,
                description: text(input, "description"),
                default: text(input, "default"),
            })
        })
        .collect()
}
