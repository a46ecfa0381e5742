//! Log lines for somebody who looks at a terminal: a short time, which server it is about, and a sentence.
//!
//! ```text
//! 12:00:01 [time] ready: 2 tools (2025-11-25, 1.2 s)
//! 12:00:02 WARN [github] not available: cannot start npx
//! 12:00:03 [time] tools/call get_time: ok in 1.2 ms (claude-code)
//! ```

use std::fmt::{self, Write as _};

use tidegate_protocol::text::escaped;
use tidegate_service::secrets::mask;
use tidegate_service::{Current, wire_trace};
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

/// What servers' programs write to standard error.
const CHILD: &str = "tidegate::child";
/// How servers are doing: sentences that need none of their fields.
const LIFECYCLE: &str = "tidegate::lifecycle";

/// What was done so far.
pub(super) const STATISTICS: &str = "tidegate::statistics";
/// One line for each call.
pub(super) const ACCESS: &str = "tidegate::access";

const DIM: &str = "\u{1b}[2m";
const RED: &str = "\u{1b}[31m";
const YELLOW: &str = "\u{1b}[33m";
const CYAN: &str = "\u{1b}[36m";
const RESET: &str = "\u{1b}[0m";

/// Appends the short line about an event.
pub(super) fn write(out: &mut String, event: &Event<'_>, colours: bool) {
    let (level, target) = (*event.metadata().level(), event.metadata().target());
    let mut parts = Parts::default();
    event.record(&mut parts);
    match target {
        wire_trace::TARGET => {
            parts.server.get_or_insert_with(|| "client".to_owned());
            parts.rest.clear();
        }
        LIFECYCLE | CHILD | STATISTICS => parts.rest.clear(),
        ACCESS => parts.say_call(),
        _ => parts.add_call(level >= Level::DEBUG),
    }
    let paint = |colour: &'static str| if colours { colour } else { "" };
    let reset = paint(RESET);
    // Writing to a string does not fail.
    let _ = write!(out, "{}{}{reset} ", paint(DIM), clock());
    let _ = match level {
        Level::ERROR => write!(out, "{}ERROR{reset} ", paint(RED)),
        Level::WARN => write!(out, "{}WARN{reset} ", paint(YELLOW)),
        _ => Ok(()),
    };
    if let Some(server) = &parts.server {
        let _ = write!(out, "{}[{}]{reset} ", paint(CYAN), harmless(server));
    }
    let is_aside = target == CHILD || level >= Level::DEBUG;
    let (begin, end) = if is_aside { (paint(DIM), reset) } else { ("", "") };
    let _ = writeln!(out, "{begin}{}{end}", harmless(&parts.sentence()));
}

/// No field can end its line, drive the terminal or show a secret.
fn harmless(text: &str) -> String {
    escaped(&mask(text)).into_owned()
}

/// The time of day where the user is.
#[cfg(feature = "local-time")]
fn clock() -> impl fmt::Display {
    chrono::Local::now().format("%H:%M:%S")
}

/// The time of day in UTC.
#[cfg(not(feature = "local-time"))]
fn clock() -> impl fmt::Display {
    // "2026-07-28T12:00:00.000Z"
    tidegate_service::rfc3339_ms(tidegate_service::epoch_ms())[11..19].to_owned()
}

/// The fields of an event by what becomes of them.
#[derive(Default)]
struct Parts {
    /// Goes in front.
    server: Option<String>,
    message: String,
    /// Follows the message.
    content: Option<String>,
    /// Follows behind a colon.
    error: Option<String>,
    /// Go into parentheses.
    rest: Vec<(&'static str, String)>,
}

impl Parts {
    /// Adds which call it is about: what is called, and, in detail, how to find the other lines about it.
    fn add_call(&mut self, in_detail: bool) {
        Current::look(|call| {
            for (name, value) in call.fields() {
                let is_known = self.rest.iter().any(|(known, _)| *known == name);
                if !is_known && (in_detail || matches!(name, "tool" | "name")) {
                    self.rest.push((name, value.into_owned()));
                }
            }
        });
    }

    /// Says how a call ended: `tools/call echo: ok in 0.8 ms (claude-code)`, and if it failed, under which id.
    fn say_call(&mut self) {
        let rest = std::mem::take(&mut self.rest);
        let field =
            |wanted: &str| rest.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value.as_str());
        let (mut called, mut id) = (String::new(), String::new());
        Current::look(|call| {
            called = call.fields().skip(1).map(|(_, value)| value).collect::<Vec<_>>().join(" ");
            id = call.correlation().to_string();
        });
        let outcome = field("outcome").unwrap_or_default();
        self.message = format!("{called}: {outcome} in {} ms", field("duration_ms").unwrap_or_default());
        // Who asks what went wrong has the id.
        let id = Some(id.as_str()).filter(|_| matches!(outcome, "error" | "tool_error"));
        let about: Vec<&str> = field("client").into_iter().chain(id).collect();
        if !about.is_empty() {
            let _ = write!(self.message, " ({})", about.join(", "));
        }
    }

    fn sentence(&self) -> String {
        let mut text = self.message.clone();
        // Writing to a string does not fail.
        if let Some(content) = &self.content {
            let _ = write!(text, " {content}");
        }
        if let Some(error) = &self.error {
            let _ = if text.is_empty() { write!(text, "{error}") } else { write!(text, ": {error}") };
        }
        if !self.rest.is_empty() {
            let rest: Vec<String> = self.rest.iter().map(|(name, value)| format!("{name}={value}")).collect();
            let _ = write!(text, " ({})", rest.join(" "));
        }
        text
    }

    fn take(&mut self, name: &'static str, value: String) {
        match name {
            "message" => self.message = value,
            "server" | "breaker" => self.server = Some(value),
            "content" => self.content = Some(value),
            "error" | "fault" => self.error = Some(value),
            _ => self.rest.push((name, value)),
        }
    }
}

impl Visit for Parts {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.take(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.take(field.name(), format!("{value:?}"));
    }
}
