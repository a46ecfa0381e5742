//! Retries: a call that failed for reasons that pass is made again, if that can do no harm and there is time.
//!
//! A call is made again only if its error says that the trouble may pass (`Unavailable`, `Timeout` or `RateLimited`),
//! and only if it was surely not executed, or is safe to repeat: by its method ([`is_safe`]), or because the predicate
//! of [`RetryLayer::idempotent`] says so. The decision is in `policy`; the waiting is here.
//!
//! The layer belongs inside `ToolFailures`, which turns errors into results, and outside `Breaker`, so that every
//! attempt counts.

mod policy;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Symbol};
use tower::{Layer, Service};

use policy::{Attempts, Verdict};
pub use policy::{RetryPolicy, is_safe};

use crate::call::Call;
use crate::door::Door;
use crate::events::{self, CallRetried, Event};
use crate::journal::Stage;
use crate::noted_wait::noted;
use crate::reply::Reply;

/// Adds a [`Retry`].
///
/// ```
/// use tidegate_protocol::Method;
/// use tidegate_service::layers::{RetryLayer, RetryPolicy};
///
/// // The server is trusted, and these two tools only read.
/// let retry = RetryLayer::new(RetryPolicy::default()).idempotent(|call| {
///     call.method == Method::ToolsCall
///         && matches!(call.params.text("name").as_deref(), Some("search" | "lookup"))
/// });
/// # let _ = retry;
/// ```
#[derive(Clone)]
pub struct RetryLayer {
    rules: Arc<Rules>,
}

/// Says of a call whether making it twice is as good as once.
type Idempotent = Arc<dyn Fn(&Call) -> bool + Send + Sync>;

#[derive(Clone)]
struct Rules {
    policy: RetryPolicy,
    idempotent: Option<Idempotent>,
}

impl RetryLayer {
    /// Retries by `policy`, of calls that were not executed or only read.
    pub fn new(policy: RetryPolicy) -> Self {
        RetryLayer { rules: Arc::new(Rules { policy, idempotent: None }) }
    }

    /// Retries also those calls of which `predicate` says that making them twice is as good as once: tools that a
    /// trusted server declares read-only or idempotent.
    pub fn idempotent(self, predicate: impl Fn(&Call) -> bool + Send + Sync + 'static) -> Self {
        let rules = Rules { policy: self.rules.policy.clone(), idempotent: Some(Arc::new(predicate)) };
        RetryLayer { rules: Arc::new(rules) }
    }
}

impl fmt::Debug for RetryLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayer").field("policy", &self.rules.policy).finish_non_exhaustive()
    }
}

impl<S: Clone> Layer<S> for RetryLayer {
    type Service = Retry<S>;

    fn layer(&self, inner: S) -> Retry<S> {
        Retry { spare: Arc::new(inner.clone()), inner, rules: self.rules.clone() }
    }
}

/// Makes calls again that failed for reasons that pass.
#[derive(Clone)]
pub struct Retry<S> {
    inner: S,
    // The same door for later attempts. Shared, because cloning a boxed door costs an allocation.
    spare: Arc<S>,
    rules: Arc<Rules>,
}

impl<S: fmt::Debug> fmt::Debug for Retry<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Retry")
            .field("inner", &self.inner)
            .field("policy", &self.rules.policy)
            .finish_non_exhaustive()
    }
}

impl<S: Door> Service<Call> for Retry<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = RetryFuture<S>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let attempts = Attempts::begin(&self.rules.policy, call.context.deadline, now());
        let again = attempts.map(|attempts| Again {
            door: self.spare.clone(),
            rules: self.rules.clone(),
            call: call.clone(),
            attempts,
        });
        RetryFuture::First { inner: self.inner.call(call), again }
    }
}

pin_project! {
    /// The future of [`Retry`].
    #[project = Project]
    #[allow(missing_docs)]
    pub enum RetryFuture<S: Door> {
        /// The first attempt, usually the only one.
        First { #[pin] inner: S::Future, again: Option<Again<S>> },
        /// Later attempts and the waits between them. Boxed: they are rare.
        Later { later: Pin<Box<dyn Future<Output = Reply> + Send>> },
    }
}

impl<S: Door> Future for RetryFuture<S> {
    type Output = Result<Reply, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let later = match self.as_mut().project() {
                Project::Later { later } => return later.as_mut().poll(cx).map(Ok),
                Project::First { inner, again } => {
                    let Ok(reply) = ready!(inner.poll(cx));
                    let (Reply::Error(error), Some(mut again)) = (&reply, again.take()) else {
                        return Poll::Ready(Ok(reply));
                    };
                    let Some(delay) = again.after(error) else { return Poll::Ready(Ok(reply)) };
                    RetryFuture::Later { later: Box::pin(again.run(delay)) }
                }
            };
            self.set(later);
        }
    }
}

/// What it takes to make a call again.
pub struct Again<S> {
    door: Arc<S>,
    rules: Arc<Rules>,
    call: Call,
    attempts: Attempts,
}

impl<S: Door> Again<S> {
    /// Waits, calls, and so on, until there is an answer to give.
    async fn run(mut self, mut delay: Duration) -> Reply {
        loop {
            tokio::select! {
                biased;
                () = self.call.context.cancel.cancelled() => return cancelled(),
                () = noted(Stage::Pause, tokio::time::sleep(delay)) => {}
            }
            let Ok(reply) = self.door.answer(self.call.clone()).await;
            match &reply {
                Reply::Error(error) => match self.after(error) {
                    Some(next) => delay = next,
                    None => return reply,
                },
                _ => return reply,
            }
        }
    }

    /// How long to wait after a failure; `None` if the failure is the answer.
    fn after(&mut self, error: &Error) -> Option<Duration> {
        let Again { rules, call, attempts, .. } = self;
        if call.context.cancel.is_cancelled() {
            return None;
        }
        let safe = || is_safe(&call.method) || rules.idempotent.as_ref().is_some_and(|says| says(call));
        match attempts.failed(&rules.policy, error, safe, now(), fastrand::f64()) {
            Verdict::Again(delay) => {
                events::emit(&Event::CallRetried(CallRetried {
                    method: &call.method,
                    attempt: attempts.retries() + 1,
                    delay,
                    reason: error.message(),
                }));
                Some(delay)
            }
            Verdict::GiveUp(why) => {
                tracing::debug!(method = %call.method, reason = error.message(), "no retry: {why}");
                None
            }
        }
    }
}

fn cancelled() -> Reply {
    Reply::Error(Error::new(Symbol::Cancelled, "The request was cancelled"))
}

/// The runtime's clock, which tests can stop.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
