//! The result of `tidegate check`, for people and for programs. Neither shows a secret.

use std::path::Path;

use serde_json::{Value, json};
use tidegate_client::Target;
use tidegate_config::{ServerSettings, Settings, Source};

use super::connect::Reached;
use crate::commands::failure::Failure;
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::{clean, width};

/// What came of connecting to each server, if that was asked for.
type States<'a> = Option<&'a [Result<Reached, Failure>]>;

/// For people.
pub(super) fn text(path: &Path, settings: &Settings, states: States<'_>) -> String {
    let paint = Paint::stdout();
    let count = match settings.servers.len() {
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    let listen = format!("http://{}{}", settings.listen.address, settings.listen.path);
    let mut out = format!("{} is {}: {count}, listening on {listen}\n", path.display(), paint.good("good"));
    if !settings.servers.is_empty() {
        out.push('\n');
        out.push_str(&servers(settings).show(width(), paint));
    }
    if let Some(states) = states.filter(|states| !states.is_empty()) {
        out.push('\n');
        out.push_str(&connections(settings, states).show(width(), paint));
        for (server, state) in settings.servers.iter().zip(states) {
            if let Err(failure) = state {
                out.push_str(&last_words(&server.name, failure, paint));
            }
        }
    }
    if !settings.notes.is_empty() {
        out.push('\n');
    }
    for note in &settings.notes {
        out.push_str(&format!("{} {}\n", paint.warning("note:"), clean::line(note)));
    }
    out
}

fn servers(settings: &Settings) -> Table {
    let mut table = Table::new(&["NAME", "PREFIX", "TOOLS", "SERVER"]);
    for server in &settings.servers {
        let prefix = if server.prefix.is_empty() { "(none)" } else { &server.prefix };
        table.row([&server.name, prefix, &limits(server), &server.shown]);
    }
    table
}

/// What is offered of a server's tools.
fn limits(server: &ServerSettings) -> String {
    let mut parts = Vec::new();
    if !server.allow.is_empty() {
        parts.push(format!("only {}", server.allow.join(", ")));
    }
    if !server.deny.is_empty() {
        parts.push(format!("not {}", server.deny.join(", ")));
    }
    if parts.is_empty() {
        parts.push("all".to_owned());
    }
    if !server.tools.is_empty() {
        parts.push(format!("{} changed", server.tools.len()));
    }
    parts.join("; ")
}

fn connections(settings: &Settings, states: &[Result<Reached, Failure>]) -> Table {
    let mut table = Table::new(&["NAME", "PROTOCOL", "STATE"]);
    for (server, state) in settings.servers.iter().zip(states) {
        match state {
            Ok(reached) => {
                let tools = match (reached.tools, reached.offered) {
                    (1, 1) => "1 tool".to_owned(),
                    (all, offered) if all == offered => format!("{all} tools"),
                    (all, offered) => format!("{all} tools, {offered} of them offered"),
                };
                table.row([&server.name, reached.revision, &tools]);
            }
            Err(failure) => drop(table.row([&server.name, "-", &failure.line()])),
        }
    }
    table
}

/// What a process wrote before it failed.
fn last_words(name: &str, failure: &Failure, paint: Paint) -> String {
    let lines = failure.last_words();
    if lines.is_empty() {
        return String::new();
    }
    let mut out = format!("\n{} wrote to standard error:\n", paint.name(name));
    for line in lines {
        out.push_str(&format!("  {}\n", paint.dim(clean::line(line))));
    }
    out
}

/// For programs.
pub(super) fn json(path: &Path, settings: &Settings, states: States<'_>) -> Value {
    let servers: Vec<Value> = settings
        .servers
        .iter()
        .enumerate()
        .map(|(index, server)| {
            let mut value = server_json(server);
            if let Some(state) = states.and_then(|states| states.get(index)) {
                value["connection"] = state_json(state);
            }
            value
        })
        .collect();
    json!({
        "file": path,
        "ok": true,
        "listen": format!("http://{}{}", settings.listen.address, settings.listen.path),
        "stateDir": settings.state_dir,
        "servers": servers,
        "notes": settings.notes,
    })
}

fn server_json(server: &ServerSettings) -> Value {
    let kind = match &server.source {
        Source::Target(Target::Command(_)) => "command",
        Source::Target(Target::Url(_)) => "url",
        Source::Target(_) | Source::Builtin(_) => "builtin",
    };
    let time = |time| humantime::format_duration(time).to_string();
    json!({
        "name": server.name,
        "kind": kind,
        "server": server.shown,
        "prefix": server.prefix,
        "allow": server.allow.to_vec(),
        "deny": server.deny.to_vec(),
        "changedTools": server.tools.keys().collect::<Vec<_>>(),
        "timeout": time(server.options.timeout),
        "idle": server.idle.map(time),
    })
}

fn state_json(state: &Result<Reached, Failure>) -> Value {
    match state {
        Ok(reached) => json!({
            "ok": true,
            "revision": reached.revision,
            "era": if reached.modern { "modern" } else { "legacy" },
            "tools": reached.tools,
            "offered": reached.offered,
        }),
        Err(failure) => {
            let mut value = failure.to_json();
            value["ok"] = false.into();
            value
        }
    }
}
