//! `tools/call_batch`: several tool calls in one request, over any number of servers.

use std::sync::Arc;

use tidegate_protocol::Error;
use tidegate_service::layers::{PanicBoundaryLayer, ToolFailureLayer};
use tidegate_service::{Call, Reply, batch};
use tower::Layer;

pub(crate) use tidegate_service::batch::{EXTENSION, METHOD};

use crate::gateway::{Inner, Union};

impl Inner {
    pub(crate) async fn batch(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        let calls = batch::calls(call.params.object())?;
        let door = ToolFailureLayer.layer(PanicBoundaryLayer.layer(Union(self.clone())));
        Ok(batch::run(door, call.context, calls).await)
    }
}
