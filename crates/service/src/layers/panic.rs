//! A panicking handler is that caller's `-32603` and nothing else.

use std::convert::Infallible;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tidegate_protocol::Error;
use tower::{Layer, Service};

use crate::call::Call;
use crate::door::Door;
use crate::events::{self, Event, HandlerPanicked};
use crate::reply::Reply;

/// Adds a [`PanicBoundary`].
#[derive(Debug, Clone, Copy, Default)]
pub struct PanicBoundaryLayer;

impl<S> Layer<S> for PanicBoundaryLayer {
    type Service = PanicBoundary<S>;

    fn layer(&self, inner: S) -> PanicBoundary<S> {
        PanicBoundary { inner }
    }
}

/// Turns panics of the inner door into errors.
#[derive(Debug, Clone)]
pub struct PanicBoundary<S> {
    inner: S,
}

impl<S: Door> Service<Call> for PanicBoundary<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = PanicFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        // Making the future runs code too.
        match catch_unwind(AssertUnwindSafe(|| self.inner.call(call))) {
            Ok(inner) => PanicFuture { inner: Some(inner) },
            Err(panic) => {
                report(&panic);
                PanicFuture { inner: None }
            }
        }
    }
}

pin_project! {
    /// The future of [`PanicBoundary`].
    pub struct PanicFuture<F> {
        #[pin]
        inner: Option<F>,
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for PanicFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Some(inner) = this.inner.as_mut().as_pin_mut() else {
            return Poll::Ready(Ok(Reply::Error(Error::internal())));
        };
        match catch_unwind(AssertUnwindSafe(|| inner.poll(cx))) {
            Ok(poll) => poll,
            Err(panic) => {
                report(&panic);
                this.inner.set(None);
                Poll::Ready(Ok(Reply::Error(Error::internal())))
            }
        }
    }
}

/// The details go to the log, under the call's correlation id, and never to the caller.
fn report(panic: &Box<dyn std::any::Any + Send>) {
    let message = panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message");
    events::emit(&Event::HandlerPanicked(HandlerPanicked { message }));
}
