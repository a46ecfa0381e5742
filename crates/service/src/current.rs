//! [`Current`]: the call that is being worked on, for whoever writes log lines.
//!
//! A span says the same to any subscriber, but making one for each call costs more than all other layers together. Who
//! writes the log lines itself can ask here instead and do [without spans](without_spans).

use std::borrow::Cow;
use std::cell::RefCell;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;
use tidegate_protocol::{Json, Method, Revision};
use tracing::Instrument;
use tracing::instrument::Instrumented;

use crate::call::Call;
use crate::correlation::CorrelationId;
use crate::decision::Decision;
use crate::events;
use crate::journal::{Journal, What};
use crate::secrets::{first_of, hide_in_text};
use crate::trace::TraceContext;

static SPANS: AtomicBool = AtomicBool::new(true);

thread_local! {
    static CURRENT: RefCell<Option<Current>> = const { RefCell::new(None) };
}

/// From now on calls have no spans: log lines are written by somebody who looks at [`Current`].
pub fn without_spans() {
    SPANS.store(false, Ordering::Relaxed);
}

/// From now on calls have spans again: somebody wants to choose lines by their fields.
pub fn with_spans() {
    SPANS.store(true, Ordering::Relaxed);
}

/// What a log line says about the call that it belongs to.
#[derive(Debug, Clone)]
pub struct Current {
    correlation: CorrelationId,
    method: Method,
    /// The tool, prompt or resource, as it stands in the request.
    name: Option<Json>,
    /// The server that it was sent to.
    server: Option<Arc<str>>,
    /// The revision that this server speaks, once that is known.
    server_revision: Option<Revision>,
    /// What a policy said to it.
    decision: Option<Arc<Decision>>,
    /// What happened to it.
    journal: Option<Journal>,
    /// Its span, or the one inside of it that is being worked on.
    trace: Option<TraceContext>,
    /// Whether the failure of its tool was written here, and not by a server.
    is_own_failure: bool,
}

impl Current {
    /// `began` is when the call came, if that is known.
    pub(crate) fn of(call: &Call, began: Option<Instant>) -> Current {
        let name = call.method.name_param().and_then(|param| call.params.json(param));
        Current {
            correlation: call.context.correlation,
            method: call.method.clone(),
            name,
            server: None,
            server_revision: None,
            decision: None,
            journal: events::keeps_journals().then(|| Journal::new(began.unwrap_or_else(Instant::now))),
            trace: call.context.trace,
            is_own_failure: false,
        }
    }

    /// Lets `look` see the call that this thread is working on, if there is one.
    pub fn look<T>(look: impl FnOnce(&Current) -> T) -> Option<T> {
        let seen = CURRENT.try_with(|current| current.borrow().as_ref().map(look));
        seen.ok().flatten()
    }

    /// Notes to which server the current call goes, for its record.
    pub fn sent_to(server: &Arc<str>) {
        Current::note_server(Some(server));
    }

    /// Notes that the current call went to no server after all: those that were asked do not know what it is about.
    pub fn sent_nowhere() {
        Current::note_server(None);
    }

    fn note_server(server: Option<&Arc<str>>) {
        Current::note(|current| current.server = server.cloned());
    }

    /// Notes which revision the server of the current call speaks, for its record.
    pub fn spoke(revision: Option<Revision>) {
        Current::note(|current| current.server_revision = revision);
    }

    /// Notes what a policy said to the current call, for its record.
    pub fn decided(decision: &Arc<Decision>) {
        Current::note(|current| {
            current.decision = Some(decision.clone());
            if let Some(journal) = &current.journal {
                journal.note(What::Decided);
            }
        });
    }

    /// Notes that the failure of the current call is written by this process.
    pub(crate) fn failed_here() {
        Current::note(|current| current.is_own_failure = true);
    }

    /// Whether that was noted.
    pub(crate) fn is_own_failure(&self) -> bool {
        self.is_own_failure
    }

    /// Does something as part of a span inside of the current call.
    pub(crate) fn in_span<T>(span: TraceContext, work: impl FnOnce() -> T) -> T {
        let mut outer = None;
        Current::note(|current| outer = current.trace.replace(span));
        let done = work();
        Current::note(|current| current.trace = outer);
        done
    }

    fn note(note: impl FnOnce(&mut Current)) {
        let _ = CURRENT.try_with(|current| {
            if let Ok(mut current) = current.try_borrow_mut()
                && let Some(current) = &mut *current
            {
                note(current);
            }
        });
    }

    /// The id that every log line of the call has.
    pub fn correlation(&self) -> CorrelationId {
        self.correlation
    }

    /// The method.
    pub fn method(&self) -> &Method {
        &self.method
    }

    /// The tool, prompt or resource.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        self.name.as_ref().and_then(Json::to_str).map(|name| cut(shown_name(&self.method, name)))
    }

    /// The server that the call was sent to.
    pub fn server(&self) -> Option<&str> {
        self.server.as_deref()
    }

    /// The same, for whoever keeps its name.
    pub(crate) fn shared_server(&self) -> Option<&Arc<str>> {
        self.server.as_ref()
    }

    /// The revision that this server speaks.
    pub fn server_revision(&self) -> Option<Revision> {
        self.server_revision
    }

    /// What a policy said to the call; `None` if none was asked.
    pub fn decision(&self) -> Option<&Arc<Decision>> {
        self.decision.as_ref()
    }

    /// What has happened to it so far, if somebody keeps journals.
    pub fn journal(&self) -> Option<&Journal> {
        self.journal.as_ref()
    }

    /// Where it stands in a trace; `None` if this process takes no part in traces and its caller named none.
    pub fn trace(&self) -> Option<TraceContext> {
        self.trace
    }

    /// A future that goes on with the current call elsewhere, such as in a task of its own.
    pub fn carry<F: Future>(future: F) -> Working<F> {
        let current = Current::look(Current::clone);
        let span = tracing::Span::current();
        Working { inner: Some(future.instrument(span.clone())), span, current }
    }

    /// `correlationId`, `method`, and `tool` for tools or `name` for the rest.
    pub fn fields(&self) -> impl Iterator<Item = (&'static str, Cow<'_, str>)> {
        let label = if self.method == Method::ToolsCall { "tool" } else { "name" };
        let name = self.name();
        [
            ("correlationId", Cow::from(self.correlation.as_str())),
            ("method", cut(self.method.as_str().into())),
        ]
        .into_iter()
        .chain(name.map(|name| (label, name)))
    }

    /// A span that says the same, if anybody wants one.
    fn span(&self) -> tracing::Span {
        if !SPANS.load(Ordering::Relaxed) {
            return tracing::Span::none();
        }
        let name = self.name();
        let is_tool = self.method == Method::ToolsCall;
        tracing::info_span!(
            "call",
            correlationId = self.correlation.as_str(),
            method = self.method.as_str(),
            tool = name.as_deref().filter(|_| is_tool),
            name = name.as_deref().filter(|_| !is_tool),
        )
    }

    /// Makes a future and works on it as this call.
    pub(crate) fn work<F: Future>(self, make: impl FnOnce() -> F) -> Working<F> {
        let span = self.span();
        let mut current = Some(self);
        let inner = {
            let _entered = Entered::new(&mut current);
            span.in_scope(make)
        };
        Working { inner: Some(inner.instrument(span.clone())), span, current }
    }
}

/// How much of an address is looked at, in bytes. Less than that is shown.
const LONGEST_ADDRESS: usize = 4096;

/// A name as lines and records have it: an address without what gives access in it.
pub(crate) fn shown_name<'a>(method: &Method, name: Cow<'a, str>) -> Cow<'a, str> {
    match method.name_param() {
        Some("uri") => match hide_in_text(first_of(&name, LONGEST_ADDRESS)) {
            Cow::Borrowed(_) => name,
            Cow::Owned(hidden) => hidden.into(),
        },
        _ => name,
    }
}

/// How much of a text that others wrote a record has, in characters.
const LONGEST: usize = 256;

/// A text of others, no longer than a log line should be.
pub(crate) fn cut(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return text;
    }
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]).into(),
        None => text,
    }
}

pin_project! {
    /// A future that belongs to a call.
    #[derive(Debug)]
    pub struct Working<F> {
        #[pin]
        inner: Option<Instrumented<F>>,
        span: tracing::Span,
        current: Option<Current>,
    }
}

impl<F> Working<F> {
    /// Stops the work, as part of the call: what is told of the end of its parts is told of this call.
    pub(crate) fn stop(self: Pin<&mut Self>) {
        let mut this = self.project();
        let _entered = Entered::new(this.current);
        this.inner.set(None);
    }

    /// Does something as part of the call.
    pub(crate) fn enter<T>(self: Pin<&mut Self>, work: impl FnOnce(&Current) -> T) -> Option<T> {
        let this = self.project();
        let span = this.span.clone();
        let _entered = Entered::new(this.current);
        // Who looks at the current call meanwhile sees it, and what somebody would note about it is lost: it has ended.
        Current::look(|current| span.in_scope(|| work(current)))
    }
}

impl<F: Future> Future for Working<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        let _entered = Entered::new(this.current);
        match this.inner.as_pin_mut() {
            Some(inner) => inner.poll(cx),
            // It was stopped: there is nothing to come.
            None => Poll::Pending,
        }
    }
}

/// While this lives, the thread works on the call that was given, and what it worked on before waits there.
struct Entered<'a>(&'a mut Option<Current>);

impl<'a> Entered<'a> {
    fn new(current: &'a mut Option<Current>) -> Entered<'a> {
        swap(current);
        Entered(current)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        swap(self.0);
    }
}

fn swap(other: &mut Option<Current>) {
    // A thread that is ending has no current call, and nobody who could ask.
    let _ = CURRENT.try_with(|current| {
        if let Ok(mut current) = current.try_borrow_mut() {
            std::mem::swap(&mut *current, other);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Context as CallContext;
    use tidegate_protocol::{Limits, Params};

    fn call(tool: &str) -> Call {
        let params = Json::from(serde_json::json!({"name": tool}));
        Call::new(
            Method::ToolsCall,
            Params::parse(&params, &Limits::default()).unwrap(),
            CallContext::local(),
        )
    }

    fn tool() -> Option<String> {
        Current::look(|current| current.fields().nth(2).map(|(label, name)| format!("{label}={name}")))?
    }

    #[tokio::test]
    async fn a_call_is_current_while_it_is_polled_and_the_outer_one_after_it() {
        assert_eq!(tool(), None);
        let outer = Current::of(&call("outer"), None).work(|| async {
            let before = tool();
            let inner = Current::of(&call("inn\"er"), None);
            let inner = inner.work(|| async {
                tokio::task::yield_now().await;
                tool()
            });
            assert_eq!(tool(), before);
            let carried = tokio::spawn(Current::carry(async { tool() }));
            (before, inner.await, tool(), carried.await.unwrap())
        });
        let said = |name: &str| Some(format!("tool={name}"));
        assert_eq!(outer.await, (said("outer"), said("inn\"er"), said("outer"), said("outer")));
        assert_eq!(tool(), None);
    }

    #[test]
    fn a_panic_leaves_nothing_behind() {
        let current = Current::of(&call("broken"), None);
        let broken = std::panic::catch_unwind(|| {
            let work = current.work(|| async { panic!("broken") });
            futures_util::FutureExt::now_or_never(work)
        });
        assert!(broken.is_err());
        assert_eq!(tool(), None);
    }
}
