//! What callers tell a legacy server.

use tidegate_protocol::{Error, Method};
use tidegate_service::{Call, Context};

use super::call::Legacy;
use super::lane::{LaneKey, Terms};
use crate::allowance::Allowance;
use crate::wire;

impl Legacy {
    /// Passes a notification on: in the caller's own session if there is one, else in the one that all share.
    pub(crate) async fn notify(&self, call: &Call, within: &Allowance) -> Result<(), Error> {
        let own = self.lanes.find(&Terms::of(&call.context, &self.options).key);
        let lane = match own {
            Some(lane) => lane,
            None => {
                let terms = Legacy::terms(&self.options, call);
                if let LaneKey::Once(_) = terms.key {
                    tracing::debug!(method = %call.method, "a notification of somebody without a session was dropped");
                    return Ok(());
                }
                self.lane_within(&terms, within).await?
            }
        };
        lane.touch();
        let mut params = Vec::with_capacity(call.params.as_str().len());
        wire::params(&mut params, &call.params, &[], wire::is_terms, |_| {});
        lane.peer.line.tell(wire::notification_with(call.method.as_str(), &params)).await
    }

    /// The roots of a caller have changed: its own sessions hear of it, and nobody else's.
    pub(crate) fn roots_changed(&self, whose: &Context) {
        if whose.caller.is_none() && whose.principal.subject.is_none() {
            return;
        }
        for lane in self.lanes.all() {
            if let LaneKey::Caller { caller, principal, .. } = &lane.key
                && (*caller, principal) == (whose.caller, &whose.principal)
            {
                lane.peer.line.tell_soon(wire::notification(Method::RootsChanged.as_str(), None));
            }
        }
    }
}
