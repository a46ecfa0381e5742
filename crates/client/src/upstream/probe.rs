//! Probes: is the server there, now?

use std::sync::Arc;

use tidegate_protocol::Error;
use tidegate_service::{Call, Reply};

use super::{Known, Upstream, closed, is_other_era};
use crate::allowance::Allowance;
use crate::modern::Trouble;

impl Upstream {
    /// Asks the server whether it is there, and connects for that if need be. `call` is a `ping`.
    ///
    /// It keeps to the pauses between the starts of a program as calls do: in a long one it fails at once.
    pub(crate) async fn probe(self: &Arc<Self>, call: &Call, allowance: Allowance) -> Result<(), Error> {
        let _busy = self.busy();
        let asked = tokio::select! {
            asked = tokio::time::timeout_at(allowance.ends(None).into(), self.ask(call, allowance)) => asked,
            () = self.over.cancelled() => return Err(closed()),
        };
        asked.unwrap_or_else(|_| Err(allowance.over()))
    }

    /// Somebody has set something right: the next start waits for no pause.
    pub(crate) fn forget_failures(&self) {
        self.era().backoff.reset();
        self.lanes.forget_failures();
    }

    async fn ask(self: &Arc<Self>, call: &Call, allowance: Allowance) -> Result<(), Error> {
        for again in [true, false] {
            let is_new = self.known_already().is_none();
            let known = self.known(call).await?;
            if is_new {
                // To be connected to is an answer. Those who waited for that together need not ask as well.
                return Ok(());
            }
            let wrong = match known {
                Known::Modern(modern) => match modern.call(call, allowance).await {
                    Ok(Reply::Error(error)) | Err(Trouble::Error(error)) => return Err(error),
                    Ok(_) => return Ok(()),
                    Err(Trouble::WrongEra(error)) => error,
                },
                Known::Legacy(legacy) => match legacy.probe(call, &allowance).await {
                    Err(error) if is_other_era(&error) => error,
                    answered => return answered,
                },
            };
            if !again {
                return Err(wrong);
            }
            self.looks_again(&wrong);
        }
        Err(Error::internal())
    }
}
