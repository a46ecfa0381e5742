//! Makes each call the [current](Current) one, so that every log line below carries the correlation id.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tower::{Layer, Service};

use crate::call::Call;
use crate::current::{Current, Working};
use crate::door::Door;
use crate::reply::Reply;

/// Adds a [`Trace`].
#[derive(Debug, Clone, Copy, Default)]
pub struct TraceLayer;

impl<S> Layer<S> for TraceLayer {
    type Service = Trace<S>;

    fn layer(&self, inner: S) -> Trace<S> {
        Trace { inner }
    }
}

/// Makes each call the current one, and opens a span around it for whoever wants one.
#[derive(Debug, Clone)]
pub struct Trace<S> {
    inner: S,
}

impl<S: Door> Service<Call> for Trace<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = Working<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        Current::of(&call).work(|| self.inner.call(call))
    }
}
