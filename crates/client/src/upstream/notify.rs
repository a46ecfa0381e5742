//! What callers tell: passed on in the era's way. Nobody waits for anything.

use std::sync::Arc;

use tidegate_protocol::{Error, Method};
use tidegate_service::Call;

use super::{Negotiated, Upstream, closed};

impl Upstream {
    /// Passes a notification of a caller on.
    pub(crate) async fn notify(self: &Arc<Self>, call: &Call) -> Result<(), Error> {
        if call.method == Method::RootsChanged {
            // There are no roots to keep in mind but those of a session, and nothing is told to a modern server.
            if let Some(Negotiated::Legacy(legacy)) = self.negotiated_already() {
                legacy.roots_changed(&call.context);
            }
            return Ok(());
        }
        let _busy = self.busy();
        let budget = self.budget(call);
        let telling = async {
            match self.known(call).await? {
                Negotiated::Modern(modern) => modern.notify(call).await,
                Negotiated::Legacy(legacy) => legacy.notify(call, &budget).await,
            }
        };
        tokio::select! {
            told = tokio::time::timeout_at(budget.ends(None).into(), telling) => {
                told.unwrap_or_else(|_| Err(budget.over()))
            }
            () = call.context.cancel.cancelled() => Ok(()),
            () = self.over.cancelled() => Err(closed()),
        }
    }
}
