//! Log lines for machines: one flat JSON object each, with the fields of the event, then those of the spans around it, then which call it
//! belongs to.

use std::borrow::Cow;
use std::fmt;

use serde_json::{Map, Value};
use tidegate_protocol::text::escaped_json;
use tidegate_service::Current;
use tidegate_service::secrets::mask;
use tracing::field::{Field, Visit};
use tracing::{Event, Level};

use super::clock;
use super::lines::Around;

/// The members of the line about an event.
pub(super) fn members(event: &Event<'_>, around: &[Around]) -> Map<String, Value> {
    let mut line = Map::new();
    begin(&mut line, *event.metadata().level());
    event.record(&mut Fields(&mut line));
    for (name, value) in around.iter().flat_map(|span| &span.fields) {
        line.entry(name).or_insert_with(|| value.clone());
    }
    Current::look(|call| {
        for (name, value) in call.fields() {
            line.entry(name).or_insert_with(|| masked(Value::from(value)));
        }
    });
    line.insert("target".to_owned(), Value::from(event.metadata().target()));
    line
}

/// The line about something that no event says.
pub(super) fn note(level: Level, target: &str, message: &str) -> String {
    let mut line = Map::new();
    begin(&mut line, level);
    line.insert("message".to_owned(), masked(Value::from(message)));
    line.insert("target".to_owned(), Value::from(target));
    text(line) + "\n"
}

fn begin(line: &mut Map<String, Value>, level: Level) {
    line.insert("timestamp".to_owned(), Value::from(clock::second_now()));
    line.insert("level".to_owned(), Value::from(level.as_str().to_ascii_lowercase()));
}

/// The object as one line, which it does not end.
pub(super) fn text(line: Map<String, Value>) -> String {
    let text = Value::Object(line).to_string();
    match escaped_json(&text) {
        Cow::Borrowed(_) => text,
        Cow::Owned(text) => text,
    }
}

/// A text without secrets.
fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => Value::from(mask(&text).into_owned()),
        other => other,
    }
}

/// Collects the fields of an event or a span.
pub(super) struct Fields<'a>(pub(super) &'a mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), masked(Value::from(format!("{value:?}"))));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), masked(Value::from(value)));
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), Value::from(value));
    }
}
