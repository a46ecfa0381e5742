//! A story for people: what was called, by whom, what was decided, where it went, where the time went, and how it ended.

use std::fmt::Write;

use serde_json::Value;

use crate::term::clean::line as clean;

/// The lines of a story.
struct Lines(String);

impl Lines {
    fn add(&mut self, title: &str, what: &str) {
        if !what.is_empty() {
            // Writing to a string does not fail.
            let _ = writeln!(self.0, "  {title:<9}{what}");
        }
    }
}

/// A member as people read it; `None` if there is none.
fn said(of: &Value, name: &str) -> Option<String> {
    match &of[name] {
        Value::Null => None,
        Value::String(text) => Some(clean(text)),
        other => Some(clean(&other.to_string())),
    }
}

/// Those of the members that there are, each with its title, separated by commas.
fn parts(of: &Value, titles: &[(&str, &str)]) -> String {
    let parts = titles.iter().filter_map(|(name, title)| Some(format!("{title}{}", said(of, name)?)));
    parts.collect::<Vec<_>>().join(", ")
}

/// The whole story.
pub(super) fn told(call: &Value) -> String {
    let text = |name: &str| said(call, name);
    let mut lines = Lines(String::new());
    let name = text("tool").or(text("name")).map(|name| format!(" {name}")).unwrap_or_default();
    lines.add("called", &format!("{}{name}", text("method").unwrap_or_default()));
    let who = [
        ("subject", ""),
        ("tenant", "tenant "),
        ("issuer", "issuer "),
        ("client", "client "),
        ("endpoint", "endpoint "),
    ];
    lines.add("by", &parts(call, &who));
    if let Some(trace) = text("trace").filter(|trace| Some(trace) != text("id").as_ref()) {
        lines.add("trace", &trace);
    }
    if let Some(arguments) = body(&call["arguments"]) {
        lines.add("with", &arguments);
    }
    let before = &call["continues"];
    if let Some(id) = said(before, "id") {
        let (number, after) = (&before["number"], &before["afterMs"]);
        lines.add(
            if call["answers"].is_null() { "after" } else { "answers" },
            &format!("the questions of {id} (#{number}), which came {after} ms before this"),
        );
    } else if let Some(answers) = text("answers") {
        lines.add("answers", &format!("{answers} questions of an earlier call"));
    }
    if let Some(decision) = text("decision") {
        let line_number = call["line"].as_u64().map(|line| format!(" (line {line})")).unwrap_or_default();
        lines.add("policy", &format!("{decision} by {}{line_number}", text("rule").unwrap_or_default()));
    }
    if call["limit"].is_object() {
        lines.add("limit", &clean(&call["limit"].to_string()));
    }
    sent(call, &mut lines);
    way(call, &mut lines);
    if let Some(left_out) = text("eventsLeftOut") {
        lines.add("then", &format!("{left_out} more things that are not kept"));
    }
    if let Some(asks) = call["asks"].as_array() {
        let kinds: Vec<String> = asks.iter().filter_map(Value::as_str).map(clean).collect();
        lines.add("asks", &format!("the caller {}", kinds.join(", ")));
    }
    let stages = [
        ("queueMs", "in line "),
        ("decidingMs", "deciding "),
        ("limitMs", "at a limit "),
        ("connectionMs", "connecting "),
        ("serverMs", "at the server "),
        ("pauseMs", "between attempts "),
        ("gatewayMs", "the rest "),
    ];
    lines.add("time", &format!("{} (ms)", parts(&call["stages"], &stages)));
    let error = text("error").map(|error| format!(" {error}")).unwrap_or_default();
    let bytes = text("resultBytes").map(|bytes| format!(" with {bytes} bytes")).unwrap_or_default();
    let message = text("message").map(|message| format!(": {message}")).unwrap_or_default();
    let outcome = text("outcome").unwrap_or_default();
    lines.add("ended", &format!("{outcome}{error}{bytes} after {} ms{message}", call["durationMs"]));
    if let Some(result) = body(&call["result"]) {
        lines.add("result", &result);
    }
    let number = text("number").map(|number| format!("  #{number}")).unwrap_or_default();
    let (id, time) = (text("id").unwrap_or_default(), text("time").unwrap_or_default());
    format!("{id}{number}  {time}\n{}", lines.0)
}

/// Where it went, what that speaks, and what came of each attempt.
fn sent(call: &Value, lines: &mut Lines) {
    let text = |name: &str| said(call, name);
    if let Some(server) = text("server") {
        let revisions = match (text("revision"), text("serverRevision")) {
            (Some(own), Some(its)) if own != its => {
                format!(": it speaks {its}, the caller {own}; translated")
            }
            (_, Some(its)) => format!(": it speaks {its}, and so does the caller"),
            _ => String::new(),
        };
        lines.add("sent to", &format!("{server}{revisions}"));
    }
    for (name, title) in [("sessions", "sessions: "), ("questions", "questions: "), ("task", "task: ")] {
        if let Some(what) = said(&call["translation"], name) {
            lines.add("", &format!("{title}{what}"));
        }
    }
}

/// What happened on the way, in the order in which it ended.
fn way(call: &Value, lines: &mut Lines) {
    let all = |name: &str| call[name].as_array().into_iter().flatten();
    let attempts = all("attempts").map(|attempt| (&attempt["atMs"], "asked", attempted(attempt)));
    // The failure of an attempt is told once.
    let is_told = |event: &&Value| {
        event["what"] != "failed" || !all("attempts").any(|attempt| attempt["message"] == event["why"])
    };
    let events = all("events").filter(is_told).map(|event| (&event["atMs"], "then", happened(event)));
    let mut way: Vec<_> = attempts.chain(events).collect();
    way.sort_by(|(one, ..), (other, ..)| {
        one.as_f64().unwrap_or_default().total_cmp(&other.as_f64().unwrap_or_default())
    });
    // What is looked for twice is hidden twice.
    way.dedup_by(|(_, _, one), (_, _, other)| one == other);
    way.iter().for_each(|(_, title, what)| lines.add(title, what));
}

/// One attempt at a server, and what came of it.
fn attempted(attempt: &Value) -> String {
    let details = parts(attempt, &[("error", ""), ("code", "code "), ("bytes", "bytes ")]);
    let details = if details.is_empty() { details } else { format!(" ({details})") };
    let message = said(attempt, "message").map(|message| format!(": {message}")).unwrap_or_default();
    let of = |name: &str| said(attempt, name).unwrap_or_default();
    let (server, transport, outcome) = (of("server"), of("transport"), of("outcome"));
    // Nobody waited for what came of it.
    let outcome = if outcome == "cancelled" { "given up" } else { &*outcome };
    format!("{server} ({transport}): {outcome} after {} ms{details}{message}", attempt["tookMs"])
}

/// Something that happened on the way.
fn happened(event: &Value) -> String {
    let what = said(event, "what").unwrap_or_default();
    let details = [
        ("for", "for "),
        ("tookMs", "took ms "),
        ("attempt", "attempt "),
        ("delayMs", "after ms "),
        ("server", "server "),
        ("state", "state "),
        ("error", "error "),
        ("bytes", "bytes "),
        ("limit", "limit "),
    ];
    let details = parts(event, &details);
    let details = if details.is_empty() { details } else { format!(" ({details})") };
    let why = said(event, "why").map(|why| format!(": {why}")).unwrap_or_default();
    format!("{what}{details}{why}")
}

/// Arguments or a result, where stories have them.
fn body(body: &Value) -> Option<String> {
    let bytes = body["bytes"].as_u64()?;
    let json = Some(&body["json"]).filter(|json| !json.is_null());
    Some(match json {
        Some(json) => clean(&json.to_string()),
        None => {
            let beginning = clean(body["beginning"].as_str().unwrap_or_default());
            format!("{beginning}… ({bytes} bytes)")
        }
    })
}
