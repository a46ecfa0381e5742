//! `tools/call_batch`: several tool calls in one request, over any number of servers.

use std::sync::Arc;

use tidegate_protocol::Error;
use tidegate_service::{Call, Reply, batch};

pub(crate) use tidegate_service::batch::{EXTENSION, METHOD};

use crate::router::Router;

/// Each call of the batch passes the whole front, as if it had come alone.
pub(crate) async fn answer(router: &Arc<Router>, call: Call) -> Result<Reply, Error> {
    let calls = batch::calls(call.params.object())?;
    Ok(batch::run(router.front()?, call.context, calls).await)
}
