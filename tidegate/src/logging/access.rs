//! [`AccessLines`]: the lines about calls, written without `tracing`. They look as any others.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::atomic::Ordering;

use tidegate_protocol::Json;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::text::{escaped, escaped_json};
use tidegate_service::Current;
use tidegate_service::events::{AccessLine, AccessLog, CallEnded};
use tidegate_service::secrets::mask;
use tracing::level_filters::LevelFilter;

use super::terminal::ACCESS;
use super::writer::LogWriter;
use super::{ENDING, Format, clock};

/// Writes lines about calls.
pub(super) struct AccessLines {
    pub(super) format: Format,
    pub(super) writer: LogWriter,
}

thread_local! {
    /// Where a line is made.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

impl AccessLog for AccessLines {
    fn write(&self, call: &CallEnded<'_>) {
        // What is expected when everything ends.
        if ENDING.load(Ordering::Relaxed) && LevelFilter::current() < LevelFilter::DEBUG {
            return;
        }
        let mut text = LINE.try_with(RefCell::take).unwrap_or_default();
        text.clear();
        let line = AccessLine::of(call);
        match self.format {
            Format::Pretty => {
                clock::write_now(&mut text);
                text.push_str("  INFO ");
                let start = text.len();
                write_fields(&mut text, &line);
                // No name can end its line, and no secret is shown.
                let (before, fields) = text.split_at(start);
                self.writer.gather(&[before, &escaped(&mask(fields)), "\n"]);
            }
            Format::Json => self.writer.gather(&[&escaped_json(json(&line).as_str()), "\n"]),
        }
        let _ = LINE.try_with(|kept| kept.replace(text));
    }
}

/// `MCP tool called server=time outcome=ok …`, and which call it is.
fn write_fields(out: &mut String, line: &AccessLine<'_>) {
    out.push_str(line.message);
    field(out, " server=", line.server);
    field(out, " outcome=", Some(line.outcome));
    field(out, " error=", line.error.as_deref());
    field(out, " refused_by=", line.refused_by.as_deref());
    field(out, " would_be_refused_by=", line.would_be_refused_by.as_deref());
    field(out, " limit=", line.limit.as_ref().map(Json::as_str));
    out.push_str(" duration_ms=");
    clock::write_thousandths(out, line.duration_us);
    field(out, " endpoint=", line.endpoint);
    field(out, " tenant=", line.tenant);
    field(out, " issuer=", line.issuer);
    field(out, " subject=", line.subject);
    field(out, " client=", line.client.as_deref());
    Current::look(|call| super::write_call(out, call));
}

#[inline]
fn field(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.push_str(name);
        out.push_str(value);
    }
}

/// The same as one JSON object, with its members in order.
fn json(line: &AccessLine<'_>) -> Json {
    let mut out = ObjectWriter::new();
    Current::look(|call| {
        let call: Vec<(&str, Cow<'_, str>)> = call.fields().collect();
        let of_call = |wanted: &str| call.iter().find(|(name, _)| *name == wanted).map(|(_, value)| &**value);
        member(&mut out, "client", line.client.as_deref());
        member(&mut out, "correlationId", of_call("correlationId"));
        out.value("duration_ms", &(line.duration_us as f64 / 1e3));
        member(&mut out, "endpoint", line.endpoint);
        member(&mut out, "error", line.error.as_deref());
        member(&mut out, "issuer", line.issuer);
        member(&mut out, "level", Some("info"));
        member(&mut out, "limit", line.limit.as_ref().map(Json::as_str));
        member(&mut out, "message", Some(line.message));
        member(&mut out, "method", of_call("method"));
        member(&mut out, "name", of_call("name"));
        member(&mut out, "outcome", Some(line.outcome));
        member(&mut out, "refused_by", line.refused_by.as_deref());
        member(&mut out, "server", line.server);
        member(&mut out, "subject", line.subject);
        member(&mut out, "target", Some(ACCESS));
        member(&mut out, "tenant", line.tenant);
        member(&mut out, "timestamp", Some(&clock::second_now()));
        member(&mut out, "tool", of_call("tool"));
        member(&mut out, "would_be_refused_by", line.would_be_refused_by.as_deref());
    });
    out.finish()
}

fn member(out: &mut ObjectWriter, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.str(name, &mask(value));
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tidegate_protocol::{Error, Method, Params, Symbol};
    use tidegate_service::events::{self, Event, Kind, Recorder};
    use tidegate_service::layers::EventsLayer;
    use tidegate_service::{Call, Context, Principal, Reply};
    use tower::{Layer, Service};
    use tracing_subscriber::fmt::format::JsonFields;

    use super::super::tests::Captured;
    use super::super::{Hushed, JsonLines, PlainFields};
    use super::*;

    /// The one line that was written.
    fn line(captured: &Captured) -> String {
        let text = String::from_utf8(captured.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.matches('\n').count(), 1, "{text:?}");
        text
    }

    /// Writes the line about calls to one method only: other tests have calls of their own.
    struct Only(AccessLines, &'static str);

    impl Recorder for Only {
        fn wants(&self, kind: Kind) -> bool {
            kind == Kind::CallEnded
        }

        fn record(&self, event: &Event<'_>) {
            if let Event::CallEnded(call) = event
                && call.endpoint == Some(self.1)
            {
                self.0.write(call);
            }
        }
    }

    /// The line about a call, through `tracing` and without.
    fn both(format: Format, method: Method, params: &str, reply: fn() -> Reply) -> [String; 2] {
        const HERE: &str = "the \u{1b}[2J one";
        let [through, without] = [Captured::default(), Captured::default()];
        let to = through.clone();
        let builder = tracing_subscriber::fmt().with_writer(move || to.clone()).with_ansi(false);
        let dispatch: tracing::Dispatch = match format {
            Format::Pretty => {
                let builder = builder.fmt_fields(PlainFields).with_timer(clock::Clock).with_target(false);
                builder.map_event_format(Hushed).finish().into()
            }
            Format::Json => {
                builder.fmt_fields(JsonFields::new()).event_format(Hushed(JsonLines)).finish().into()
            }
        };
        let writer = LogWriter::new(without.clone());
        let recorder: Arc<dyn Recorder> =
            Arc::new(Only(AccessLines { format, writer: writer.clone() }, HERE));
        let params = Params::parse(&Json::trusted(params.to_owned()), &Default::default()).unwrap();
        let mut call = Call::new(method, params, Context::local());
        call.context.endpoint = Some(HERE.into());
        call.context.principal =
            Principal { issuer: None, subject: Some("a b".into()), tenant: Some("tide=1".into()) };
        call.context.client_info = Some(Json::trusted(r#"{"name":"x outcome=ok"}"#));
        events::add(recorder.clone());
        tracing::dispatcher::with_default(&dispatch, || {
            events::refresh();
            let answer = move |_: Call| async move { Ok::<_, std::convert::Infallible>(reply()) };
            let mut door = EventsLayer.layer(tower::service_fn(answer));
            futures_util::FutureExt::now_or_never(door.call(call)).unwrap().unwrap();
        });
        events::remove(&recorder);
        LogWriter::flush(&writer, std::time::Duration::ZERO);
        [line(&through), line(&without)]
    }

    #[test]
    fn lines_look_as_those_of_tracing() {
        tidegate_service::secrets::register("sk-access-0001");
        // As in a program: the call is known without them.
        tidegate_service::without_spans();
        let done: fn() -> Reply = || Reply::Complete(Json::empty_object());
        let failed: fn() -> Reply = || {
            let data = Json::trusted(r#"{"limit":{"scope":"user"}}"#);
            Reply::Error(Error::new(Symbol::RateLimited, "slowly").with_data(data))
        };
        let calls = [
            (Method::ToolsCall, r#"{"name":"echo"}"#),
            (Method::ToolsCall, r#"{"name":"two words\n2026 sk-access-0001"}"#),
            (Method::ToolsList, "{}"),
            (Method::ResourcesRead, r#"{"uri":"a=b\u001b[2J"}"#),
        ];
        for format in [Format::Pretty, Format::Json] {
            let each = calls.iter().flat_map(|call| [(call, done), (call, failed)]);
            for ((method, params), reply) in each {
                let lines = both(format, method.clone(), params, reply);
                let [through, without] = lines.each_ref().map(|line| same_time(line));
                assert_eq!(through, without);
                assert!(!without.contains("access-0001") && !without.contains('\u{1b}'), "{without}");
            }
        }
    }

    /// The line with times that do not differ.
    fn same_time(line: &str) -> String {
        let digits =
            |text: &str| text.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect::<String>();
        match line.starts_with('{') {
            true => {
                let mut line: serde_json::Value = serde_json::from_str(line).unwrap();
                assert!(line["duration_ms"].is_number());
                line["duration_ms"] = 0.into();
                line["timestamp"] = digits(line["timestamp"].as_str().unwrap()).into();
                line.to_string()
            }
            false => {
                let (time, rest) = line.split_at("2026-07-28T12:00:00.000000Z".len());
                let (before, after) = rest.split_once(" duration_ms=").unwrap();
                let (number, after) = after.split_once(' ').unwrap();
                assert!(number.parse::<f64>().is_ok());
                format!("{}{before}{after}", digits(time))
            }
        }
    }
}
