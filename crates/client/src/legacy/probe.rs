//! Is a legacy server there?

use tidegate_protocol::{Error, Json, Method, Symbol};
use tidegate_service::Call;

use super::call::Legacy;
use super::whose::Terms;
use crate::allowance::Allowance;

impl Legacy {
    /// Pings the server in the session that a call like this one would use. A session that it has forgotten is opened
    /// anew, once.
    pub(crate) async fn probe(&self, call: &Call, within: &Allowance) -> Result<(), Error> {
        let terms = Terms::of(&call.context, &self.options);
        for again in [true, false] {
            let is_new = self.lanes.find(&terms).is_none();
            let lane = self.lanes.get(&self.dialer, self.reach, &terms).await?;
            if is_new {
                // A handshake is an answer.
                return Ok(());
            }
            match lane.ask(Method::Ping, &Json::empty_object(), within).await {
                // Some do not know `ping`; whoever says so is there.
                Err(error) if error.symbol() == Symbol::MethodNotFound => return Ok(()),
                Err(error) if again && error.symbol() == Symbol::SessionNotFound => {
                    self.lanes.forget(&lane);
                    self.changes.gap();
                }
                answered => return answered.map(drop),
            }
        }
        Err(Error::internal())
    }
}
