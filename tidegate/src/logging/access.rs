//! [`AccessLines`]: the lines about calls, written without `tracing`. They look as any others.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;

use tidegate_protocol::Json;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::text::{escaped, escaped_json};
use tidegate_service::Current;
use tidegate_service::events::{AccessLine, AccessLog, CallEnded};
use tidegate_service::secrets::mask;
use tracing::Level;

use super::outputs::Outputs;
use super::recent::cut;
use super::terminal::ACCESS;
use super::{clock, lines, plain};

/// Writes lines about calls.
pub(super) struct AccessLines(pub(super) Arc<Outputs>);

thread_local! {
    /// Where a line is made.
    static LINE: RefCell<String> = const { RefCell::new(String::new()) };
}

impl AccessLog for AccessLines {
    fn is_on(&self) -> bool {
        // A filter that asks for fields of spans is answered by `tracing`.
        !self.0.has_spans()
    }

    fn write(&self, call: &CallEnded<'_>) {
        // What is expected when everything ends.
        if lines::is_quiet() {
            return;
        }
        let line = AccessLine::of(call);
        Current::look(|current| {
            let mut names = current.fields();
            let mut next = || names.next().unwrap_or_default();
            let (id, method, name) = (next().1, next().1, next());
            self.say(&AccessFields::of(&line, &id, &method, (name.0, &name.1)));
        });
    }
}

impl AccessLines {
    fn say(&self, fields: &AccessFields<'_>) {
        if self.0.is_json() {
            self.0.gather(&[fields.json(tidegate_service::epoch_ms()).as_str(), "\n"]);
        } else {
            let mut text = LINE.try_with(RefCell::take).unwrap_or_default();
            text.clear();
            plain::begin(&mut text, Level::INFO);
            let start = text.len();
            fields.write(&mut text);
            // No name can end its line, and no secret is shown.
            let (before, rest) = text.split_at(start);
            self.0.gather(&[before, &escaped(&mask(rest)), "\n"]);
            let _ = LINE.try_with(|kept| kept.replace(text));
        }
        if let Some(recent) = self.0.recent() {
            recent.keep_access(fields);
        }
    }
}

/// How many texts there are.
const TEXTS: usize = 17;

/// What the line about a call says, and which call it is.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct AccessFields<'a> {
    duration_us: u64,
    message: Option<&'a str>,
    server: Option<&'a str>,
    outcome: Option<&'a str>,
    error: Option<&'a str>,
    refused_by: Option<&'a str>,
    would_be_refused_by: Option<&'a str>,
    limit: Option<&'a str>,
    endpoint: Option<&'a str>,
    tenant: Option<&'a str>,
    issuer: Option<&'a str>,
    subject: Option<&'a str>,
    client: Option<&'a str>,
    correlation: Option<&'a str>,
    method: Option<&'a str>,
    tool: Option<&'a str>,
    name: Option<&'a str>,
    trace_id: Option<&'a str>,
}

impl<'a> AccessFields<'a> {
    /// `name` is what the last field is called, `tool` or `name` or nothing, and what it says.
    fn of(line: &'a AccessLine<'_>, id: &'a str, method: &'a str, name: (&str, &'a str)) -> AccessFields<'a> {
        AccessFields {
            duration_us: line.duration_us,
            message: Some(line.message),
            server: line.server,
            outcome: Some(line.outcome),
            error: line.error.as_deref(),
            refused_by: line.refused_by.as_deref(),
            would_be_refused_by: line.would_be_refused_by.as_deref(),
            limit: line.limit.as_ref().map(Json::as_str),
            endpoint: line.endpoint,
            tenant: line.tenant,
            issuer: line.issuer,
            subject: line.subject,
            client: line.client.as_deref(),
            correlation: Some(id),
            method: Some(method),
            tool: (name.0 == "tool").then_some(name.1),
            name: (name.0 == "name").then_some(name.1),
            trace_id: line.trace_id.as_deref(),
        }
    }

    /// Appends `MCP tool called server=time outcome=ok …`, and which call it is.
    fn write(&self, out: &mut String) {
        out.push_str(self.message.unwrap_or_default());
        field(out, " server=", self.server);
        field(out, " outcome=", self.outcome);
        field(out, " error=", self.error);
        field(out, " refused_by=", self.refused_by);
        field(out, " would_be_refused_by=", self.would_be_refused_by);
        field(out, " limit=", self.limit);
        out.push_str(" duration_ms=");
        clock::write_thousandths(out, self.duration_us);
        field(out, " endpoint=", self.endpoint);
        field(out, " tenant=", self.tenant);
        field(out, " issuer=", self.issuer);
        field(out, " subject=", self.subject);
        field(out, " client=", self.client);
        field(out, " trace_id=", self.trace_id);
        let names = [
            ("correlationId", self.correlation),
            ("method", self.method),
            ("tool", self.tool),
            ("name", self.name),
        ];
        for (name, value) in names {
            if let Some(value) = value {
                plain::write_name(out, name, value);
            }
        }
    }

    /// The same as one JSON object, with its members in order, without secrets.
    pub(super) fn json(&self, time_ms: u64) -> Json {
        let mut out = ObjectWriter::new();
        member(&mut out, "client", self.client);
        member(&mut out, "correlationId", self.correlation);
        out.value("duration_ms", &(self.duration_us as f64 / 1e3));
        member(&mut out, "endpoint", self.endpoint);
        member(&mut out, "error", self.error);
        member(&mut out, "issuer", self.issuer);
        member(&mut out, "level", Some("info"));
        member(&mut out, "limit", self.limit);
        member(&mut out, "message", self.message);
        member(&mut out, "method", self.method);
        member(&mut out, "name", self.name);
        member(&mut out, "outcome", self.outcome);
        member(&mut out, "refused_by", self.refused_by);
        member(&mut out, "server", self.server);
        member(&mut out, "subject", self.subject);
        member(&mut out, "target", Some(ACCESS));
        member(&mut out, "tenant", self.tenant);
        member(&mut out, "timestamp", Some(&clock::second_of(time_ms)));
        member(&mut out, "tool", self.tool);
        member(&mut out, "trace_id", self.trace_id);
        member(&mut out, "would_be_refused_by", self.would_be_refused_by);
        let json = out.finish();
        match escaped_json(json.as_str()) {
            Cow::Borrowed(_) => json,
            Cow::Owned(text) => Json::trusted(text),
        }
    }

    /// Appends all of it as bytes, with no more than so many of each text: the duration, a bit for each text that is there, and these, each after its
    /// length. There is one for each call, so it costs little.
    pub(super) fn pack(&self, out: &mut Vec<u8>, most: u16) {
        out.extend_from_slice(&self.duration_us.to_le_bytes());
        let texts = self.texts();
        let bit = |at: usize, text: &Option<&str>| u32::from(text.is_some()) << at;
        let there = texts.iter().enumerate().fold(0, |bits, (at, text)| bits | bit(at, text));
        out.extend_from_slice(&there.to_le_bytes());
        for text in texts.into_iter().flatten() {
            let text = if text.len() > usize::from(most) { cut(text, usize::from(most)) } else { text };
            out.reserve(text.len() + size_of::<u16>());
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text.as_bytes());
        }
    }

    /// What was packed.
    pub(super) fn unpack(bytes: &'a [u8]) -> AccessFields<'a> {
        AccessFields::read(bytes).unwrap_or_default()
    }

    fn read(bytes: &'a [u8]) -> Option<AccessFields<'a>> {
        let (duration, rest) = bytes.split_first_chunk()?;
        let (there, mut rest) = rest.split_first_chunk()?;
        let (duration_us, there) = (u64::from_le_bytes(*duration), u32::from_le_bytes(*there));
        let mut fields = AccessFields { duration_us, ..AccessFields::default() };
        for (at, text) in fields.texts_mut().into_iter().enumerate() {
            if there & (1 << at) == 0 {
                continue;
            }
            let (length, content) = rest.split_first_chunk()?;
            let (content, behind) = content.split_at_checked(u16::from_le_bytes(*length).into())?;
            (*text, rest) = (Some(std::str::from_utf8(content).ok()?), behind);
        }
        Some(fields)
    }

    fn texts(&self) -> [Option<&'a str>; TEXTS] {
        [
            self.message,
            self.server,
            self.outcome,
            self.error,
            self.refused_by,
            self.would_be_refused_by,
            self.limit,
            self.endpoint,
            self.tenant,
            self.issuer,
            self.subject,
            self.client,
            self.correlation,
            self.method,
            self.tool,
            self.name,
            self.trace_id,
        ]
    }

    /// The same in the same order.
    fn texts_mut(&mut self) -> [&mut Option<&'a str>; TEXTS] {
        [
            &mut self.message,
            &mut self.server,
            &mut self.outcome,
            &mut self.error,
            &mut self.refused_by,
            &mut self.would_be_refused_by,
            &mut self.limit,
            &mut self.endpoint,
            &mut self.tenant,
            &mut self.issuer,
            &mut self.subject,
            &mut self.client,
            &mut self.correlation,
            &mut self.method,
            &mut self.tool,
            &mut self.name,
            &mut self.trace_id,
        ]
    }
}

#[inline]
fn field(out: &mut String, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.push_str(name);
        out.push_str(value);
    }
}

fn member(out: &mut ObjectWriter, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.str(name, &mask(value));
    }
}

#[cfg(test)]
mod tests {
    use tidegate_protocol::{Error, Method, Params, Symbol};
    use tidegate_service::events::{self, Event, Kind, Recorder};
    use tidegate_service::layers::EventsLayer;
    use tidegate_service::{Call, Context, Principal, Reply};
    use tower::{Layer, Service};

    use super::super::Format;
    use super::super::tests::{Captured, dispatch};
    use super::*;

    /// The one line that was written.
    fn line(captured: &Captured) -> String {
        let text = captured.text();
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

    /// The line about a call, through `tracing`, without, and as it is kept.
    fn both(format: Format, method: Method, params: &str, reply: fn() -> Reply) -> [String; 3] {
        const HERE: &str = "the \u{1b}[2J one";
        let [through, without] = [Captured::default(), Captured::default()];
        let outputs = |to: &Captured| Arc::new(Outputs::new(to.clone(), format, None));
        let dispatch = dispatch(outputs(&through));
        let outputs = outputs(&without);
        outputs.keep_recent(1 << 16);
        let recorder: Arc<dyn Recorder> = Arc::new(Only(AccessLines(outputs.clone()), HERE));
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
        outputs.flush(std::time::Duration::ZERO);
        let kept: Vec<_> = outputs.recent().unwrap().after(None, 9);
        let [kept] = &kept[..] else { panic!("{kept:?}") };
        [line(&through), line(&without), kept.json.as_str().to_owned()]
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
                let [through, without, kept] = lines.each_ref().map(|line| same_time(line));
                assert_eq!(through, without);
                if format == Format::Json {
                    assert_eq!(kept, without);
                }
                assert!(!kept.contains("access-0001") && !kept.contains('\u{1b}'), "{kept}");
                assert!(!without.contains("access-0001") && !without.contains('\u{1b}'), "{without}");
            }
        }
    }

    #[test]
    fn what_is_packed_comes_out_again_cut() {
        let long = "ä".repeat(100);
        let fields = AccessFields {
            duration_us: u64::MAX,
            message: Some("MCP tool called"),
            server: Some(""),
            subject: Some(&long),
            name: Some("last"),
            ..AccessFields::default()
        };
        let mut bytes = Vec::new();
        fields.pack(&mut bytes, 15);
        let want = AccessFields { subject: Some("äääääää"), ..fields };
        assert_eq!(AccessFields::unpack(&bytes), want);
        for length in 0..bytes.len() {
            assert_eq!(AccessFields::unpack(&bytes[..length]), AccessFields::default());
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
