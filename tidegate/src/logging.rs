//! Logs on stderr, as lines for people or as JSON for machines. Stdout belongs to the protocol.
//!
//! Every line of a call carries its correlation id: `{"timestamp":"2026-07-28 12:00:00","level":"info","message":…,
//! "correlationId":…,"tool":…}`.
//!
//! Much of what is logged was written by others: names, errors, what programs print. All of it goes through here, so here
//! it is made harmless: no field can end its line or drive a terminal, and no secret of the configuration is shown.

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;

use serde_json::Value;
use tidegate_protocol::text::{escaped, escaped_json};
use tidegate_service::Current;
use tidegate_service::secrets::mask;
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
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // A line that cannot be written is lost. Saying so on the same stream would end whoever logged it.
        .log_internal_errors(false);
    // A second subscriber is the application's business, not ours.
    let ours = match format {
        Format::Pretty => builder
            .fmt_fields(PlainFields)
            .with_ansi(std::io::stderr().is_terminal())
            .with_target(false)
            .try_init(),
        Format::Json => builder.fmt_fields(JsonFields::new()).event_format(JsonLines).try_init(),
    };
    // A filter may ask for the spans of calls by their fields.
    if ours.is_ok() && !wanted.contains('[') {
        tidegate_service::without_spans();
    }
}

/// Writes fields as `name=value`, and after those of an event which call it belongs to. Texts go out as they are, without
/// the formatting machinery; what could forge a log line is escaped.
struct PlainFields;

impl<'w> FormatFields<'w> for PlainFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        thread_local! {
            static GATHERED: std::cell::RefCell<String> = const { std::cell::RefCell::new(String::new()) };
        }
        // Gathered first, so that what keeps them grows once.
        // Taken out meanwhile, because a field may log while it is written.
        let mut visitor = PlainVisitor { text: GATHERED.take(), is_event: false };
        fields.record(&mut visitor);
        if visitor.is_event {
            Current::look(|call| call.fields().for_each(|(name, value)| visitor.text(name, &value)));
        }
        let written = writer.write_str(&escaped(&mask(&visitor.text)));
        visitor.text.clear();
        GATHERED.set(visitor.text);
        written
    }
}

struct PlainVisitor {
    text: String,
    /// Spans have no message.
    is_event: bool,
}

impl PlainVisitor {
    fn name(&mut self, name: &str) {
        if !self.text.is_empty() {
            self.text.push(' ');
        }
        if name == "message" {
            self.is_event = true;
        } else {
            self.text.push_str(name);
            self.text.push('=');
        }
    }

    fn text(&mut self, name: &str, value: &str) {
        self.name(name);
        self.text.push_str(value);
    }

    fn debug(&mut self, name: &str, value: &dyn fmt::Debug) {
        self.name(name);
        // Writing to a string does not fail.
        let _ = fmt::Write::write_fmt(&mut self.text, format_args!("{value:?}"));
    }
}

impl Visit for PlainVisitor {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.text(field.name(), value);
    }

    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.debug(field.name(), value);
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
                    line.entry(name).or_insert_with(|| masked(value));
                }
            }
        }
        Current::look(|call| {
            for (name, value) in call.fields() {
                line.entry(name).or_insert_with(|| masked(Value::from(value)));
            }
        });
        line.insert("target".to_owned(), Value::from(event.metadata().target()));
        writeln!(writer, "{}", escaped_json(&Value::Object(line).to_string()))
    }
}

/// A text without secrets.
fn masked(value: Value) -> Value {
    match value {
        Value::String(text) => Value::from(mask(&text).into_owned()),
        other => other,
    }
}

/// Collects the fields of an event.
struct Fields<'a>(&'a mut serde_json::Map<String, Value>);

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

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    use super::*;
    use tidegate_service::layers::TraceLayer;
    use tidegate_service::{Call, Context, Reply};
    use tower::{Layer, Service};

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

    fn dispatch(format: Format, captured: &Captured) -> tracing::Dispatch {
        let writer = captured.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false);
        match format {
            Format::Pretty => tracing::Dispatch::from(builder.fmt_fields(PlainFields).finish()),
            Format::Json => builder.fmt_fields(JsonFields::new()).event_format(JsonLines).finish().into(),
        }
    }

    /// What is logged by `log` while a call is under way, by this subscriber.
    fn logged(format: Format) -> String {
        let captured = Captured::default();
        let dispatch = dispatch(format, &captured);
        let answer = |_: Call| async {
            tracing::info!(count = 3, "counted");
            Ok::<_, std::convert::Infallible>(Reply::Complete(tidegate_protocol::Json::empty_object()))
        };
        let params = tidegate_protocol::Json::from(serde_json::json!({"name": "e\ncho"}));
        let params = tidegate_protocol::Params::parse(&params, &Default::default()).unwrap();
        let call = Call::new(tidegate_protocol::Method::ToolsCall, params, Context::local());
        tracing::dispatcher::with_default(&dispatch, || {
            let mut door = TraceLayer.layer(tower::service_fn(answer));
            futures_util::FutureExt::now_or_never(door.call(call)).unwrap().unwrap();
        });
        String::from_utf8(captured.0.lock().unwrap().clone()).unwrap()
    }

    #[test]
    fn lines_say_which_call_they_belong_to() {
        let line = logged(Format::Pretty);
        assert!(line.contains("counted count=3 correlationId="), "{line}");
        assert!(line.ends_with("method=tools/call tool=e\\ncho\n"), "no name can forge a line: {line}");
        let line: Value = serde_json::from_str(&logged(Format::Json)).unwrap();
        assert_eq!((&line["tool"], &line["method"]), (&Value::from("e\ncho"), &Value::from("tools/call")));
        assert!(line["correlationId"].is_string());
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

    #[test]
    fn nothing_that_others_wrote_forges_a_line_or_shows_a_secret() {
        tidegate_service::secrets::keep("sk-logging-0001");
        let forged = "x\n2026-07-28T12:00:00Z ERROR all is lost\u{1b}[2J\u{9b}31m\u{202e} sk-logging-0001";
        let error = tidegate_protocol::Error::internal();
        for format in [Format::Pretty, Format::Json] {
            let captured = Captured::default();
            tracing::dispatcher::with_default(&dispatch(format, &captured), || {
                let span = tracing::info_span!("call", of = forged);
                span.in_scope(|| tracing::warn!(name = forged, shown = %forged, seen = ?forged, %error, "down: {forged}"));
            });
            let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
            assert_eq!(text.matches('\n').count(), 1, "{text:?}");
            assert!(!text.trim_end().contains(|c: char| c.is_control() || c == '\u{202e}'), "{text:?}");
            assert!(!text.contains("logging-0001") && text.contains("***"), "{text:?}");
            assert!(text.contains("all is lost"));
        }
    }
}
