//! The door itself: a name for the tower service that everything here is.

use std::convert::Infallible;

use tower::Service;
use tower::util::BoxCloneSyncService;

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
        BoxCloneSyncService::new(self)
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

/// A door whose type is forgotten.
pub type BoxDoor = BoxCloneSyncService<Call, Reply, Infallible>;
