//! A circuit breaker: a server that keeps failing is left alone for a while, and its callers are told at once.
//!
//! [`BreakerState`] and its rules are in `state`, the handle that others share is [`Circuit`], and the layer is here.
//!
//! Only what says that the server is not there counts as a failure: an error with the symbol `Unavailable` (no
//! connection, a 5xx) or `Timeout`. Any other answer shows that it lives, even an error. `CircuitOpen`, `RateLimited`,
//! `Unauthorized` and `Cancelled` say nothing either way, and neither does a call that its caller dropped, unless its
//! deadline had passed by then.
//!
//! An `Unavailable` of a call that was surely not executed means that the server could not be reached; see `state` for
//! the difference that makes. Failures that count, and refusals, have the state of the circuit in `data.circuitState`.

mod circuit;
mod settings;
mod state;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Method, Symbol};
use tower::{Layer, Service};

use circuit::with_state;
pub use circuit::{Circuit, Pass};
pub use settings::{BreakerMode, BreakerSettings};
use state::Outcome;
pub use state::{BreakerReport, BreakerState};

use crate::call::Call;
use crate::door::Door;
use crate::reply::Reply;

/// Adds a [`Breaker`]. Every door that one layer is put around shares its [`Circuit`].
///
/// ```
/// use tidegate_protocol::{Error, Method, Params, Symbol};
/// use tidegate_service::layers::{BreakerLayer, BreakerSettings, BreakerState};
/// use tidegate_service::{Call, Context, Door, Reply};
/// use tower::{Layer, service_fn};
///
/// # #[tokio::main(flavor = "current_thread")] async fn main() {
/// let down = service_fn(|_: Call| async {
///     Ok::<_, std::convert::Infallible>(Reply::Error(Error::new(Symbol::Unavailable, "connection refused")))
/// });
/// let breaker = BreakerLayer::new("weather", BreakerSettings::default());
/// let circuit = breaker.circuit().clone(); // for health endpoints and probes
/// let door = breaker.layer(down);
/// for _ in 0..5 {
///     let _ = door.answer(Call::new(Method::ToolsList, Params::empty(), Context::local())).await;
/// }
/// assert_eq!(circuit.state(), BreakerState::Open);
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct BreakerLayer {
    circuit: Circuit,
}

impl BreakerLayer {
    /// A breaker of its own for the server that people know as `name`.
    pub fn new(name: impl Into<String>, settings: BreakerSettings) -> Self {
        BreakerLayer::of(Circuit::new(name, settings))
    }

    /// A breaker that shares `circuit` with others.
    pub fn of(circuit: Circuit) -> Self {
        BreakerLayer { circuit }
    }

    /// The handle for probes and health endpoints.
    pub fn circuit(&self) -> &Circuit {
        &self.circuit
    }
}

impl<S> Layer<S> for BreakerLayer {
    type Service = Breaker<S>;

    fn layer(&self, inner: S) -> Breaker<S> {
        Breaker { inner, circuit: self.circuit.clone() }
    }
}

/// Answers with `CircuitOpen` at once while its circuit is open.
#[derive(Debug, Clone)]
pub struct Breaker<S> {
    inner: S,
    circuit: Circuit,
}

impl<S: Door> Service<Call> for Breaker<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = BreakerFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let works = !only_tells(&call.method);
        match self.circuit.begin_until(call.context.deadline) {
            Ok(pass) => BreakerFuture::Running { inner: self.inner.call(call), pass: Some(pass), works },
            Err(error) => BreakerFuture::Refused { error: Some(error) },
        }
    }
}

pin_project! {
    /// The future of [`Breaker`].
    #[project = Project]
    #[allow(missing_docs)]
    pub enum BreakerFuture<F> {
        /// Turned away.
        Refused { error: Option<Error> },
        /// Let through; the pass goes back when the future ends or is dropped.
        Running { #[pin] inner: F, pass: Option<Pass>, works: bool },
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for BreakerFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Project::Refused { error } => {
                Poll::Ready(Ok(Reply::Error(error.take().unwrap_or_else(Error::internal))))
            }
            Project::Running { inner, pass, works } => {
                let Ok(reply) = ready!(inner.poll(cx));
                let Some(pass) = pass.take() else { return Poll::Ready(Ok(reply)) };
                let outcome = match outcome(&reply) {
                    Outcome::Success if !*works => Outcome::Answered,
                    Outcome::Failure(why) if !*works => Outcome::Unreachable(why),
                    outcome => outcome,
                };
                let counts = matches!(outcome, Outcome::Unreachable(_) | Outcome::Failure(_));
                let state = pass.finish(outcome);
                Poll::Ready(Ok(match reply {
                    Reply::Error(error) if counts => Reply::Error(with_state(error, state)),
                    reply => reply,
                }))
            }
        }
    }
}

/// Whether the server only says what it is and has. It may do that well while its tools hang.
fn only_tells(method: &Method) -> bool {
    matches!(
        method,
        Method::ToolsList
            | Method::PromptsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::Discover
            | Method::Listen
            | Method::Ping
    )
}

/// What a reply says about the server.
fn outcome(reply: &Reply) -> Outcome<'_> {
    match reply {
        Reply::Error(error) => match error.symbol() {
            Symbol::Unavailable if error.is_unexecuted() => Outcome::Unreachable(error.message()),
            // It is not the server that it should be, and was not asked for anything else.
            Symbol::ServerCapabilityMissing => Outcome::Unreachable(error.message()),
            Symbol::Unavailable | Symbol::Timeout => Outcome::Failure(error.message()),
            Symbol::CircuitOpen
            | Symbol::RateLimited
            | Symbol::Overloaded
            | Symbol::Unauthorized
            | Symbol::Cancelled => Outcome::Neither,
            _ => Outcome::Success,
        },
        _ => Outcome::Success,
    }
}
