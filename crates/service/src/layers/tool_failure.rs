//! What goes wrong with a tool is a result that the model can read, wherever it went wrong.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use crate::call::Call;
use crate::current::Current;
use crate::door::Door;
use crate::failure::Tag;
use crate::reply::Reply;

/// Adds [`ToolFailures`].
#[derive(Debug, Clone, Copy, Default)]
pub struct ToolFailureLayer;

impl<S> Layer<S> for ToolFailureLayer {
    type Service = ToolFailures<S>;

    fn layer(&self, inner: S) -> ToolFailures<S> {
        ToolFailures { inner }
    }
}

/// Turns those errors of a `tools/call` that happened inside the tool, or on the way to it, into results with
/// `isError: true` (see `Symbol::in_tool`). The layers below simply fail.
#[derive(Debug, Clone)]
pub struct ToolFailures<S> {
    inner: S,
}

impl<S: Door> Service<Call> for ToolFailures<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = ToolFailureFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let tag = Tag::of(&call);
        ToolFailureFuture { inner: self.inner.call(call), tag }
    }
}

pin_project! {
    /// The future of [`ToolFailures`].
    pub struct ToolFailureFuture<F> {
        #[pin]
        inner: F,
        tag: Tag,
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for ToolFailureFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        match this.inner.poll(cx) {
            Poll::Ready(Ok(Reply::Error(error))) => {
                Current::failed_here();
                Poll::Ready(Ok(this.tag.failed(error)))
            }
            other => other,
        }
    }
}
