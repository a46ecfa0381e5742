//! `tools/call_batch`: several tool calls in one request, over any number of servers.

use std::sync::Arc;

use tidegate_protocol::Error;
use tidegate_service::{Call, Reply, batch};

pub(crate) use tidegate_service::batch::{EXTENSION, METHOD};

use crate::gateway::Inner;

impl Inner {
    /// Each call of the batch passes the whole front, as if it had come alone.
    pub(crate) async fn batch(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        let calls = batch::calls(call.params.object())?;
        Ok(batch::run(self.front()?, call.context, calls).await)
    }
}
