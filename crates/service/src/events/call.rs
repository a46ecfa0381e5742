//! The record of a call: what it was, for whom, and how it ended.

use std::borrow::Cow;
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use memchr::memmem::Finder;
use tidegate_protocol::{Json, Method, Object, Params, Revision, Symbol, meta};

use super::{Event, Kind};
use crate::call::Call;
use crate::correlation::CorrelationId;
use crate::current::{Current, cut};
use crate::decision::Decision;
use crate::journal::Journal;
use crate::principal::{Claims, Principal};
use crate::reply::{InputRequired, Reply};
use crate::trace::{self, Origin, TraceContext};

/// A call has ended. There is exactly one of these for each call that came in.
#[derive(Debug)]
pub struct CallEnded<'a> {
    /// The id that the caller gets with an error, and every log line about the call has.
    pub correlation: CorrelationId,
    /// The method.
    pub method: &'a Method,
    /// The server that it was sent to, if it was sent to one.
    pub server: Option<&'a str>,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Duration,
    /// When it ended.
    pub ended: Instant,
    /// The revision that the caller speaks.
    pub revision: Revision,
    /// Who called.
    pub principal: &'a Principal,
    /// The endpoint that was called; `None` for the default one.
    pub endpoint: Option<&'a str>,
    /// What else is known of who called; `None` when nobody was authenticated.
    pub claims: Option<&'a Claims>,
    /// With which parameters, as the caller wrote them.
    pub params: &'a Params,
    /// Its span, if this process takes part in traces.
    pub trace: Option<TraceContext>,
    /// The span that this one is part of: its caller's, or that of the call that it is part of.
    pub parent: Option<[u8; 8]>,
    /// Where it came from, if this process takes part in traces and it came from outside.
    pub origin: Option<&'a Origin>,
    name: Option<Cow<'a, str>>,
    // Read only for recorders that ask: most calls are counted and nothing else.
    current: &'a Current,
    client_info: Option<&'a Json>,
    reply: Option<&'a Reply>,
}

impl CallEnded<'_> {
    /// The tool, prompt or resource, as the caller named it.
    pub fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The server that it was sent to, for whoever keeps its name.
    pub fn shared_server(&self) -> Option<&Arc<str>> {
        self.current.shared_server()
    }

    /// The revision that the server speaks which it was sent to, once that is known.
    pub fn server_revision(&self) -> Option<Revision> {
        self.current.server_revision()
    }

    /// What a policy said to it; `None` if none was asked.
    pub fn decision(&self) -> Option<&Arc<Decision>> {
        self.current.decision()
    }

    /// What failed, if something did and that is known: the symbol of the error, or of a tool's failure.
    pub fn error(&self) -> Option<Cow<'static, str>> {
        failure(self.outcome, self.reply?)
    }

    /// What the caller was told about an error.
    pub fn message(&self) -> Option<&str> {
        match self.reply? {
            Reply::Error(error) => Some(error.message()),
            _ => None,
        }
    }

    /// What the caller was told about a tool's failure. A server that was asked can write something there, too.
    pub fn failure_message(&self) -> Option<String> {
        let machine = Object::of(self.result()?)?.object("_meta")?.object(meta::ERROR)?;
        Some(machine.str("message")?.into_owned())
    }

    /// The limit of the configuration that refused it, as its caller was told: a JSON object with the scope and the quota. A server that
    /// was asked can write something there, too.
    pub fn limit(&self) -> Option<Json> {
        match (self.outcome, self.reply?) {
            (Outcome::Failed(_), Reply::Error(error)) => Object::of(error.data()?)?.json("limit"),
            // A server may write what it likes.
            (Outcome::ToolError, Reply::Complete(result)) if self.current.is_own_failure() => {
                let machine = Object::of(result)?.object("_meta")?.object(meta::ERROR)?;
                machine.object("data")?.json("limit")
            }
            _ => None,
        }
    }

    /// How large the result is.
    pub fn result_bytes(&self) -> Option<usize> {
        result_bytes(self.reply?)
    }

    /// What the caller gets, if it is a result or a task.
    pub fn result(&self) -> Option<&Json> {
        match self.reply? {
            Reply::Complete(result) | Reply::Task(result) => Some(result),
            _ => None,
        }
    }

    /// What the caller is asked, and the state that comes back with the answers.
    pub fn asks(&self) -> Option<&InputRequired> {
        match self.reply? {
            Reply::InputRequired(asks) => Some(asks),
            _ => None,
        }
    }

    /// What has happened to it on its way, if somebody keeps journals. Who takes it is the only one who gets it.
    pub fn journal(&self) -> Option<&Journal> {
        self.current.journal()
    }

    /// What the client calls itself.
    pub fn client(&self) -> Option<Cow<'_, str>> {
        self.client_info?.member_str("name").map(cut)
    }

    /// What the client says about itself: a JSON object.
    pub fn client_info(&self) -> Option<&Json> {
        self.client_info
    }
}

/// How a call ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// With a result.
    Done,
    /// With a result that says that the tool failed.
    ToolError,
    /// With questions to the caller, who will call again.
    InputRequired,
    /// With a task.
    Task,
    /// With a stream of notifications.
    Subscribed,
    /// With an error.
    Failed(Symbol),
    /// Without an answer: the caller does not want it any more.
    Cancelled,
}

impl Outcome {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Done => "ok",
            Outcome::ToolError => "tool_error",
            Outcome::InputRequired => "input_required",
            Outcome::Task => "task",
            Outcome::Subscribed => "subscribed",
            Outcome::Failed(_) => "error",
            Outcome::Cancelled => "cancelled",
        }
    }

    /// Whether the caller got what it wanted; nothing if it left before that was clear.
    pub const fn is_success(self) -> Option<bool> {
        match self {
            Outcome::Failed(_) | Outcome::ToolError => Some(false),
            Outcome::Cancelled => None,
            _ => Some(true),
        }
    }

    pub(crate) fn of(method: &Method, reply: &Reply) -> Outcome {
        match reply {
            Reply::Complete(result) if *method == Method::ToolsCall && says_error(result) => {
                Outcome::ToolError
            }
            Reply::Complete(_) => Outcome::Done,
            Reply::InputRequired(_) => Outcome::InputRequired,
            Reply::Task(_) => Outcome::Task,
            Reply::Subscription(_) => Outcome::Subscribed,
            Reply::Error(error) => Outcome::Failed(error.symbol()),
        }
    }
}

/// Whether a tool's result says that it failed. Most do not, which a look at the text tells.
fn says_error(result: &Json) -> bool {
    static NAME: LazyLock<Finder<'_>> = LazyLock::new(|| Finder::new(IS_ERROR));
    const IS_ERROR: &[u8] = b"\"isError\"";
    let mut text = result.as_str().as_bytes();
    while let Some(at) = NAME.find(text) {
        text = text[at + IS_ERROR.len()..].trim_ascii_start();
        if text.strip_prefix(b":").is_some_and(|value| value.trim_ascii_start().starts_with(b"true")) {
            return result.member("isError") == Some("true");
        }
    }
    false
}

/// How large the result of a reply is.
pub(super) fn result_bytes(reply: &Reply) -> Option<usize> {
    match reply {
        Reply::Complete(result) | Reply::Task(result) => Some(result.len()),
        _ => None,
    }
}

/// The symbol of what failed.
pub(super) fn failure(outcome: Outcome, reply: &Reply) -> Option<Cow<'static, str>> {
    match (outcome, reply) {
        (Outcome::Failed(symbol), _) => Some(symbol.as_str().into()),
        // What a server of somebody else wrote has none.
        (Outcome::ToolError, Reply::Complete(result)) => {
            let machine = Object::of(result)?.object("_meta")?.object(meta::ERROR)?;
            // One that there is not was made up.
            Some(Symbol::from_name(&machine.str("symbol")?)?.as_str().into())
        }
        _ => None,
    }
}

/// What has to be remembered of a call while it runs. Nothing when nobody wants to know how it ends.
#[derive(Debug)]
pub(crate) struct Observing(Option<Observed>);

#[derive(Debug)]
struct Observed {
    started: Instant,
    revision: Revision,
    principal: Principal,
    claims: Option<Arc<Claims>>,
    endpoint: Option<Arc<str>>,
    params: Params,
    client_info: Option<Json>,
    parent: Option<[u8; 8]>,
    origin: Option<Arc<Origin>>,
}

/// Gives a call a span of its own, if this process takes part in traces: part of the one that is being worked on, or of its caller's.
/// That one is returned, and where the call came from.
fn begin_span(call: &mut Call) -> (Option<[u8; 8]>, Option<Arc<Origin>>) {
    if !trace::is_on() {
        return (None, None);
    }
    let inner = Current::look(Current::trace).flatten();
    // Written to only where there is something to write: others may hold the context.
    let origin = match call.context.origin.is_some() {
        true => call.context.origin.take(),
        false => None,
    };
    // A call that is part of another one came from nowhere else.
    let origin = origin.filter(|_| inner.is_none());
    let begun = match origin.as_deref() {
        Some(Origin { span: Some(begun), .. }) => Some(*begun),
        Some(Origin { span: None, carrier, .. }) => begun_after(call.context.trace.or(*carrier)),
        None => inner.or(call.context.trace).and_then(|parent| begun_after(Some(parent))),
    };
    let Some((span, parent)) = begun else { return (None, None) };
    call.context.trace = Some(span);
    (parent, origin)
}

/// A span with this parent, if it is recorded.
fn begun_after(parent: Option<TraceContext>) -> Option<(TraceContext, Option<[u8; 8]>)> {
    trace::sample(parent).map(|span| (span, parent.map(|parent| parent.span)))
}

impl Observing {
    pub(crate) fn start(call: &mut Call) -> Observing {
        let (parent, origin) = begin_span(call);
        Observing(super::is_wanted(Kind::CallEnded).then(|| {
            let context = &call.context;
            Observed {
                started: Instant::now(),
                revision: context.revision,
                principal: context.principal.clone(),
                claims: context.claims.clone(),
                endpoint: context.endpoint.clone(),
                params: call.params.clone(),
                client_info: context.client_info.clone(),
                parent,
                origin,
            }
        }))
    }

    /// When the call began, if somebody wants to know how it ends.
    pub(crate) fn started(&self) -> Option<Instant> {
        self.0.as_ref().map(|observed| observed.started)
    }

    /// Whether the end of the call is still to come, and somebody wants to know it.
    pub(crate) fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Emits the record.
    pub(crate) fn end(&mut self, current: &Current, reply: Option<&Reply>) {
        let Some(observed) = self.0.take() else { return };
        let outcome = reply.map_or(Outcome::Cancelled, |reply| Outcome::of(current.method(), reply));
        let ended = Instant::now();
        let call = CallEnded {
            correlation: current.correlation(),
            method: current.method(),
            server: current.server(),
            outcome,
            duration: ended.saturating_duration_since(observed.started),
            ended,
            revision: observed.revision,
            principal: &observed.principal,
            endpoint: observed.endpoint.as_deref(),
            claims: observed.claims.as_deref(),
            params: &observed.params,
            trace: current.trace().filter(|trace| trace.is_sampled && trace::is_on()),
            parent: observed.parent,
            origin: observed.origin.as_deref(),
            name: current.name(),
            current,
            client_info: observed.client_info.as_ref(),
            reply,
        };
        super::emit(&Event::CallEnded(&call));
    }
}
