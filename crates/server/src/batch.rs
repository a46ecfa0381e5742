//! `tools/call_batch` in the framework: a batch runs like one tool call, and each of its calls like any other.

use std::sync::Arc;

use tidegate_protocol::Error;
use tidegate_service::layers::PanicBoundaryLayer;
use tidegate_service::{Call, batch};
use tower::Layer;

pub(crate) use tidegate_service::batch::{EXTENSION, METHOD};

use crate::cx::Cx;
use crate::dispatch::{Framework, Started};
use crate::run::{Run, Work};
use crate::server::Core;
use crate::tool::ToolError;

pub(crate) fn call(core: &Arc<Core>, call: Call) -> Started {
    prepare(core, call).unwrap_or_else(Started::failed)
}

fn prepare(core: &Arc<Core>, call: Call) -> Result<Started, Error> {
    let calls = batch::calls(call.params.object())?;
    let door = PanicBoundaryLayer.layer(Framework(core.clone()));
    let context = call.context.clone();
    let work = async move { Ok::<_, ToolError>(batch::run(door, context, calls).await) };
    let cx = Cx::new(core.clone(), call)?;
    Ok(Started::Running(Run::new(cx, Work::Other(Box::pin(work)))))
}
