//! The result of `tidegate check`, for people and for programs. Neither shows a secret.

use serde_json::{Value, json};
use tidegate_client::{Instances, Target};
use tidegate_config::{DisabledServer, ServerSettings, Settings, Source};

use super::{Checked, Inspection, States, watching};
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;
use crate::term::style::Paint;
use crate::term::table::Table;
use crate::term::{clean, width};

/// For people.
pub(super) fn text(checked: &Checked) -> String {
    let (paint, settings) = (Paint::stdout(), &checked.settings);
    let count = count(settings);
    let listen = format!("{}{}", checked.access.origin, settings.listen.path);
    let path = checked.path.display();
    let mut out = match checked.access.problems.is_empty() {
        true => format!("{path} is {}: {count}, listening on {listen}\n", paint.good("valid")),
        false => format!("{path} {}: {count}, listening on {listen}\n", paint.bad("cannot be served")),
    };
    if let Some(access) = checked.access.lines(settings) {
        out.push('\n');
        out.push_str(&access.show(width(), paint));
    }
    if !settings.servers.is_empty() {
        out.push('\n');
        out.push_str(&servers(settings).show(width(), paint));
    }
    if let Some(states) = checked.states.as_ref().filter(|states| !states.is_empty()) {
        out.push('\n');
        out.push_str(&connections(settings, states).show(width(), paint));
        for (server, state) in settings.servers.iter().zip(states) {
            if let Err(failure) = state {
                out.push_str(&details(&server.name, failure, paint));
            }
        }
    }
    // What the attempt to connect has said already is not said again.
    let problems: Vec<_> = checked.problems.iter().filter(|_| checked.states.is_none()).collect();
    if !(problems.is_empty()
        && checked.access.problems.is_empty()
        && checked.warnings.is_empty()
        && settings.notes.is_empty())
    {
        out.push('\n');
    }
    for problem in &checked.access.problems {
        out.push_str(&format!("{} {}\n", paint.bad("problem:"), clean::line(problem)));
    }
    for (_, problem) in problems {
        out.push_str(&format!("{} {}\n", paint.bad("problem:"), clean::line(problem)));
    }
    for warning in &checked.warnings {
        out.push_str(&format!("{} {}\n", paint.warning("warning:"), clean::line(warning)));
    }
    for note in &settings.notes {
        out.push_str(&format!("{} {}\n", paint.warning("note:"), clean::line(note)));
    }
    out.push_str(&format!("\n{}\n", summary(checked)));
    out
}

/// How many servers there are, and how many of them are not used: `6 servers, 1 disabled`.
fn count(settings: &Settings) -> String {
    let count = match settings.servers.len() + settings.disabled.len() {
        1 => "1 server".to_owned(),
        count => format!("{count} servers"),
    };
    match settings.disabled.len() {
        0 => count,
        disabled => format!("{count}, {disabled} disabled"),
    }
}

/// Everything in one line.
fn summary(checked: &Checked) -> String {
    let all = count(&checked.settings);
    let total = checked.settings.servers.len();
    match &checked.states {
        _ if !checked.access.problems.is_empty() => {
            let count = match checked.access.problems.len() {
                1 => "1 problem".to_owned(),
                count => format!("{count} problems"),
            };
            format!("{all}: {count}, and nobody can be served")
        }
        Some(states) => {
            let works = states.iter().filter(|state| state.is_ok()).count();
            format!("{all}: {works} of {total} {}", if works == 1 { "works" } else { "work" })
        }
        None if checked.problems.is_empty() => {
            format!("{all}: no problems found. To try them, run tidegate check --connect")
        }
        None => {
            let fail = checked.problems.len();
            format!("{all}: {fail} of {total} will fail")
        }
    }
}

fn servers(settings: &Settings) -> Table {
    // Almost nobody changes it, so it has no column then.
    let shares = settings.servers.iter().any(|server| instances(server) != USUAL_INSTANCES);
    let columns: &[&str] = match shares {
        true => &["NAME", "PREFIX", "TOOLS", "INSTANCES", "SERVER"],
        false => &["NAME", "PREFIX", "TOOLS", "SERVER"],
    };
    let mut table = Table::new(columns);
    for server in &settings.servers {
        let prefix = if server.prefix.is_empty() { "(none)" } else { &server.prefix };
        let limits = limits(server);
        match shares {
            true => table.row([&server.name, prefix, &limits, instances(server), &server.shown]),
            false => table.row([&server.name, prefix, &limits, &server.shown]),
        };
    }
    table
}

/// What servers have unless the configuration says otherwise.
const USUAL_INSTANCES: &str = "per-user";

/// `instances` as it is written.
fn instances(server: &ServerSettings) -> &'static str {
    match server.options.sessions.instances {
        Instances::PerClient => "per-client",
        Instances::One => "one",
        Instances::PerUser | Instances::Own => USUAL_INSTANCES,
    }
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

fn connections(settings: &Settings, states: &States) -> Table {
    let mut table = Table::new(&["NAME", "PROTOCOL", "STATE"]);
    for (server, state) in settings.servers.iter().zip(states) {
        match state {
            Ok(inspected) => {
                let (all, offered) = (inspected.tools.len(), offered(server, inspected));
                let hidden = if all == offered { String::new() } else { format!(", {offered} offered") };
                table.row([
                    &server.name,
                    inspected.facts.revision.as_str(),
                    &format!("{}{hidden}", inspected.offers()),
                ]);
            }
            Err(failure) => drop(table.row([&server.name, "-", &failure.line()])),
        }
    }
    table
}

/// How many of its tools pass the configuration.
fn offered(server: &ServerSettings, inspected: &Inspection) -> usize {
    inspected.tools.iter().filter(|tool| server.offers(tool.name())).count()
}

/// What to do about a failure, and what the process wrote before it.
fn details(name: &str, failure: &Failure, paint: Paint) -> String {
    let mut out = String::new();
    if let Some(advice) = failure.advice().filter(|_| failure.exit != Exit::Unavailable) {
        out.push_str(&format!("\n{}: {}\n", paint.name(name), clean::line(advice)));
    }
    let lines = failure.stderr();
    if !lines.is_empty() {
        out.push_str(&format!("\n{} wrote to standard error:\n", paint.name(name)));
    }
    for line in lines {
        out.push_str(&format!("  {}\n", paint.dim(clean::line(line))));
    }
    out
}

/// For programs.
pub(super) fn json(checked: &Checked) -> Value {
    let (settings, states) = (&checked.settings, &checked.states);
    let servers: Vec<Value> = settings
        .servers
        .iter()
        .enumerate()
        .map(|(index, server)| {
            let mut value = server_json(server);
            if let Some((_, problem)) = checked.problems.iter().find(|(name, _)| *name == server.name) {
                value["problem"] = problem.clone().into();
            }
            if let Some(state) = states.as_ref().and_then(|states| states.get(index)) {
                value["connection"] = state_json(server, state);
            }
            value
        })
        .collect();
    let errors = checked.access.problems.iter().map(|problem| json!({"message": problem}));
    let access = checked.access.json(settings);
    json!({
        "file": checked.path,
        "ok": checked.is_well(),
        "errors": errors.collect::<Vec<_>>(),
        "listen": format!("{}{}", checked.access.origin, settings.listen.path),
        "auth": access["auth"],
        "policy": access["policy"],
        "audit": access["audit"],
        "telemetry": watching::json(settings),
        "endpoints": access["endpoints"],
        "certificateExpires": access["certificateExpires"],
        "stateDir": settings.state_dir,
        "servers": servers,
        "disabled": settings.disabled.iter().map(disabled_json).collect::<Vec<_>>(),
        "warnings": checked.warnings,
        "notes": settings.notes,
    })
}

fn disabled_json(server: &DisabledServer) -> Value {
    let DisabledServer { name, reason, missing, advice, .. } = server;
    json!({"name": name, "reason": reason, "missing": missing, "advice": advice})
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
        "instances": instances(server),
        "timeout": time(server.options.timeout),
        "startTimeout": time(server.options.init_timeout),
        "idle": server.idle.map(time),
    })
}

fn state_json(server: &ServerSettings, state: &Result<Inspection, Failure>) -> Value {
    match state {
        Ok(inspected) => json!({
            "ok": true,
            "revision": inspected.facts.revision.as_str(),
            "era": if inspected.facts.revision.is_modern() { "modern" } else { "legacy" },
            "tools": inspected.tools.len(),
            "offered": offered(server, inspected),
            "resources": inspected.resources,
            "prompts": inspected.prompts,
        }),
        Err(failure) => {
            let mut value = failure.to_json();
            value["ok"] = false.into();
            value
        }
    }
}
