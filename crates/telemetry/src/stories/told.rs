//! A story as text: a JSON object. Whatever others wrote is masked.

use std::time::Duration;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Method};
use tidegate_service::journal::{Entry, What};
use tidegate_service::secrets::mask;
use tidegate_service::{Stage, rfc3339_ms};

use super::story::{Story, cut};

/// The story of a call, under its number.
pub(super) fn told(number: u64, story: &Story) -> Json {
    let mut out = ObjectWriter::with_capacity(1024);
    let optional = |out: &mut ObjectWriter, name: &str, value: Option<&str>| {
        if let Some(value) = value {
            out.str(name, &mask(value));
        }
    };
    let arrived_ms = story.ended_ms.saturating_sub(story.duration.as_millis() as u64);
    out.str("id", story.id.as_str()).value("number", &number);
    optional(&mut out, "trace", story.trace.as_deref());
    out.str("time", &rfc3339_ms(story.ended_ms)).str("arrived", &rfc3339_ms(arrived_ms));
    out.str("method", &mask(&cut(story.method.as_str())));
    let title = if story.method == Method::ToolsCall { "tool" } else { "name" };
    optional(&mut out, title, story.name.as_deref());
    optional(&mut out, "endpoint", story.endpoint.as_deref());
    optional(&mut out, "issuer", story.principal.issuer.as_deref());
    optional(&mut out, "subject", story.principal.subject.as_deref());
    optional(&mut out, "tenant", story.principal.tenant.as_deref());
    optional(&mut out, "client", story.client().as_deref());
    out.str("revision", story.revision.as_str());
    if let Some(decision) = &story.decision {
        out.str("decision", decision.as_str());
        optional(&mut out, "rule", Some(&decision.rule));
        if let Some(line) = decision.line {
            out.value("line", &line);
        }
    }
    optional(&mut out, "server", story.server.as_deref());
    translation(&mut out, story);
    if let Some(round) = story.continues {
        // One that was only waited for ends this one.
        let until = if story.answers.is_some() { arrived_ms } else { story.ended_ms };
        let since = until.saturating_sub(round.ended_ms);
        let mut before = ObjectWriter::new();
        before.str("id", round.id.as_str()).value("number", &round.number);
        before.value("afterMs", &since);
        out.json("continues", &before.finish());
    }
    if let Some(answers) = story.answers {
        out.value("answers", &answers);
    }
    if !story.asks.is_empty() {
        out.value("asks", &story.asks.iter().map(Method::as_str).map(cut).collect::<Vec<_>>());
    }
    out.str("outcome", story.outcome.as_str());
    optional(&mut out, "error", story.error.as_deref());
    optional(&mut out, "message", story.message.as_deref());
    if let Some(limit) = &story.limit {
        out.json("limit", limit);
    }
    if let Some(bytes) = story.bytes {
        out.value("resultBytes", &bytes);
    }
    out.value("durationMs", &ms(story.duration));
    out.json("stages", &stages(story));
    list(&mut out, "attempts", story.notes.entries.iter().filter_map(attempt));
    list(&mut out, "events", story.notes.entries.iter().filter_map(event));
    if story.notes.left_out > 0 {
        out.value("eventsLeftOut", &story.notes.left_out);
    }
    for (name, body) in [("arguments", &story.arguments), ("result", &story.result)] {
        if let Some(body) = body {
            body.write(&mut out, name);
        }
    }
    out.finish()
}

/// What had to be translated between what the caller and the server speak.
fn translation(out: &mut ObjectWriter, story: &Story) {
    let Some(its) = story.server_revision else { return };
    let own = story.revision;
    out.str("serverRevision", its.as_str());
    out.value("translated", &(its != own));
    if its == own {
        return;
    }
    let mut said = ObjectWriter::new();
    said.str("caller", own.as_str()).str("server", its.as_str());
    if let Some(attempt) = story.attempts().last() {
        said.str("transport", attempt.transport);
    }
    match (own.is_modern(), its.is_modern()) {
        (true, false) => {
            said.str("sessions", "the server has one, the caller has none");
        }
        (false, true) => {
            said.str("sessions", "the caller has one, the server has none");
        }
        _ => {}
    }
    let questions = !story.asks.is_empty() || story.answers.is_some();
    match (questions, own.is_modern(), its.is_modern()) {
        (true, true, false) => {
            said.str(
                "questions",
                "asked by the server in its session, answered by the caller in another call",
            );
        }
        (true, false, true) => {
            said.str(
                "questions",
                "asked of the caller in its session, answered to the server in another call",
            );
        }
        _ => {}
    }
    if story.outcome == tidegate_service::events::Outcome::Task {
        said.str("task", "the call goes on as a task");
    }
    out.json("translation", &said.finish());
}

/// Where the time went.
fn stages(story: &Story) -> Json {
    let (mut queue, mut limit, mut connection, mut pause) = Default::default();
    let mut deciding = None;
    let mut waits = Duration::ZERO;
    let mut asked = Duration::ZERO;
    for Entry { after, what } in &story.notes.entries {
        match what {
            What::Waited { stage, took, .. } => {
                let sum: &mut Duration = match stage {
                    Stage::Admission => &mut queue,
                    Stage::Limit => &mut limit,
                    Stage::Connection | Stage::Turn => &mut connection,
                    Stage::Pause => &mut pause,
                };
                *sum += *took;
                waits += *took;
            }
            What::Decided if asked.is_zero() => deciding = Some(after.saturating_sub(waits)),
            What::Asked(attempt) => asked += attempt.took,
            What::Decided | What::Remark(..) => {}
        }
    }
    // Connecting is a part of the attempt that it is for.
    let server = asked.saturating_sub(connection);
    let mut rest = story.duration;
    let mut out = ObjectWriter::new();
    for (name, time) in [
        ("queueMs", Some(queue)),
        ("decidingMs", deciding),
        ("limitMs", Some(limit)),
        ("connectionMs", Some(connection)),
        ("serverMs", Some(server)),
        ("pauseMs", Some(pause)),
    ] {
        if let Some(time) = time.filter(|time| !time.is_zero()) {
            out.value(name, &ms(time));
            rest = rest.saturating_sub(time);
        }
    }
    out.value("gatewayMs", &ms(rest));
    out.finish()
}

/// One attempt at a server.
fn attempt(entry: &Entry) -> Option<Json> {
    let What::Asked(attempt) = &entry.what else { return None };
    let mut out = ObjectWriter::new();
    out.value("atMs", &ms(entry.after));
    out.str("server", &mask(&attempt.server)).str("transport", attempt.transport);
    out.str("outcome", attempt.outcome.as_str()).value("tookMs", &ms(attempt.took));
    if let Some(error) = &attempt.error {
        out.str("error", &mask(&cut(error)));
    }
    if let Some(code) = attempt.code {
        out.value("code", &code);
    }
    if let Some(message) = &attempt.message {
        out.str("message", &mask(message));
    }
    if let Some(bytes) = attempt.bytes {
        out.value("bytes", &bytes);
    }
    Some(out.finish())
}

/// Something that happened on the way. Decisions and attempts are told apart from it.
fn event(entry: &Entry) -> Option<Json> {
    let mut out = ObjectWriter::new();
    match &entry.what {
        What::Waited { stage, took, is_over } => {
            out.str("what", if *is_over { "waited" } else { "gave up waiting" });
            out.value("atMs", &ms(entry.after));
            out.str("for", stage.as_str()).value("tookMs", &ms(*took));
        }
        What::Remark(what, details) => {
            out.str("what", what).value("atMs", &ms(entry.after));
            let details = tidegate_protocol::Object::of(details)?;
            for member in details.members() {
                out.raw(&member.name, member.value);
            }
        }
        What::Decided | What::Asked(_) => return None,
    }
    Some(out.finish())
}

fn list(out: &mut ObjectWriter, name: &str, entries: impl Iterator<Item = Json>) {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        return;
    }
    out.with(name, |out| {
        for (at, entry) in entries.enumerate() {
            out.push(if at == 0 { b'[' } else { b',' });
            out.extend_from_slice(entry.as_str().as_bytes());
        }
        out.push(b']');
    });
}

/// In milliseconds, with as many digits as mean something.
fn ms(time: Duration) -> f64 {
    time.as_micros() as f64 / 1e3
}
