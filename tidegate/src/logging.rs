//! Logs on stderr, as lines for people or as JSON for machines. Stdout belongs to the protocol.
//!
//! Every line of a call carries its correlation id: `{"timestamp":"2026-07-28 12:00:00","level":"info","message":…,
//! "correlationId":…,"tool":…}`.

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use serde_json::Value;
use tracing::field::{Field, Visit};
use tracing::{Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people on a terminal.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "pretty" | "simple" => Ok(Format::Pretty),
            "json" => Ok(Format::Json),
            other => Err(format!("unknown log format {other:?}: use pretty or json")),
        }
    }
}

/// Starts logging to stderr. `level` is a level or a filter such as `info,tidegate_edge=debug`; without it the
/// environment variable `LOG_LEVEL` decides, and without that `info`. Later calls do nothing.
pub fn init(format: Format, level: Option<&str>) {
    let from_environment = std::env::var("LOG_LEVEL").ok();
    let wanted = level.or(from_environment.as_deref()).unwrap_or("info");
    let filter = EnvFilter::try_new(wanted).unwrap_or_else(|_| EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    // A second subscriber is the application's business, not ours.
    let _ = match format {
        Format::Pretty => builder
            .fmt_fields(PlainFields)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .try_init(),
        Format::Json => builder.fmt_fields(JsonFields::new()).event_format(JsonLines).try_init(),
    };
}

/// Writes fields as `name=value`. Every call has a span, so this is on the path of every call: texts go out as they
/// are, without the formatting machinery, unless they hold something that could forge a log line.
struct PlainFields;

impl<'w> FormatFields<'w> for PlainFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        thread_local! {
            static GATHERED: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
        }
        // Gathered first, so that what keeps them grows once.
        // Taken out meanwhile, because a field may log while it is written.
        let mut visitor = PlainVisitor(GATHERED.take());
        fields.record(&mut visitor);
        let written = writer.write_str(&visitor.0);
        visitor.0.clear();
        GATHERED.set(visitor.0);
        written
    }
}

struct PlainVisitor(String);

impl PlainVisitor {
    fn name(&mut self, field: &Field) {
        if !self.0.is_empty() {
            self.0.push(' ');
        }
        if field.name() != "message" {
            self.0.push_str(field.name());
            self.0.push('=');
        }
    }
}

impl Visit for PlainVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        if value.bytes().any(|b| b.is_ascii_control()) {
            return self.record_debug(field, &value);
        }
        self.name(field);
        self.0.push_str(value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.name(field);
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(&mut self.0, format_args!("{value:?}"));
    }
}

/// Writes an event as one flat JSON object: its own fields, then those of the spans around it.
struct JsonLines;

impl<S> FormatEvent<S, JsonFields> for JsonLines
where
    S: Subscriber + for<'a> LookupSpan<'a>,
{
    fn format_event(
        &self,
        ctx: &FmtContext<'_, S, JsonFields>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let now = tidegate_service::rfc3339_ms(tidegate_service::epoch_ms());
        let mut line = serde_json::Map::new();
        // "2026-07-28T12:00:00.000Z" as "2026-07-28 12:00:00"
        line.insert("timestamp".to_owned(), Value::from(now[..19].replace('T', " ")));
        line.insert("level".to_owned(), Value::from(event.metadata().level().as_str().to_ascii_lowercase()));
        event.record(&mut Fields(&mut line));
        for span in ctx.event_scope().into_iter().flatten() {
            let extensions = span.extensions();
            let Some(fields) = extensions.get::<FormattedFields<JsonFields>>() else { continue };
            if let Ok(Value::Object(members)) = serde_json::from_str(fields) {
                for (name, value) in members {
                    line.entry(name).or_insert(value);
                }
            }
        }
        line.insert("target".to_owned(), Value::from(event.metadata().target()));
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Collects the fields of an event.
struct Fields<'a>(&'a mut serde_json::Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), Value::from(format!("{value:?}")));
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), Value::from(value));
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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;

    #[derive(Clone, Default)]
    struct Captured(Arc<Mutex<Vec<u8>>>);

    impl Write for Captured {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn json_lines_are_flat_and_carry_the_correlation_id() {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .fmt_fields(JsonFields::new())
            .event_format(JsonLines)
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            let span = tracing::info_span!("call", correlationId = "1-a", tool = "echo");
            span.in_scope(|| tracing::info!(count = 3, "Tool invocation started"));
        });
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        let line: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["message"], "Tool invocation started");
        assert_eq!((&line["correlationId"], &line["tool"]), (&Value::from("1-a"), &Value::from("echo")));
        assert_eq!((&line["level"], &line["count"]), (&Value::from("info"), &Value::from(3)));
        assert_eq!(line["timestamp"].as_str().unwrap().len(), 19);
    }
}
