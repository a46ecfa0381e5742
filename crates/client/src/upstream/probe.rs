//! Probes: is the server there, now?

use std::sync::Arc;

use tidegate_protocol::Error;
use tidegate_service::{Call, Reply};

use super::{Negotiated, Upstream, closed, is_other_era};
use crate::modern::ExchangeError;
use crate::time_budget::TimeBudget;

impl Upstream {
    /// Asks the server whether it is there, and connects for that if need be. `call` is a `ping`.
    ///
    /// It keeps to the pauses between the starts of a program as calls do: in a long one it fails at once.
    pub(crate) async fn probe(self: &Arc<Self>, call: &Call, budget: TimeBudget) -> Result<(), Error> {
        let _busy = self.busy();
        let asked = tokio::select! {
            asked = tokio::time::timeout_at(budget.ends(None).into(), self.ask(call, budget)) => asked,
            () = self.over.cancelled() => return Err(closed()),
        };
        asked.unwrap_or_else(|_| Err(budget.over()))
    }

    /// Somebody has set something right: the next start waits for no pause.
    pub(crate) fn forget_failures(&self) {
        self.era().backoff.reset();
        self.sessions.forget_failures();
    }

    async fn ask(self: &Arc<Self>, call: &Call, budget: TimeBudget) -> Result<(), Error> {
        for again in [true, false] {
            let is_new = self.negotiated_already().is_none();
            let known = self.known(call).await?;
            if is_new {
                // To be connected to is an answer. Those who waited for that together need not ask as well.
                return Ok(());
            }
            let wrong = match known {
                Negotiated::Modern(modern) => match modern.call(call, budget).await {
                    Ok(Reply::Error(error)) | Err(ExchangeError::Error(error)) => return Err(error),
                    Ok(_) => return Ok(()),
                    Err(ExchangeError::WrongEra(error)) => error,
                },
                Negotiated::Legacy(legacy) => match legacy.probe(call, &budget).await {
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
