//! [`Checked`]: calls that have to pass a function before anything else happens to them.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pin_project_lite::pin_project;
use tidegate_protocol::Error;
use tidegate_service::{Call, Door, Reply};
use tower::Service;

/// Refuses a call, or lets it pass.
pub(crate) type Check = Arc<dyn Fn(&Call) -> Result<(), Error> + Send + Sync>;

/// A door behind checks. A function, and not a layer of its own, costs no box for each call.
#[derive(Clone)]
pub(crate) struct Checked<D> {
    inner: D,
    checks: Arc<[Check]>,
}

impl<D: Door> Checked<D> {
    pub(crate) fn new(inner: D, checks: Arc<[Check]>) -> Checked<D> {
        Checked { inner, checks }
    }
}

impl<D: Door> Service<Call> for Checked<D> {
    type Response = Reply;
    type Error = Infallible;
    type Future = CheckedFuture<D::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        match self.checks.iter().try_for_each(|check| check(&call)) {
            Ok(()) => CheckedFuture::Passed { inner: self.inner.call(call) },
            Err(error) => CheckedFuture::Refused { error: Some(error) },
        }
    }
}

pin_project! {
    /// The future of [`Checked`].
    #[project = Project]
    pub(crate) enum CheckedFuture<F> {
        Refused { error: Option<Error> },
        Passed { #[pin] inner: F },
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for CheckedFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.project() {
            Project::Passed { inner } => inner.poll(cx),
            Project::Refused { error } => {
                Poll::Ready(Ok(Reply::Error(error.take().unwrap_or_else(Error::internal))))
            }
        }
    }
}
