//! Logs on stderr, as lines for people or as JSON for machines. Stdout belongs to the protocol. People at a terminal get
//! short lines (`logging/terminal.rs`).
//!
//! Every line of a call carries its correlation id: `{"timestamp":"2026-07-28 12:00:00","level":"info","message":…,
//! "correlationId":…,"tool":…}`.
//!
//! Much of what is logged was written by others: names, errors, what programs print. All of it goes through here, so here
//! it is made harmless: no field can end its line or drive a terminal, and no secret of the configuration is shown.

mod access;
mod clock;
mod filter;
mod terminal;
mod writer;

use std::fmt;
use std::io::IsTerminal;
use std::str::FromStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use serde_json::Value;
use tidegate_protocol::text::{escaped, escaped_json};
use tidegate_service::Current;
use tidegate_service::secrets::mask;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{JsonFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use access::AccessLines;
pub use filter::{Filter, FilterError};
use writer::LogWriter;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
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

/// Whether lines are JSON.
static JSON: AtomicBool = AtomicBool::new(false);

/// Starts logging to stderr. `level` is a [`Filter`]: a level, or a list such as `info,tidegate_edge=debug`; without it the
/// environment variable `LOG_LEVEL` decides, and without that `info`. What is no filter counts as `info`, and a line says so.
/// Later calls do nothing.
pub fn init(format: Format, level: Option<&str>) {
    let from_environment = std::env::var("LOG_LEVEL").ok();
    let wanted = level.or(from_environment.as_deref()).unwrap_or("info");
    let (wanted, refused) = match wanted.parse::<Filter>() {
        Ok(_) => (wanted, None),
        Err(error) => ("info", Some((wanted, error))),
    };
    let filter = EnvFilter::new(wanted);
    let is_terminal = std::io::stderr().is_terminal();
    let writer = LogWriter::new(std::io::stderr());
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(writer.clone())
        .with_ansi(is_terminal && wants_colours(|name| std::env::var(name).ok()))
        // A line that cannot be written is lost. Saying so on the same stream would end whoever logged it.
        .log_internal_errors(false);
    // A second subscriber is the application's business, not ours.
    let ours = match format {
        Format::Pretty if is_terminal => {
            builder.fmt_fields(PlainFields).event_format(Hushed(terminal::Terminal)).try_init()
        }
        Format::Pretty => builder
            .fmt_fields(PlainFields)
            .with_timer(clock::Clock)
            .with_target(false)
            .map_event_format(Hushed)
            .try_init(),
        Format::Json => builder.fmt_fields(JsonFields::new()).event_format(Hushed(JsonLines)).try_init(),
    };
    // Which events are of interest depends on the level.
    tidegate_service::events::refresh();
    if ours.is_err() {
        return;
    }
    // Whoever looks on at a terminal reads; elsewhere somebody may have stopped to.
    let has_thread = !is_terminal && writer.start().is_ok();
    JSON.store(format == Format::Json, Ordering::Relaxed);
    // A filter may ask for the spans of calls by their fields.
    if !wanted.contains('[') {
        tidegate_service::without_spans();
        // Short lines are for somebody who looks on.
        let is_short = format == Format::Pretty && is_terminal;
        if has_thread && !is_short {
            tidegate_service::events::write_access_log_with(AccessLines { format, writer: writer.clone() });
        }
    }
    let _ = WRITER.set(writer);
    if let Some((said, error)) = refused {
        tracing::warn!("{said:?} is not a log level, so info is used: {error}");
    }
}

/// Where lines go.
static WRITER: OnceLock<LogWriter> = OnceLock::new();

/// Has what was logged written, as far as that can be done within a second. For the end of a program: lines about calls are up to 20 ms late.
pub fn flush() {
    if let Some(writer) = WRITER.get() {
        writer.flush(std::time::Duration::from_secs(1));
    }
}

/// Whether [`init`] was told to write JSON.
pub fn is_json() -> bool {
    JSON.load(Ordering::Relaxed)
}

/// See <https://no-color.org>: any value of `NO_COLOR` but the empty one means no.
fn wants_colours(variable: impl Fn(&str) -> Option<String>) -> bool {
    let refused = variable("NO_COLOR").is_some_and(|value| !value.is_empty());
    !refused && variable("TERM").is_none_or(|value| value != "dumb")
}

/// Whether the process is ending.
static ENDING: AtomicBool = AtomicBool::new(false);

/// What is expected when everything ends is not worth a line from now on: servers that say goodbye, calls that are
/// cut short, connections that break. Errors still are, and so is everything at debug level.
pub fn hush() {
    ENDING.store(true, Ordering::Relaxed);
}

/// Where such lines come from. The memory is not among them: what it says at its end is about the user's data.
const EXPECTED: [&str; 6] = [
    "tidegate::",
    "tidegate_client",
    "tidegate_command",
    "tidegate_edge",
    "tidegate_gateway",
    "tidegate_service",
];

/// Leaves out lines that are [hushed](hush).
struct Hushed<F>(F);

impl<S, N, F> FormatEvent<S, N> for Hushed<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'w> FormatFields<'w> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let is_expected = || {
            let target = event.metadata().target();
            *event.metadata().level() > Level::ERROR
                && target != terminal::STATISTICS
                && LevelFilter::current() < LevelFilter::DEBUG
                && EXPECTED.iter().any(|start| target.starts_with(start))
        };
        if ENDING.load(Ordering::Relaxed) && is_expected() {
            return Ok(());
        }
        self.0.format_event(ctx, writer, event)
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
            Current::look(|call| write_call(&mut visitor.text, call));
        }
        let written = writer.write_str(&escaped(&mask(&visitor.text)));
        visitor.text.clear();
        GATHERED.set(visitor.text);
        written
    }
}

/// Appends which call a line is about. What others named cannot be taken for further fields.
fn write_call(out: &mut String, call: &Current) {
    for (name, value) in call.fields() {
        out.push(' ');
        out.push_str(name);
        out.push('=');
        // An id has neither.
        match name != "correlationId" && value.bytes().any(|byte| matches!(byte, b' ' | b'=')) {
            // Writing to a string does not fail.
            true => _ = fmt::Write::write_fmt(out, format_args!("{value:?}")),
            false => out.push_str(&value),
        }
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

    fn record_f64(&mut self, field: &Field, value: f64) {
        self.name(field.name());
        clock::write_number(&mut self.text, value);
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
        let mut line = serde_json::Map::new();
        line.insert("timestamp".to_owned(), Value::from(clock::second_now()));
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
    use tidegate_service::layers::EventsLayer;
    use tidegate_service::wire_trace;
    use tidegate_service::{Call, Context, Reply};
    use tower::{Layer, Service};

    #[derive(Clone, Default)]
    pub(super) struct Captured(pub(super) Arc<Mutex<Vec<u8>>>);

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
            let mut door = EventsLayer.layer(tower::service_fn(answer));
            futures_util::FutureExt::now_or_never(door.call(call)).unwrap().unwrap();
        });
        // The record of the call is another line.
        let lines = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        lines.lines().find(|line| line.contains("counted")).map(|line| format!("{line}\n")).unwrap()
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
        tidegate_service::secrets::register("sk-logging-0001");
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

    /// What somebody at a terminal sees of this.
    fn at_a_terminal(colours: bool, log: impl FnOnce()) -> String {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_max_level(Level::DEBUG)
            .with_ansi(colours)
            .fmt_fields(PlainFields)
            .event_format(terminal::Terminal)
            .finish();
        tracing::subscriber::with_default(subscriber, log);
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        // The time is another each time.
        let times = |line: &str| match line.split_at_checked(8) {
            Some((time, rest)) if !colours && time.matches(':').count() == 2 => format!("12:00:00{rest}\n"),
            _ => format!("{line}\n"),
        };
        text.lines().map(times).collect()
    }

    #[test]
    fn lines_at_a_terminal_are_short() {
        let seen = at_a_terminal(false, || {
            let error = "no such file";
            tracing::info!(target: "tidegate::lifecycle", server = "time", tools = 2, "ready: 2 tools (0.4 s)");
            tracing::warn!(target: "tidegate::lifecycle", server = "github", "not available: {error}");
            tracing::info!(target: "tidegate::child", server = "time", "listening on stdio");
            tracing::error!(%error, "The configuration was not changed");
            tracing::warn!(seconds = 60, "the deadline passed");
            tracing::debug!(target: wire_trace::TARGET, bytes = 2, content = "{}", "received");
            tracing::debug!(target: wire_trace::TARGET, server = "time", bytes = 2, content = "{}", "sent");
        });
        insta::assert_snapshot!(seen, @r"
        12:00:00 [time] ready: 2 tools (0.4 s)
        12:00:00 WARN [github] not available: no such file
        12:00:00 [time] listening on stdio
        12:00:00 ERROR The configuration was not changed: no such file
        12:00:00 WARN the deadline passed (seconds=60)
        12:00:00 [client] received {}
        12:00:00 [time] sent {}
        ");
    }

    #[test]
    fn nothing_that_others_wrote_drives_a_terminal() {
        tidegate_service::secrets::register("sk-logging-0002");
        let forged = "x\n12:00:00 ERROR all is lost\u{1b}[2J\u{9b}31m\u{202e} sk-logging-0002";
        for colours in [true, false] {
            let seen = at_a_terminal(colours, || {
                tracing::warn!(server = forged, error = %forged, other = ?forged, content = forged, "down: {forged}");
            });
            assert_eq!(seen.matches('\n').count(), 1, "{seen:?}");
            assert!(!seen.contains("[2J") || seen.contains("\\u{1b}[2J"), "{seen:?}");
            let ours = ["\u{1b}[0m", "\u{1b}[2m", "\u{1b}[33m", "\u{1b}[36m"];
            let rest = ours.iter().fold(seen.trim_end().to_owned(), |seen, ours| seen.replace(ours, ""));
            assert!(!rest.contains(|c: char| c.is_control() || c == '\u{202e}'), "{rest:?}");
            assert!(!seen.contains("logging-0002") && seen.contains("***"), "{seen:?}");
        }
    }

    #[test]
    fn json_keeps_the_direction_and_the_content_of_a_message() {
        let captured = Captured::default();
        let writer = captured.clone();
        let subscriber = tracing_subscriber::fmt()
            .with_writer(move || writer.clone())
            .with_max_level(Level::DEBUG)
            .fmt_fields(JsonFields::new())
            .event_format(Hushed(JsonLines))
            .finish();
        tracing::subscriber::with_default(subscriber, || {
            wire_trace::received(br#"{"id":1,"password":"p"}"#);
            wire_trace::sent_to("time", br#"{"id":2}"#);
        });
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let of =
            |n: usize| (lines[n]["message"].clone(), lines[n]["content"].clone(), lines[n]["bytes"].clone());
        assert_eq!(of(0), ("received".into(), r#"{"id":1,"password":"***"}"#.into(), 23.into()));
        assert_eq!(of(1), ("sent".into(), r#"{"id":2}"#.into(), 8.into()));
        assert_eq!((&lines[0]["server"], &lines[1]["server"]), (&Value::Null, &Value::from("time")));
    }

    #[test]
    fn colours_only_where_they_are_wanted() {
        let with = |name: &'static str, value: &'static str| {
            move |asked: &str| (asked == name).then(|| value.to_owned())
        };
        assert!(wants_colours(|_| None) && wants_colours(with("NO_COLOR", "")));
        assert!(!wants_colours(with("NO_COLOR", "1")) && !wants_colours(with("TERM", "dumb")));
    }
}
