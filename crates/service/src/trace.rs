//! Where a call stands in a distributed trace ([W3C Trace Context](https://www.w3.org/TR/trace-context/)), and whether this process
//! takes part in traces at all.
//!
//! A process that [takes part](take_part) gives each call that is [recorded](sample) a span of its own, as a child of the one that its caller named in
//! `_meta.traceparent`. What is done for the call has that span as its parent: calls to servers, calls that it holds, and
//! [spans](span) inside of a handler. Whoever records spans hears of them by the [events] of their ends. Of other
//! calls, what callers say is passed on, and nothing is spent on it.

use std::fmt;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use tidegate_protocol::Id;

use crate::current::Current;
use crate::events::{self, Event, Kind, SpanEnded};

/// A span of a trace, as others are told of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct TraceContext {
    /// The trace.
    pub trace: [u8; 16],
    /// The span.
    pub span: [u8; 8],
    /// Whether it is recorded.
    pub is_sampled: bool,
}

/// How long a `traceparent` of version 00 is.
const LENGTH: usize = 55;

impl TraceContext {
    /// Reads a `traceparent`. One of a later version may have more behind it.
    pub fn parse(text: &str) -> Option<TraceContext> {
        // version "-" 32 hex digits of trace id "-" 16 of parent id "-" 2 of flags
        let text = text.as_bytes();
        let (head, rest) = text.split_at_checked(LENGTH)?;
        let version = hex::<1>(&head[..2])?[0];
        let is_whole = match version {
            0 => rest.is_empty(),
            0xff => false,
            _ => rest.is_empty() || rest[0] == b'-',
        };
        let has_dashes = head[2] == b'-' && head[35] == b'-' && head[52] == b'-';
        let (trace, span) = (hex::<16>(&head[3..35])?, hex::<8>(&head[36..52])?);
        let flags = hex::<1>(&head[53..55])?[0];
        let is_valid = is_whole && has_dashes && trace != [0; 16] && span != [0; 8];
        is_valid.then_some(TraceContext { trace, span, is_sampled: flags & 1 == 1 })
    }

    /// As it is sent: `00-<trace>-<span>-<flags>`.
    pub fn traceparent(&self) -> Traceparent {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let mut text = *b"00-00000000000000000000000000000000-0000000000000000-00";
        let mut write = |at: usize, bytes: &[u8]| {
            for (slot, byte) in text[at..].chunks_exact_mut(2).zip(bytes) {
                slot[0] = DIGITS[usize::from(byte >> 4)];
                slot[1] = DIGITS[usize::from(byte & 15)];
            }
        };
        write(3, &self.trace);
        write(36, &self.span);
        write(53, &[u8::from(self.is_sampled)]);
        Traceparent(text)
    }

    /// Another span of the same trace.
    #[must_use]
    pub fn child(&self) -> TraceContext {
        TraceContext { span: fastrand::u64(1..).to_be_bytes(), ..*self }
    }

    /// The id of the trace, as people write it.
    pub fn trace_id(&self) -> String {
        self.traceparent().as_str()[3..35].to_owned()
    }

    /// The first span of a new trace that is recorded.
    fn root() -> TraceContext {
        let (trace, span) = (fastrand::u128(1..), fastrand::u64(1..));
        TraceContext { trace: trace.to_be_bytes(), span: span.to_be_bytes(), is_sampled: true }
    }
}

impl fmt::Debug for TraceContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.traceparent().as_str())
    }
}

/// A `traceparent`, held inline.
#[derive(Clone, Copy)]
pub struct Traceparent([u8; LENGTH]);

impl Traceparent {
    /// The text.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }
}

/// Lower-case digits only, as the standard wants them.
fn hex<const N: usize>(digits: &[u8]) -> Option<[u8; N]> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = value(pair[0])? << 4 | value(pair[1])?;
    }
    Some(bytes)
}

/// Where a call came from, for its span. There is one only while this process takes part in traces, and only for calls that may be recorded.
#[derive(Debug, Clone, Default)]
pub struct Origin {
    /// The id of the request.
    pub request: Option<Id>,
    /// The session, as a digest: ids of sessions are secrets.
    pub session: Option<[u8; 8]>,
    /// How it came; `None` if that is not known.
    pub transport: Option<Transport>,
    /// The trace context of what carried it: the HTTP request may belong to another span than the call.
    pub carrier: Option<TraceContext>,
    /// Its span, if it is decided already that it has one, and the one that this is part of.
    pub span: Option<(TraceContext, Option<[u8; 8]>)>,
}

/// How a message is carried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// Over standard input and output.
    Pipe,
    /// In an HTTP request, from this address if it is known.
    Http(Option<SocketAddr>),
}

/// As many as there are shares of all traces.
const ALL: u64 = 1 << 56;
/// No part is taken in traces.
const NONE: u64 = u64::MAX;
/// How many of 2^56 new traces are recorded, or `NONE`.
static SHARE: AtomicU64 = AtomicU64::new(NONE);

/// From now on calls have spans. Of the traces that begin here, this share (0 to 1) is recorded; whether others are is up to those who
/// began them.
pub fn take_part(share: f64) {
    SHARE.store((share.clamp(0.0, 1.0) * ALL as f64) as u64, Ordering::Relaxed);
}

/// From now on calls have no spans.
pub fn take_no_part() {
    SHARE.store(NONE, Ordering::Relaxed);
}

/// Whether calls have spans.
#[inline]
pub fn is_on() -> bool {
    SHARE.load(Ordering::Relaxed) != NONE
}

/// Whether what has this parent, or begins a trace if it has none, is recorded: then this is its span, or the first one of a new trace.
/// What is not recorded has no span of ours, and costs nothing further: what its caller says of its trace stays as it is.
pub fn sample(parent: Option<TraceContext>) -> Option<TraceContext> {
    match (SHARE.load(Ordering::Relaxed), parent) {
        (NONE, _) => None,
        (_, Some(parent)) => parent.is_sampled.then(|| parent.child()),
        (share, None) if fastrand::u64(..ALL) < share => Some(TraceContext::root()),
        _ => None,
    }
}

/// Makes what `future` does a span of the current call's trace: `agent.run`, `search.vector`. Spans, calls and log lines inside of it
/// belong to it.
///
/// `attributes` are names and values, made only if the span is recorded.
pub fn span<F, A>(name: &'static str, attributes: A, future: F) -> Spanned<F>
where
    F: Future,
    A: FnOnce() -> Vec<(&'static str, String)>,
{
    let parent = match events::is_wanted(Kind::SpanEnded) {
        true => Current::look(Current::trace).flatten().filter(|parent| parent.is_sampled),
        false => None,
    };
    let open = parent.map(|parent| OpenSpan {
        name,
        attributes: attributes(),
        context: parent.child(),
        parent: parent.span,
        started: Instant::now(),
    });
    Spanned { inner: future, open }
}

#[derive(Debug)]
struct OpenSpan {
    name: &'static str,
    attributes: Vec<(&'static str, String)>,
    context: TraceContext,
    parent: [u8; 8],
    started: Instant,
}

impl OpenSpan {
    fn end(&self) {
        events::emit(&Event::SpanEnded(SpanEnded {
            name: self.name,
            context: self.context,
            parent: self.parent,
            duration: self.started.elapsed(),
            attributes: &self.attributes,
        }));
    }
}

pin_project! {
    /// The future of [`span`].
    pub struct Spanned<F> {
        #[pin]
        inner: F,
        open: Option<OpenSpan>,
    }

    impl<F> PinnedDrop for Spanned<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(open) = this.project().open.take() {
                open.end();
            }
        }
    }
}

impl<F: Future> Future for Spanned<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let polled = match &this.open {
            None => return this.inner.poll(cx),
            Some(open) => Current::in_span(open.context, || this.inner.poll(cx)),
        };
        if polled.is_ready()
            && let Some(open) = this.open.take()
        {
            open.end();
        }
        polled
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_a_traceparent() {
        let plain = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        for (text, expected) in [
            (plain, Some(true)),
            ("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-00", Some(false)),
            ("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-03", Some(true)),
            ("cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-what-comes", Some(true)),
            ("cc-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01.what-comes", None),
            ("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01-what-comes", None),
            ("ff-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", None),
            ("00-0AF7651916CD43DD8448EB211C80319C-00f067aa0ba902b7-01", None),
            ("00-00000000000000000000000000000000-00f067aa0ba902b7-01", None),
            ("00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", None),
            ("00_0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", None),
            ("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7", None),
            ("é0-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01", None),
            ("", None),
        ] {
            assert_eq!(TraceContext::parse(text).map(|context| context.is_sampled), expected, "{text}");
        }
        let context = TraceContext::parse(plain).unwrap();
        assert_eq!(context.traceparent().as_str(), plain);
        assert_eq!(context.trace_id(), "0af7651916cd43dd8448eb211c80319c");
        let child = context.child();
        assert!(child.span != context.span && child.trace == context.trace && child.is_sampled);
    }

    #[test]
    fn what_the_caller_records_is_recorded() {
        take_part(0.0);
        let named = |flags: &str| {
            TraceContext::parse(&format!("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-{flags}"))
        };
        assert!(sample(None).is_none() && sample(named("00")).is_none());
        let span = sample(named("01")).unwrap();
        assert!(span.is_sampled && span.trace == named("01").unwrap().trace);
        take_no_part();
    }
}
