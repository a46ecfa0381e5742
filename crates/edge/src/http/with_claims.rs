//! [`WithClaims`]: a door whose calls carry the claims of one HTTP request, and say that they came with it.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use tidegate_service::trace::{self, Origin};
use tidegate_service::{Call, Claims, Door, Identity, Reply};
use tower::Service;

use super::http_headers::HttpHeaders;

/// Adds the claims of a request to the calls that come of it. A legacy session belongs to a principal for as long as it lives;
/// its claims are those of the request at hand, because tokens are refreshed meanwhile.
#[derive(Clone)]
pub(super) struct WithClaims<D> {
    door: D,
    claims: Option<Arc<Claims>>,
    origin: Option<Arc<Origin>>,
}

impl<D: Door> WithClaims<D> {
    pub(super) fn new(door: &D, identity: &Identity) -> WithClaims<D> {
        WithClaims { door: door.clone(), claims: identity.claims.clone(), origin: None }
    }

    /// For calls that came in the body of a request with these headers.
    pub(super) fn carried_by(mut self, headers: &HttpHeaders<'_>) -> WithClaims<D> {
        self.origin = trace::is_on().then(|| Arc::new(headers.origin()));
        self
    }
}

impl<D: Door> Service<Call> for WithClaims<D> {
    type Response = Reply;
    type Error = Infallible;
    type Future = D::Future;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> D::Future {
        if self.claims.is_some() {
            call.context.claims = self.claims.clone();
        }
        if let Some(origin) = &self.origin {
            let request = call.context.origin.as_ref().and_then(|origin| origin.request.clone());
            call.context.origin = Some(Arc::new(Origin { request, ..Origin::clone(origin) }));
        }
        self.door.call(call)
    }
}
