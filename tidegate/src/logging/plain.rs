//! Log lines for people who read them later: a time, a level, what happened, and `name=value` for the rest.
//!
//! ```text
//! 2026-07-28T12:00:00.000000Z  INFO ready: 2 tools (0.4 s) server=time state=ready
//! ```

use std::cell::RefCell;
use std::fmt::{self, Write as _};

use tidegate_protocol::text::escaped;
use tidegate_service::Current;
use tidegate_service::secrets::mask;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::clock;
use super::lines::Around;

thread_local! {
    static GATHERED: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Appends the line about an event, and which call it belongs to. Texts go out as they are, without the formatting machinery;
/// what could forge a log line is escaped.
pub(super) fn write(out: &mut String, event: &Event<'_>, around: &[Around]) {
    // Taken out meanwhile, because a field may log while it is written.
    let mut text = GATHERED.try_with(RefCell::take).unwrap_or_default();
    text.clear();
    around.iter().rev().for_each(|span| write_span(&mut text, span));
    let start = text.len();
    let mut visitor = PlainVisitor { text, start };
    event.record(&mut visitor);
    let PlainVisitor { mut text, .. } = visitor;
    Current::look(|call| write_call(&mut text, call));
    begin(out, *event.metadata().level());
    out.push_str(&escaped(&mask(&text)));
    out.push('\n');
    let _ = GATHERED.try_with(|kept| kept.replace(text));
}

/// The line about something that no event says.
pub(super) fn note(level: Level, message: &str) -> String {
    let mut out = String::new();
    begin(&mut out, level);
    out.push_str(&escaped(&mask(message)));
    out.push('\n');
    out
}

/// Appends the time and the level.
pub(super) fn begin(out: &mut String, level: Level) {
    clock::write_now(out);
    out.push_str(match level {
        Level::ERROR => " ERROR ",
        Level::WARN => "  WARN ",
        Level::INFO => "  INFO ",
        Level::DEBUG => " DEBUG ",
        Level::TRACE => " TRACE ",
    });
}

fn write_span(out: &mut String, span: &Around) {
    out.push_str(span.name);
    out.push('{');
    for (at, (name, value)) in span.fields.iter().enumerate() {
        let gap = if at == 0 { "" } else { " " };
        // Writing to a string does not fail.
        let _ = match value.as_str() {
            Some(value) => write!(out, "{gap}{name}={value}"),
            None => write!(out, "{gap}{name}={value}"),
        };
    }
    out.push_str("}: ");
}

/// Appends which call a line is about. What others named cannot be taken for further fields.
fn write_call(out: &mut String, call: &Current) {
    for (name, value) in call.fields() {
        write_name(out, name, &value);
    }
}

/// Appends one of the fields that say which call it is.
pub(super) fn write_name(out: &mut String, name: &str, value: &str) {
    out.push(' ');
    out.push_str(name);
    out.push('=');
    // An id has neither.
    match name != "correlationId" && value.bytes().any(|byte| matches!(byte, b' ' | b'=')) {
        // Writing to a string does not fail.
        true => _ = write!(out, "{value:?}"),
        false => out.push_str(value),
    }
}

struct PlainVisitor {
    text: String,
    /// Where the fields begin.
    start: usize,
}

impl PlainVisitor {
    fn name(&mut self, name: &str) {
        if self.text.len() > self.start {
            self.text.push(' ');
        }
        if name != "message" {
            self.text.push_str(name);
            self.text.push('=');
        }
    }
}

impl Visit for PlainVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.name(field.name());
        self.text.push_str(value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field.name());
        // Writing to a string does not fail.
        let _ = write!(self.text, "{value:?}");
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.name(field.name());
        clock::write_number(&mut self.text, value);
    }
}
