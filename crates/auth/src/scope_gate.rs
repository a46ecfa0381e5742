//! [`ScopeGate`]: tools that need scopes of their own.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use arc_swap::ArcSwap;
use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Json, Method, Symbol};
use tidegate_service::{Call, Door, Reply};
use tower::{Layer, Service};

use crate::scopes::Scopes;

/// Puts a [`ScopeGate`] around doors. Made by
/// [`Authenticator::scope_gate`](crate::Authenticator::scope_gate); what it asks for changes with a reload.
#[derive(Debug, Clone)]
pub struct ScopeGateLayer(pub(crate) Arc<ArcSwap<Scopes>>);

impl<D> Layer<D> for ScopeGateLayer {
    type Service = ScopeGate<D>;

    fn layer(&self, inner: D) -> ScopeGate<D> {
        ScopeGate { inner, scopes: self.0.clone() }
    }
}

/// Refuses calls of tools whose caller has a token without the scopes that they need. The error names all of them, so that the
/// client can ask for a better token at once. Who comes without claims, as over stdio, is not restricted.
#[derive(Debug, Clone)]
pub struct ScopeGate<D> {
    inner: D,
    scopes: Arc<ArcSwap<Scopes>>,
}

impl<D: Door> Service<Call> for ScopeGate<D> {
    type Response = Reply;
    type Error = Infallible;
    type Future = ScopeGateFuture<D::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        match check(&call, &self.scopes) {
            Ok(()) => ScopeGateFuture::Passed { inner: self.inner.call(call) },
            Err(error) => ScopeGateFuture::Refused { error: Some(error) },
        }
    }
}

/// Names what is missing, if anything is.
pub(crate) fn check(call: &Call, scopes: &ArcSwap<Scopes>) -> Result<(), Error> {
    match missing(call, scopes) {
        None => Ok(()),
        Some(needed) => Err(refusal(&needed)),
    }
}

fn missing(call: &Call, scopes: &ArcSwap<Scopes>) -> Option<Vec<Arc<str>>> {
    if call.method != Method::ToolsCall {
        return None;
    }
    let scopes = scopes.load();
    if !scopes.concern_tools() {
        return None;
    }
    let claims = call.context.claims.as_ref()?;
    let name = call.params.object().str("name")?;
    scopes.missing_for(&name, claims)
}

#[cold]
fn refusal(needed: &[Arc<str>]) -> Error {
    let what = format!("The token lacks a scope: this tool needs {}", needed.join(" "));
    let list: Vec<&str> = needed.iter().map(|scope| &**scope).collect();
    let data = serde_json::json!({ "requiredScopes": list }).to_string();
    Error::new(Symbol::InsufficientScope, what).with_data(Json::trusted(data)).as_protocol()
}

pin_project! {
    /// The future of [`ScopeGate`].
    #[project = Project]
    #[allow(missing_docs)]
    pub enum ScopeGateFuture<F> {
        /// A scope is missing.
        Refused { error: Option<Error> },
        /// None is.
        Passed { #[pin] inner: F },
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for ScopeGateFuture<F> {
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
