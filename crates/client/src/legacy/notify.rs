//! What callers tell a legacy server.

use tidegate_protocol::{Error, Method, write};
use tidegate_service::{Call, Context};

use super::call::Legacy;
use super::owner::{ClientIdentity, SessionSpec};
use crate::time_budget::TimeBudget;
use crate::wire;

impl Legacy {
    /// Passes a notification on, in the session that the caller's calls are made in.
    pub(crate) async fn notify(&self, call: &Call, within: &TimeBudget) -> Result<(), Error> {
        let session = self.session_within(&SessionSpec::of(&call.context, &self.settings), within).await?;
        session.touch();
        let mut params = Vec::with_capacity(call.params.as_str().len());
        wire::params(&mut params, &call.params, &[], wire::is_request_meta, |_| {});
        session.connection.channel.tell(wire::notification(call.method.as_str(), &params)).await
    }

    /// The roots of a client have changed: the sessions hear of it in which the server was told them, and no others.
    pub(crate) fn roots_changed(&self, whose: &Context) {
        let client = ClientIdentity::of(whose);
        for session in self.sessions.all().iter().filter(|session| session.has_roots_of(&client)) {
            session.connection.channel.tell_soon(write::notification(Method::RootsChanged.as_str(), None));
        }
    }
}
