//! [`Spans`]: the recorder that makes spans of calls.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_protocol::{Method, Revision};
use tidegate_service::Principal;
use tidegate_service::events::{
    CallEnded, Event, Kind, Outcome, Recorder, ServerCallEnded, ServerPlace, SpanEnded,
};
use tidegate_service::secrets::mask;
use tidegate_service::trace::{Origin, Transport};

use crate::otlp::{SpanBuffer, SpanKind, SpanWriter};
use crate::span_names::{self as names, SpanNames};

/// How much of a text of others a span has, in characters.
const LONGEST: usize = 256;

/// Whether a tool is one that is offered: whoever calls can make up other names.
type IsTool = Box<dyn Fn(&str) -> bool + Send + Sync>;

/// Makes spans of calls, of calls to servers and of what handlers do, as far as they are [sampled](tidegate_service::trace), and puts
/// them into a [buffer](SpanBuffer) for whoever sends them on.
pub struct Spans {
    buffer: Arc<SpanBuffer>,
    names: SpanNames,
    is_tool: IsTool,
}

thread_local! {
    /// Where a span is written.
    static WRITTEN: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl Spans {
    /// Puts spans into this buffer. `is_tool` says whether a tool is offered: other names are no part of a span's name.
    pub fn new(
        buffer: Arc<SpanBuffer>,
        names: SpanNames,
        is_tool: impl Fn(&str) -> bool + Send + Sync + 'static,
    ) -> Spans {
        Spans { buffer, names, is_tool: Box::new(is_tool) }
    }

    /// Writes a span that has just ended, and keeps it.
    fn keep(&self, write: impl FnOnce(&mut Vec<u8>)) {
        let mut written = WRITTEN.try_with(RefCell::take).unwrap_or_default();
        written.clear();
        write(&mut written);
        self.buffer.push(&written);
        let _ = WRITTEN.try_with(|kept| kept.replace(written));
    }

    fn call_ended(&self, call: &CallEnded<'_>) {
        let Some(context) = call.trace.filter(|context| context.is_sampled) else { return };
        let name = call.name();
        let offered = name.filter(|name| match call.method {
            Method::ToolsCall => call.server.is_some() && (self.is_tool)(name),
            // A prompt that no server has leads to none.
            Method::PromptsGet => call.server.is_some(),
            _ => false,
        });
        self.keep(|out| {
            let mut span = SpanWriter::new(out, context, call.parent, call.origin.is_some());
            span.kind(SpanKind::Server)
                .name(&mask(&self.names.span(call.method, offered)))
                .times(ended(call.duration));
            self.about(&mut span, call.method, name);
            let decision = call.decision();
            let error = call.error();
            span.text(names::PROTOCOL, call.revision.as_str())
                .text(names::CORRELATION, call.correlation.as_str())
                .text(names::OUTCOME, call.outcome.as_str())
                .maybe(names::SERVER, call.server)
                .maybe(names::ENDPOINT, call.endpoint.map(cut))
                .maybe(names::SYMBOL, error.as_deref())
                .maybe(names::RULE, decision.map(|decision| cut(&decision.rule)));
            self.who(&mut span, call.principal);
            if let Some(origin) = call.origin {
                self.came_from(&mut span, origin);
            }
            ended_as(&mut span, call.outcome, call.message(), call.revision);
        });
    }

    fn server_call_ended(&self, call: &ServerCallEnded<'_>) {
        let Some((context, parent)) = call.span.filter(|(context, _)| context.is_sampled) else { return };
        let name = call.name();
        // It was routed there, so the name is one that there is.
        let target =
            name.as_deref().filter(|_| matches!(call.method, Method::ToolsCall | Method::PromptsGet));
        self.keep(|out| {
            let mut span = SpanWriter::new(out, context, Some(parent), false);
            span.kind(SpanKind::Client)
                .name(&mask(&self.names.span(call.method, target)))
                .times(ended(call.duration));
            self.about(&mut span, call.method, name.as_deref());
            let error = call.error();
            span.text(names::SERVER, call.server)
                .text(names::OUTCOME, call.outcome.as_str())
                .maybe(names::SYMBOL, error.as_deref());
            match call.place {
                ServerPlace::Here => {}
                ServerPlace::Pipe => _ = span.text(names::TRANSPORT, "pipe"),
                ServerPlace::Http { host, port } => {
                    span.text(names::TRANSPORT, "tcp").text(names::NETWORK_PROTOCOL, "http");
                    span.text(names::SERVER_ADDRESS, host).number(names::SERVER_PORT, (*port).into());
                }
            }
            let error = call.reply_error();
            ended_as(&mut span, call.outcome, error.map(|error| error.message()), Revision::INTERNAL);
        });
    }

    fn span_ended(&self, it: &SpanEnded<'_>) {
        self.keep(|out| {
            let mut span = SpanWriter::new(out, it.context, Some(it.parent), false);
            span.kind(SpanKind::Internal).name(it.name).times(ended(it.duration));
            for (name, value) in it.attributes {
                span.text(name, cut(&mask(value)));
            }
        });
    }

    /// What the call is about.
    fn about(&self, span: &mut SpanWriter<'_>, method: &Method, name: Option<&str>) {
        span.text(names::METHOD, cut(&mask(method.as_str())));
        let attribute = match method {
            Method::ToolsCall => {
                span.text(names::OPERATION, names::EXECUTE_TOOL);
                self.names.attributes().tool
            }
            Method::PromptsGet => names::PROMPT,
            Method::ResourcesRead | Method::ResourcesSubscribe | Method::ResourcesUnsubscribe => {
                names::RESOURCE
            }
            _ => return,
        };
        if let Some(name) = name {
            span.text(attribute, cut(&mask(name)));
        }
    }

    /// Who called, for those who want to know.
    fn who(&self, span: &mut SpanWriter<'_>, principal: &Principal) {
        let names = self.names.attributes();
        for (name, value) in [(names.tenant, &principal.tenant), (names.user, &principal.subject)] {
            if let (Some(name), Some(value)) = (name, value) {
                span.text(name, cut(&mask(value)));
            }
        }
    }

    fn came_from(&self, span: &mut SpanWriter<'_>, origin: &Origin) {
        if let Some(request) = &origin.request {
            span.text(names::REQUEST, cut(&mask(request.as_json().trim_matches('"'))));
        }
        if let Some(session) = origin.session {
            span.text(self.names.attributes().session, &format!("{:016x}", u64::from_be_bytes(session)));
        }
        match origin.transport {
            None => {}
            Some(Transport::Pipe) => _ = span.text(names::TRANSPORT, "pipe"),
            Some(Transport::Http(address)) => {
                span.text(names::TRANSPORT, "tcp").text(names::NETWORK_PROTOCOL, "http");
                span.text(names::NETWORK_VERSION, "1.1");
                if let Some(address) = address {
                    span.text(names::CLIENT_ADDRESS, &address.ip().to_string());
                    span.number(names::CLIENT_PORT, address.port().into());
                }
            }
        }
        if let Some(carrier) = origin.carrier {
            span.link(carrier);
        }
    }
}

/// How it ended: what a JSON-RPC error says, or that a tool failed.
fn ended_as(span: &mut SpanWriter<'_>, outcome: Outcome, message: Option<&str>, revision: Revision) {
    match outcome {
        Outcome::Failed(symbol) => {
            let code = symbol.code(revision).to_string();
            span.text(names::ERROR, &code).text(names::STATUS, &code);
            span.failed(cut(&mask(message.unwrap_or_default())));
        }
        Outcome::ToolError => _ = span.text(names::ERROR, names::TOOL_ERROR).failed(""),
        Outcome::Cancelled => _ = span.text(names::ERROR, "cancelled"),
        _ => {}
    }
}

/// When something began and ended that has just ended, in nanoseconds since 1970.
fn ended(duration: Duration) -> (u64, u64) {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    (nanos(now.saturating_sub(duration)), nanos(now))
}

/// A text of others: nobody reads on forever.
fn cut(text: &str) -> &str {
    match text.len() > LONGEST {
        true => text.char_indices().nth(LONGEST).map_or(text, |(at, _)| &text[..at]),
        false => text,
    }
}

impl Recorder for Spans {
    fn wants(&self, kind: Kind) -> bool {
        matches!(kind, Kind::CallEnded | Kind::ServerCallEnded | Kind::SpanEnded)
    }

    fn record(&self, event: &Event<'_>) {
        match event {
            Event::CallEnded(call) => self.call_ended(call),
            Event::ServerCallEnded(call) => self.server_call_ended(call),
            Event::SpanEnded(span) => self.span_ended(span),
            _ => {}
        }
    }
}
