//! One type for each thing that happens, apart from the end of a call.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Method, Params, Revision, Symbol};

use super::Outcome;
use super::call::{failure, result_bytes};
use crate::correlation::CorrelationId;
use crate::current::{cut, shown_name};
use crate::journal::Stage;
use crate::layers::BreakerState;
use crate::principal::Principal;
use crate::reply::Reply;
use crate::trace::TraceContext;

/// A call failed for a reason that only the operator is told. Logged under the id that the caller got.
#[derive(Debug, Clone, Copy)]
pub struct CallFailed<'a> {
    /// What kind of failure it is.
    pub symbol: Symbol,
    /// The reason.
    pub detail: &'a str,
}

/// A call took too long and was stopped.
#[derive(Debug, Clone, Copy)]
pub struct CallTimedOut<'a> {
    /// What the caller is told.
    pub error: &'a Error,
}

/// A call failed and is made again.
#[derive(Debug, Clone, Copy)]
pub struct CallRetried<'a> {
    /// What was called.
    pub method: &'a Method,
    /// Which attempt comes next, counted from 1.
    pub attempt: u32,
    /// After how long.
    pub delay: Duration,
    /// Why the last one failed.
    pub reason: &'a str,
}

/// A call to a server has ended: one attempt of it. A call that its circuit breaker refused was none.
#[derive(Debug, Clone, Copy)]
pub struct ServerCallEnded<'a> {
    /// The server, by its name in the configuration.
    pub server: &'a Arc<str>,
    /// Where the server is.
    pub place: &'a ServerPlace,
    /// The method.
    pub method: &'a Method,
    /// With which parameters, as they were before they were written for this server.
    pub params: &'a Params,
    /// How it ended.
    pub outcome: Outcome,
    /// How long it took.
    pub duration: Duration,
    /// When it ended.
    pub ended: Instant,
    /// Its span, and that of its parent, if this process takes part in traces.
    pub span: Option<(TraceContext, [u8; 8])>,
    /// The reply, unless it was given up.
    pub(crate) reply: Option<&'a Reply>,
}

impl ServerCallEnded<'_> {
    /// The tool, prompt or resource, as the server names it.
    pub fn name(&self) -> Option<Cow<'_, str>> {
        let name = self.params.str(self.method.name_param()?)?;
        Some(cut(shown_name(self.method, name)))
    }

    /// What failed, if something did and that is known: the symbol of the error, or of a tool's failure.
    pub fn error(&self) -> Option<Cow<'static, str>> {
        failure(self.outcome, self.reply?)
    }

    /// The error that came of it.
    pub fn reply_error(&self) -> Option<&Error> {
        match self.reply? {
            Reply::Error(error) => Some(error),
            _ => None,
        }
    }

    /// How large the result was.
    pub fn result_bytes(&self) -> Option<usize> {
        result_bytes(self.reply?)
    }
}

/// The current call has waited for something.
#[derive(Debug, Clone, Copy)]
pub struct CallWaited {
    /// For what.
    pub stage: Stage,
    /// How long.
    pub took: Duration,
    /// Whether it went on; else it was given up while it waited.
    pub is_over: bool,
}

/// A request of a legacy client failed at the edge, after the calls had ended that were made of it: its questions were not answered, or the
/// task that it waited for failed.
#[derive(Debug, Clone, Copy)]
pub struct RequestFailed<'a> {
    /// The id that the caller gets with the failure, and that its calls had.
    pub correlation: CorrelationId,
    /// The method.
    pub method: &'a Method,
    /// The tool, prompt or resource, as the caller named it.
    pub name: Option<&'a str>,
    /// Who called.
    pub principal: &'a Principal,
    /// The endpoint that was called; `None` for the default one.
    pub endpoint: Option<&'a str>,
    /// The revision that the caller speaks.
    pub revision: Revision,
    /// Why.
    pub error: &'a Error,
    /// How long the whole request took.
    pub took: Duration,
}

/// What the current call is about is there, but not for its caller, to whom it is unknown. A policy that says so is in the record of the call.
#[derive(Debug, Clone, Copy)]
pub struct OfferHidden<'a> {
    /// What was called.
    pub name: &'a str,
    /// The server that has it.
    pub server: &'a str,
    /// Who hides it, as the rest of a sentence: `the endpoint does not select it`.
    pub why: &'a str,
}

/// Where a server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerPlace {
    /// In this process.
    Here,
    /// A process that is reached by its standard input and output, or by any other stream of bytes.
    Pipe,
    /// At the other end of an HTTP connection.
    Http {
        /// The host.
        host: Box<str>,
        /// The port.
        port: u16,
    },
}

/// Something inside of a call has ended that is worth a span of its own.
#[derive(Debug, Clone, Copy)]
pub struct SpanEnded<'a> {
    /// What it is: `agent.run`, `search.vector`.
    pub name: &'static str,
    /// Its span.
    pub context: TraceContext,
    /// The span that it was part of.
    pub parent: [u8; 8],
    /// How long it took.
    pub duration: Duration,
    /// What is known of it, by name.
    pub attributes: &'a [(&'static str, String)],
}

/// A result was larger than allowed and was not sent.
#[derive(Debug, Clone, Copy)]
pub struct ResultTooLarge {
    /// Its size in bytes.
    pub size: usize,
    /// The limit.
    pub limit: usize,
}

/// A handler panicked. Its caller is told that there was an internal error.
#[derive(Debug, Clone, Copy)]
pub struct HandlerPanicked<'a> {
    /// What the panic says.
    pub message: &'a str,
}

/// A tool of a framework server failed.
#[derive(Debug, Clone, Copy)]
pub struct ToolFailed<'a> {
    /// Its name there.
    pub tool: &'a str,
    /// Why.
    pub error: &'a str,
}

/// A handler of a framework server other than a tool failed.
#[derive(Debug, Clone, Copy)]
pub struct HandlerFailed<'a> {
    /// Why.
    pub error: &'a str,
}

/// A call was stopped because the questions that it had led to were not answered in time.
#[derive(Debug, Clone, Copy)]
pub struct CallAbandoned<'a> {
    /// What was called.
    pub method: &'a Method,
}

/// A server has forgotten a session. Another one is opened.
#[derive(Debug, Clone, Copy)]
pub struct SessionExpired<'a> {
    /// The server.
    pub server: &'a str,
}

/// A legacy session is over: one that a client had here, or one that was had with a server.
#[derive(Debug, Clone, Copy)]
pub struct SessionEnded<'a> {
    /// The server; `None` for a session of a client.
    pub server: Option<&'a str>,
    /// How long it was open in this process.
    pub duration: Duration,
}

/// A server does not speak the era any more that it spoke. Which one it speaks is found out again.
#[derive(Debug, Clone, Copy)]
pub struct EraChanged<'a> {
    /// The server.
    pub server: &'a str,
    /// What it was noticed by.
    pub error: &'a Error,
}

/// A circuit breaker opened, closed, or tries again.
#[derive(Debug, Clone, Copy)]
pub struct CircuitChanged<'a> {
    /// What it guards.
    pub breaker: &'a str,
    /// The state before.
    pub from: BreakerState,
    /// The state now.
    pub to: BreakerState,
    /// What happened to it, as the rest of a sentence.
    pub why: &'a str,
}

/// A connection to a server was opened.
#[derive(Debug, Clone, Copy)]
pub struct ServerConnected<'a> {
    /// The name in the configuration.
    pub server: &'a str,
    /// The revision that is spoken.
    pub revision: Revision,
    /// What the server calls itself.
    pub name: &'a str,
    /// Its version.
    pub version: &'a str,
}

/// A server behind a gateway is ready, gone, or something in between.
#[derive(Debug, Clone, Copy)]
pub struct ServerStateChanged<'a> {
    /// The name in the configuration.
    pub server: &'a str,
    /// The state now: `ready`, `down`, `starting` or `resting`.
    pub state: &'a str,
    /// Whether it cannot be used.
    pub is_down: bool,
    /// Whether it could not be used before, either.
    pub was_down: bool,
    /// How many of its tools are offered, once that is known.
    pub tools: Option<usize>,
    /// The revision that it speaks, once that is known.
    pub revision: Option<Revision>,
    /// The same in words.
    pub message: &'a str,
}

/// A server was taken out of a gateway.
#[derive(Debug, Clone, Copy)]
pub struct ServerLeft<'a> {
    /// Its name.
    pub server: &'a str,
    /// Whether one of the same name takes its place.
    pub is_replaced: bool,
    /// Why, as the rest of a sentence.
    pub message: &'a str,
}

/// All servers of a configuration have come up, or have been found not to.
#[derive(Debug, Clone, Copy)]
pub struct ServersReady<'a> {
    /// How many there are.
    pub servers: usize,
    /// How many are ready.
    pub ready: usize,
    /// How many more are disabled.
    pub disabled: usize,
    /// How many tools they have.
    pub tools: usize,
    /// The same in words.
    pub message: &'a str,
}

/// It is time to say what was done so far.
#[derive(Debug, Clone, Copy)]
pub struct StatisticsDue<'a> {
    /// The counters.
    pub stats: &'a crate::stats::Stats,
    /// The counters as they are logged.
    pub report: &'a serde_json::Value,
    /// Whether the success rate is so low that somebody should look.
    pub warn: bool,
    /// Whether the process ends with this.
    pub is_final: bool,
}

/// A credential was refused, or there was none where one is needed. Nothing of it is in here but names.
#[derive(Debug, Clone, Copy)]
pub struct LoginRefused<'a> {
    /// Why, in a word: `expired`, `bad_signature`, `unknown_key`.
    pub reason: &'a str,
    /// The endpoint that was called; `None` for the default one.
    pub endpoint: Option<&'a str>,
    /// Where the request came from, if that is known.
    pub address: Option<std::net::IpAddr>,
    /// Who or what it was about, for the operator: the name of a key, the audience of a token and the one that was expected.
    pub detail: Option<&'a str>,
    /// Whether there were so many lately that this one gets no line of its own in the log.
    pub is_one_of_many: bool,
}

/// Another policy is in force than before, or the first one.
#[derive(Debug, Clone, Copy)]
pub struct PolicyChanged<'a> {
    /// How many rules it has.
    pub rules: usize,
    /// `enforce`, `shadow`, or `none` if there is no policy.
    pub mode: &'a str,
    /// What is decided where no rule matches: `allow` or `deny`.
    pub default: &'a str,
    /// What tells it from other policies.
    pub digest: &'a str,
    /// Whether it refuses nothing, though the one before did.
    pub is_opened: bool,
}

/// Somebody has changed something about the gateway while it runs: a server, or what is logged.
#[derive(Debug, Clone, Copy)]
pub struct Operated<'a> {
    /// What was done, in a word: `restartServer`.
    pub operation: &'a str,
    /// To what: a path of the admin API.
    pub path: &'a str,
    /// What else there is to say: the level that was set.
    pub detail: Option<&'a str>,
    /// How whoever did it had come: `socket`, `token` or `credential`.
    pub way: &'a str,
    /// Who did it.
    pub principal: &'a Principal,
}

/// The `Host` or `Origin` of a request is not allowed.
#[derive(Debug, Clone, Copy)]
pub struct HostRefused<'a> {
    /// Why, and how to allow it.
    pub why: &'a str,
    /// Where the request came from, if that is known.
    pub address: Option<std::net::IpAddr>,
    /// Whether there were so many lately that this one gets no line of its own in the log.
    pub is_one_of_many: bool,
    /// How many got no line since the last one that did.
    pub untold: u64,
}

/// Many credentials were refused in a short time: those that got no line of their own.
#[derive(Debug, Clone, Copy)]
pub struct LoginsRefused<'a> {
    /// How many.
    pub count: u64,
    /// Why, and how many for each reason: `expired 12, bad_signature 3`.
    pub reasons: &'a str,
    /// The addresses that most of them came from, and how many from each: `192.0.2.1 14, 192.0.2.2 1`. Empty if none is known.
    pub addresses: &'a str,
}

/// Somebody should look at something, or need not any more.
#[derive(Debug, Clone, Copy)]
pub struct AlertChanged<'a> {
    /// At what, in a word: `success_rate`, `circuit`, `latency`, `disk`, `buffer`.
    pub alert: &'a str,
    /// Whether it has begun; else it is over.
    pub is_raised: bool,
    /// What it is about, as a sentence.
    pub message: &'a str,
}
