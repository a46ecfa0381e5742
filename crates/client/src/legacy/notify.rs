//! What callers tell a legacy server.

use tidegate_protocol::{Error, Method};
use tidegate_service::{Call, Context};

use super::call::Legacy;
use super::whose::{ClientIdentity, Terms};
use crate::allowance::Allowance;
use crate::wire;

impl Legacy {
    /// Passes a notification on, in the session that the caller's calls are made in.
    pub(crate) async fn notify(&self, call: &Call, within: &Allowance) -> Result<(), Error> {
        let lane = self.lane_within(&Terms::of(&call.context, &self.options), within).await?;
        lane.touch();
        let mut params = Vec::with_capacity(call.params.as_str().len());
        wire::params(&mut params, &call.params, &[], wire::is_terms, |_| {});
        lane.peer.line.tell(wire::notification_with(call.method.as_str(), &params)).await
    }

    /// The roots of a client have changed: the sessions hear of it in which the server was told them, and no others.
    pub(crate) fn roots_changed(&self, whose: &Context) {
        let client = ClientIdentity::of(whose);
        for lane in self.lanes.all().iter().filter(|lane| lane.has_roots_of(&client)) {
            lane.peer.line.tell_soon(wire::notification(Method::RootsChanged.as_str(), None));
        }
    }
}
