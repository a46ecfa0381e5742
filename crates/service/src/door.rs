//! The door itself: a name for the tower service that everything here is.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::BoxFuture;
use tower::Service;

use crate::call::Call;
use crate::reply::Reply;

/// Anything that answers calls. Implemented by every fitting `tower::Service`.
///
/// `poll_ready` is always ready; load is shed inside `call`, so that one slow service never blocks another.
pub trait Door:
    Service<Call, Response = Reply, Error = Infallible, Future: Send + 'static> + Clone + Send + Sync + 'static
{
    /// Makes one call. The future owns what it needs.
    fn answer(&self, call: Call) -> Self::Future {
        self.clone().call(call)
    }

    /// Forgets the type.
    fn boxed(self) -> BoxDoor {
        BoxDoor(Arc::new(self))
    }
}

impl<S> Door for S where
    S: Service<Call, Response = Reply, Error = Infallible, Future: Send + 'static>
        + Clone
        + Send
        + Sync
        + 'static
{
}

/// A door whose type is forgotten. Clones are handles on the same.
#[derive(Clone)]
pub struct BoxDoor(Arc<dyn Forgotten>);

/// What is left of a door without its type.
trait Forgotten: Send + Sync {
    fn answer(&self, call: Call) -> BoxFuture<'static, Result<Reply, Infallible>>;
}

impl<D: Door> Forgotten for D {
    fn answer(&self, call: Call) -> BoxFuture<'static, Result<Reply, Infallible>> {
        Box::pin(Door::answer(self, call))
    }
}

impl Service<Call> for BoxDoor {
    type Response = Reply;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Reply, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        self.0.answer(call)
    }
}

impl fmt::Debug for BoxDoor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BoxDoor")
    }
}
