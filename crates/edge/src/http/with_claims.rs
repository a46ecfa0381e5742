//! [`WithClaims`]: a door whose calls carry the claims of one HTTP request.

use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};

use tidegate_service::{Call, Claims, Door, Identity, Reply};
use tower::Service;

/// Adds the claims of a request to the calls that come of it. A legacy session belongs to a principal for as long as it lives;
/// its claims are those of the request at hand, because tokens are refreshed meanwhile.
#[derive(Clone)]
pub(super) struct WithClaims<D> {
    door: D,
    claims: Option<Arc<Claims>>,
}

impl<D: Door> WithClaims<D> {
    pub(super) fn new(door: &D, identity: &Identity) -> WithClaims<D> {
        WithClaims { door: door.clone(), claims: identity.claims.clone() }
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
        self.door.call(call)
    }
}
