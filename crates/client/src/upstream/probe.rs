//! Probes: is the server there, now?

use std::sync::Arc;

use tidegate_protocol::Error;
use tidegate_service::{Call, Reply};

use super::{Known, Upstream, closed, is_other_era};
use crate::allowance::Allowance;
use crate::backoff::Pace;
use crate::modern::Trouble;

impl Upstream {
    /// Asks the server whether it is there, and connects for that if need be. `call` is a `ping`.
    ///
    /// A pause that callers are made to wait is none for a probe: it is there to end it. And what it cannot start makes
    /// the pause no longer, or callers would pay for being looked after.
    pub(crate) async fn probe(self: &Arc<Self>, call: &Call, allowance: Allowance) -> Result<(), Error> {
        let _busy = self.busy();
        let asked = tokio::select! {
            asked = tokio::time::timeout_at(allowance.ends(None).into(), self.ask(call, allowance)) => asked,
            () = self.over.cancelled() => return Err(closed()),
        };
        let asked = asked.unwrap_or_else(|_| Err(allowance.over()));
        match asked {
            Ok(()) => {
                self.era().backoff.succeeded();
                self.lanes.succeeded();
            }
            Err(_) => {
                self.bury_quietly();
                self.lanes.bury_quietly();
            }
        }
        asked
    }

    async fn ask(self: &Arc<Self>, call: &Call, allowance: Allowance) -> Result<(), Error> {
        for again in [true, false] {
            let is_new = self.known_already().is_none();
            let known = self.known(call, Pace::Probe).await?;
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
