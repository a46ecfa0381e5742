//! [`SpanWriter`]: one span as OTLP has it (`opentelemetry/proto/trace/v1/trace.proto`).

use tidegate_service::trace::TraceContext;

use super::attribute::{number, text};
use super::protobuf::Message;

/// On which side of a call it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SpanKind {
    /// On no side: it is inside of a program.
    Internal = 1,
    /// It answers.
    Server = 2,
    /// It asks.
    Client = 3,
}

/// Writes one span. What is written twice counts once, the last time.
pub(crate) struct SpanWriter<'a>(&'a mut Vec<u8>);

// `SpanFlags`: below are those of the trace context; then whether it is known that the parent is elsewhere, and whether it is.
const IS_REMOTE_KNOWN: u32 = 0x100;
const IS_REMOTE: u32 = 0x200;
const ATTRIBUTES: u32 = 9;

impl<'a> SpanWriter<'a> {
    /// Begins a span. `is_remote` says whether its parent is in another process.
    pub(crate) fn new(
        out: &'a mut Vec<u8>,
        context: TraceContext,
        parent: Option<[u8; 8]>,
        is_remote: bool,
    ) -> SpanWriter<'a> {
        out.bytes(1, &context.trace);
        out.bytes(2, &context.span);
        let mut flags = u32::from(context.is_sampled);
        if let Some(parent) = parent {
            out.bytes(4, &parent);
            flags |= IS_REMOTE_KNOWN | if is_remote { IS_REMOTE } else { 0 };
        }
        out.fixed32(16, flags);
        SpanWriter(out)
    }

    pub(crate) fn name(&mut self, name: &str) -> &mut Self {
        self.0.text(5, name);
        self
    }

    pub(crate) fn kind(&mut self, kind: SpanKind) -> &mut Self {
        self.0.number(6, kind as u64);
        self
    }

    /// When it began and ended, in nanoseconds since 1970.
    pub(crate) fn times(&mut self, (began, ended): (u64, u64)) -> &mut Self {
        self.0.fixed64(7, began);
        self.0.fixed64(8, ended);
        self
    }

    /// Says something about it.
    pub(crate) fn text(&mut self, name: &str, value: &str) -> &mut Self {
        text(self.0, ATTRIBUTES, name, value);
        self
    }

    /// Says something about it, if there is anything to say.
    pub(crate) fn maybe(&mut self, name: &str, value: Option<&str>) -> &mut Self {
        match value {
            Some(value) => self.text(name, value),
            None => self,
        }
    }

    /// Says a number about it.
    pub(crate) fn number(&mut self, name: &str, value: u64) -> &mut Self {
        number(self.0, ATTRIBUTES, name, value);
        self
    }

    /// It has to do with another span, of which it is no part.
    pub(crate) fn link(&mut self, to: TraceContext) -> &mut Self {
        self.0.message(13, |link| {
            link.bytes(1, &to.trace);
            link.bytes(2, &to.span);
            link.fixed32(6, u32::from(to.is_sampled) | IS_REMOTE_KNOWN | IS_REMOTE);
        });
        self
    }

    /// It failed.
    pub(crate) fn failed(&mut self, why: &str) -> &mut Self {
        const ERROR: u64 = 2;
        self.0.message(15, |status| {
            if !why.is_empty() {
                status.text(2, why);
            }
            status.number(3, ERROR);
        });
        self
    }
}
