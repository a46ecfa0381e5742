//! What a client tells without being asked: some of it is the edge's own business, the rest is handed over.

use std::sync::Arc;
use std::task::{Context, Waker};

use tidegate_protocol::Method;
use tidegate_service::{Call, Door};
use tokio::sync::Semaphore;

/// Most notifications of one client that are being handed over at a time.
const MAX_FORWARDED: usize = 64;

/// Whether a notification is for the service behind. Those of a session are not, and what is not named like a
/// notification would be taken for a request there.
pub(crate) fn is_for_service(method: &Method) -> bool {
    !matches!(method, Method::Initialized | Method::Cancelled | Method::Progress) && method.is_notification()
}

/// Hands notifications over, a bounded number at a time.
#[derive(Clone)]
pub(crate) struct NotificationForwarder(Arc<Semaphore>);

impl Default for NotificationForwarder {
    fn default() -> NotificationForwarder {
        NotificationForwarder::of(1)
    }
}

impl NotificationForwarder {
    /// For so many clients.
    pub(crate) fn of(clients: usize) -> NotificationForwarder {
        NotificationForwarder(Arc::new(Semaphore::new(MAX_FORWARDED * clients)))
    }

    /// Hands a notification over. Never waits, and what is answered does not matter to anybody.
    pub(crate) fn forward<D: Door>(&self, door: &D, call: Call) {
        let Ok(place) = self.0.clone().try_acquire_owned() else {
            tracing::debug!(method = %call.method, "a notification was dropped: too many are under way");
            return;
        };
        let cancel = call.context.cancel.clone();
        let mut answer = Box::pin(door.answer(call));
        // Most services have no use for it and say so at once.
        let first = answer.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        if first.is_pending() {
            tokio::spawn(async move {
                let _place = place;
                _ = cancel.run_until_cancelled(answer).await;
            });
        }
    }
}
