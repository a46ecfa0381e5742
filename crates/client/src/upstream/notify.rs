//! What callers tell: passed on in the era's way. Nobody waits for anything.

use std::sync::Arc;

use tidegate_protocol::{Error, Method};
use tidegate_service::Call;

use super::{Known, Upstream, closed};

impl Upstream {
    /// Passes a notification of a caller on.
    pub(crate) async fn notify(self: &Arc<Self>, call: &Call) -> Result<(), Error> {
        if call.method == Method::RootsChanged {
            // There are no roots to keep in mind but those of a session, and nothing is told to a modern server.
            if let Some(Known::Legacy(legacy)) = self.known_already() {
                legacy.roots_changed(&call.context);
            }
            return Ok(());
        }
        let _busy = self.busy();
        let allowance = self.allowance(call);
        let telling = async {
            match self.known(call).await? {
                Known::Modern(modern) => modern.notify(call).await,
                Known::Legacy(legacy) => legacy.notify(call, &allowance).await,
            }
        };
        tokio::select! {
            told = tokio::time::timeout_at(allowance.ends(None).into(), telling) => {
                told.unwrap_or_else(|_| Err(allowance.over()))
            }
            () = call.context.cancel.cancelled() => Ok(()),
            () = self.over.cancelled() => Err(closed()),
        }
    }
}
