//! Results have a size limit, and hitting it is a clear error.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Symbol};
use tower::{Layer, Service};

use crate::call::Call;
use crate::door::Door;
use crate::events::{self, Event, ResultTooLarge};
use crate::reply::Reply;

/// Adds a [`SizeLimit`].
#[derive(Debug, Clone, Copy)]
pub struct SizeLimitLayer {
    max: usize,
}

impl SizeLimitLayer {
    /// Results of more than `max` bytes are refused.
    pub fn new(max: usize) -> Self {
        SizeLimitLayer { max }
    }
}

impl<S> Layer<S> for SizeLimitLayer {
    type Service = SizeLimit<S>;

    fn layer(&self, inner: S) -> SizeLimit<S> {
        SizeLimit { inner, max: self.max }
    }
}

/// Refuses results that are too large.
#[derive(Debug, Clone)]
pub struct SizeLimit<S> {
    inner: S,
    max: usize,
}

impl<S: Door> Service<Call> for SizeLimit<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = SizeFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        SizeFuture { inner: self.inner.call(call), max: self.max }
    }
}

pin_project! {
    /// The future of [`SizeLimit`].
    pub struct SizeFuture<F> {
        #[pin]
        inner: F,
        max: usize,
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for SizeFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Poll::Ready(Ok(reply)) = this.inner.poll(cx) else { return Poll::Pending };
        let size = match &reply {
            Reply::Complete(result) | Reply::Task(result) => result.len(),
            _ => 0,
        };
        if size <= *this.max {
            return Poll::Ready(Ok(reply));
        }
        events::emit(&Event::ResultTooLarge(ResultTooLarge { size, limit: *this.max }));
        let message = format!(
            "The result has {size} bytes, more than the limit of {}. Ask for less, for example with a filter or a page",
            this.max
        );
        // The request was fine; what came of it is too large to send.
        let error = Error::new(Symbol::TooLarge, message).with_code(-32603);
        Poll::Ready(Ok(Reply::Error(error)))
    }
}
