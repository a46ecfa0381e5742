//! Where the servers are in a file.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

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
    // Programs create the file empty.
    let root = if text.trim().is_empty() {
        Value::Object(Map::from_iter([("mcpServers".to_owned(), Value::Object(Map::new()))]))
    } else {
        serde_json::from_str(&jsonc::plain(text))
            .map_err(|error| ServersFileError::Json { file: file(), reason: error.to_string() })?
    };
    let no_servers = |hint: &str| ServersFileError::NoServers { file: file(), hint: Some(hint.to_owned()) };
    let Value::Object(mut root) = root else {
        return Err(no_servers("it is not a JSON object"));
    };
    let inputs = inputs(root.get("inputs").or_else(|| root.get("mcp")?.get("inputs")));
    let of_project = of_project(&root, around);
    let servers = if let Some(servers) = root.remove("mcpServers").or_else(|| root.remove("servers")) {
        servers
    } else if let Some(servers) = root.get_mut("mcp").and_then(|mcp| mcp.get_mut("servers")) {
        servers.take()
    } else if root.contains_key("projects") {
        Value::Object(Map::new())
    } else if is_server(&root) {
        return Err(no_servers(
            "it describes one server without a name, so wrap it as {\"mcpServers\": {\"a name\": {…}}}",
        ));
    } else if root.values().any(|value| value.as_object().is_some_and(is_server)) {
        root.retain(|_, value| value.as_object().is_some_and(is_server));
        Value::Object(root)
    } else {
        return Err(ServersFileError::NoServers { file: file(), hint: None });
    };
    let Value::Object(servers) = servers else {
        return Err(no_servers("the servers must be an object that maps names to servers"));
    };
    let mut servers: BTreeMap<String, Value> = servers.into_iter().collect();
    servers.extend(of_project);
    Ok(ServersFile { origin: file(), servers, inputs })
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
