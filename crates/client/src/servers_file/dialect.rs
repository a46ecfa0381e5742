//! What programs call the same things. Every server is brought into the form that Claude and Cursor use, so that there is
//! one reader for all of them ([`Description`](super::Description)).

use std::path::Path;

use serde_json::{Map, Value, json};

use crate::target::is_variable;

/// Whose words a file uses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Dialect {
    /// Claude, Cursor, VS Code, Windsurf and everybody who follows them.
    Usual,
    /// Gemini CLI: times are in milliseconds.
    Gemini,
    /// Codex: TOML, and names of variables instead of references to them.
    Codex,
    /// Zed: a command may be an object of its own.
    Zed,
}

impl Dialect {
    /// That of a JSON file whose servers are under the usual names.
    pub(super) fn of_json(origin: &Path) -> Dialect {
        match origin.components().any(|part| part.as_os_str() == ".gemini") {
            true => Dialect::Gemini,
            false => Dialect::Usual,
        }
    }

    /// A server in the usual form. What cannot be said there, or is not of the type that it should be, stays as it is: it
    /// is noted when the server is read.
    pub(super) fn usual(self, server: Value) -> Value {
        let Value::Object(mut members) = server else { return server };
        match self {
            // Windsurf.
            Dialect::Usual => rename(&mut members, "disabledTools", "excludeTools"),
            Dialect::Gemini => rename(&mut members, "timeout", "timeoutMs"),
            Dialect::Codex => codex(&mut members),
            Dialect::Zed => zed(&mut members),
        }
        Value::Object(members)
    }
}

fn rename(members: &mut Map<String, Value>, from: &str, to: &str) {
    if !members.contains_key(to)
        && let Some(value) = members.remove(from)
    {
        members.insert(to.to_owned(), value);
    }
}

/// The object under a name, which is made if there is none; `None` if something else is there.
fn table<'a>(members: &'a mut Map<String, Value>, name: &str) -> Option<&'a mut Map<String, Value>> {
    members.entry(name).or_insert_with(|| json!({})).as_object_mut()
}

fn codex(members: &mut Map<String, Value>) {
    rename(members, "http_headers", "headers");
    rename(members, "enabled_tools", "includeTools");
    rename(members, "disabled_tools", "excludeTools");
    rename(members, "startup_timeout_ms", "startTimeoutMs");
    for (seconds, milliseconds) in
        [("startup_timeout_sec", "startTimeoutMs"), ("tool_timeout_sec", "timeoutMs")]
    {
        if let Some(time) = members.get(seconds).and_then(Value::as_f64) {
            members.remove(seconds);
            members.insert(milliseconds.to_owned(), json!(time * 1000.0));
        }
    }
    let variable = |value: &Value| {
        value
            .as_str()
            .or_else(|| value.get("name")?.as_str())
            .filter(|name| is_variable(name))
            .map(str::to_owned)
    };
    if let Some(Value::Object(from)) = members.get("env_http_headers").cloned()
        && from.values().all(|value| variable(value).is_some())
        && let Some(headers) = table(members, "headers")
    {
        let named = from.iter().filter_map(|(header, value)| Some((header.clone(), variable(value)?)));
        headers.extend(named.map(|(header, name)| (header, json!(format!("${{{name}}}")))));
        members.remove("env_http_headers");
    }
    if let Some(name) = members.get("bearer_token_env_var").and_then(variable)
        && let Some(headers) = table(members, "headers")
    {
        headers.insert("Authorization".to_owned(), json!(format!("Bearer ${{{name}}}")));
        members.remove("bearer_token_env_var");
    }
    // Variables that are passed on under their own names.
    if let Some(names) = members.get("env_vars").and_then(Value::as_array)
        && let Some(names) = names.iter().map(variable).collect::<Option<Vec<_>>>()
        && let Some(env) = table(members, "env")
    {
        for name in names {
            let reference = json!(format!("${{{name}}}"));
            env.entry(name).or_insert(reference);
        }
        members.remove("env_vars");
    }
}

fn zed(members: &mut Map<String, Value>) {
    members.remove("source");
    if let Some(Value::Object(mut command)) = members.get("command").cloned() {
        for (from, to) in [("path", "command"), ("args", "args"), ("env", "env")] {
            if let Some(value) = command.remove(from) {
                members.insert(to.to_owned(), value);
            }
        }
    }
}
