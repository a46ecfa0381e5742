//! One span per call, so that every log line below carries the correlation id.

use std::convert::Infallible;
use std::task::{Context, Poll};

use tidegate_protocol::Method;
use tower::{Layer, Service};
use tracing::Instrument;
use tracing::instrument::Instrumented;

use crate::call::Call;
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

/// Opens a span around each call.
#[derive(Debug, Clone)]
pub struct Trace<S> {
    inner: S,
}

impl<S: Door> Service<Call> for Trace<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = Instrumented<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let name = call.method.name_param().and_then(|param| call.params.str(param));
        let tool = name.as_deref().filter(|_| call.method == Method::ToolsCall);
        let span = tracing::info_span!(
            "call",
            correlationId = call.context.correlation.as_str(),
            method = call.method.as_str(),
            tool,
            name = name.as_deref().filter(|_| tool.is_none()),
        );
        let inner = span.in_scope(|| self.inner.call(call));
        inner.instrument(span)
    }
}
