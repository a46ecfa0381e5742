//! [`GatewayHandle`]: the way from a server of the program back to the gateway that it is behind.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tidegate::protocol::{Error, Symbol};
use tidegate_builtin::Allows;
use tidegate_gateway::Gateway;
use tidegate_service::{Call, Door, Reply};
use tower::Service;

/// The way back to a gateway, which is made before the gateway is, and leads nowhere once that is closed: so the two do
/// not keep each other alive.
#[derive(Clone, Default)]
pub(super) struct GatewayHandle(Arc<Mutex<Option<Gateway>>>);

impl GatewayHandle {
    fn gateway(&self) -> MutexGuard<'_, Option<Gateway>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where it leads from now on.
    pub(super) fn set(&self, gateway: Option<Gateway>) {
        *self.gateway() = gateway;
    }
}

impl GatewayHandle {
    /// Whether callers of a server, the one with this name, could do through the gateway what it does in their name.
    pub(super) fn allows(&self, server: &str) -> Allows {
        let (handle, server) = (self.clone(), server.to_owned());
        Arc::new(move |call| match &*handle.gateway() {
            Some(gateway) => gateway.allows(&server, call),
            None => Err(not_running()),
        })
    }
}

fn not_running() -> Error {
    Error::new(Symbol::Unavailable, "The gateway is not running")
}

impl Service<Call> for GatewayHandle {
    type Response = Reply;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let gateway = self.gateway().clone();
        Box::pin(async move {
            match gateway {
                Some(gateway) => gateway.answer(call).await,
                None => Ok(Reply::Error(not_running())),
            }
        })
    }
}
