//! Is a legacy server there?

use tidegate_protocol::{Error, Json, Method, Symbol};
use tidegate_service::Call;

use super::call::Legacy;
use super::owner::SessionSpec;
use crate::time_budget::TimeBudget;

impl Legacy {
    /// Pings the server in the session that a call like this one would use. A session that it has forgotten is opened
    /// anew, once.
    pub(crate) async fn probe(&self, call: &Call, within: &TimeBudget) -> Result<(), Error> {
        let spec = SessionSpec::of(&call.context, &self.settings);
        for again in [true, false] {
            let is_new = self.sessions.find(&spec).is_none();
            let session = self.sessions.get(&self.dialer, &self.transport, &spec).await?;
            if is_new {
                // A handshake is an answer.
                return Ok(());
            }
            match session.ask(Method::Ping, &Json::empty_object(), within).await {
                // Some do not know `ping`; whoever says so is there.
                Err(error) if error.symbol() == Symbol::MethodNotFound => return Ok(()),
                Err(error) if again && error.symbol() == Symbol::SessionNotFound => {
                    self.sessions.forget(&session);
                    self.changes.gap();
                }
                answered => return answered.map(drop),
            }
        }
        Err(Error::internal())
    }
}
