//! Every call ends in time: a caller always gets an answer within its deadline.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Symbol};
use tokio::time::{Instant, Sleep, sleep_until};
use tower::{Layer, Service};

use crate::call::Call;
use crate::door::Door;
use crate::events::{self, CallTimedOut, Event};
use crate::reply::Reply;

/// Adds a [`Deadline`].
#[derive(Debug, Clone, Copy)]
pub struct DeadlineLayer {
    default: Duration,
}

impl DeadlineLayer {
    /// Calls without a deadline of their own get `default`.
    pub fn new(default: Duration) -> Self {
        DeadlineLayer { default }
    }
}

impl<S> Layer<S> for DeadlineLayer {
    type Service = Deadline<S>;

    fn layer(&self, inner: S) -> Deadline<S> {
        Deadline { inner, default: self.default }
    }
}

/// Ends calls that take too long. Dropping the inner future stops the work.
#[derive(Debug, Clone)]
pub struct Deadline<S> {
    inner: S,
    default: Duration,
}

impl<S: Door> Service<Call> for Deadline<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = DeadlineFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let now = std::time::Instant::now();
        let at = *call.context.deadline.get_or_insert(now + self.default);
        let allowed = at.saturating_duration_since(now);
        // Opening a subscription is quick; what it streams afterwards is not bounded here.
        DeadlineFuture { inner: self.inner.call(call), at: Instant::from_std(at), sleep: None, allowed }
    }
}

pin_project! {
    /// The future of [`Deadline`].
    pub struct DeadlineFuture<F> {
        #[pin]
        inner: F,
        // Most calls are answered at once and never need a timer.
        #[pin]
        sleep: Option<Sleep>,
        at: Instant,
        allowed: Duration,
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for DeadlineFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(reply) = this.inner.poll(cx) {
            return Poll::Ready(reply);
        }
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(*this.at)));
        }
        match this.sleep.as_mut().as_pin_mut().map(|sleep| sleep.poll(cx)) {
            Some(Poll::Ready(())) => {
                let secs = this.allowed.as_secs_f32();
                let message = format!("The call did not finish within {secs:.1} s and was stopped");
                let error = Error::new(Symbol::Timeout, message);
                events::emit(&Event::CallTimedOut(CallTimedOut { error: &error }));
                Poll::Ready(Ok(Reply::Error(error)))
            }
            _ => Poll::Pending,
        }
    }
}
