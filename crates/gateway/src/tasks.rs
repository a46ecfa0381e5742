//! Tasks: an id that leaves the gateway is a sealed handle that says whose task it is, and for whom.

use std::sync::Arc;

use bytestring::ByteString;
use tidegate_protocol::json::Edit;
use tidegate_protocol::seal::digest;
use tidegate_protocol::{Capability, Error, Json, Method, Object, Symbol};
use tidegate_service::{Call, Context, Reply};

use crate::build::State;
use crate::link_owners::Recipient;
use crate::links;
use crate::mount::Mount;
use crate::questions;
use crate::router::{Route, Router};
use crate::view::{Offer, OfferKind};

/// In place of a method, for what handles are bound to.
const BOUND: &str = "tasks";

/// A question about a task, or an answer to one of its own.
pub(crate) async fn answer(router: &Arc<Router>, mut call: Call) -> Result<Reply, Error> {
    may_have_tasks(&call.context)?;
    let handle =
        call.params.text("taskId").ok_or_else(|| Error::invalid_params("\"taskId\" must be a string"))?;
    let is_allowed = |state: &State, offer: &Offer<'_>| router.views.admits(state, &call.context, offer);
    let opened = opened(router, &call.context, &handle, is_allowed);
    let (mount, own) = opened.ok_or_else(|| unknown(&handle))?;
    call.params = call.params.with("taskId", &Json::string(&own));
    let recipient = Recipient::of(&call.context);
    let reply = router.send(Route { mount: mount.clone(), own: None }, "", call).await?;
    Ok(match reply {
        Reply::Complete(task) => {
            let task = questions::in_object(mount.name(), with_id(&task, &handle));
            Reply::Complete(with_offered_uris(router, &mount, &recipient, task))
        }
        reply => reply,
    })
}

/// A task whose result, if it has one, names addresses as they are offered.
fn with_offered_uris(router: &Router, mount: &Arc<Mount>, recipient: &Recipient, task: Json) -> Json {
    if !links::may_hold(task.as_str()) {
        return task;
    }
    let mut edit = Edit::of(&task);
    if let Some(edit) = &mut edit {
        edit.map("result", |result| {
            Some(router.with_offered_uris(mount, &Method::ToolsCall, recipient, result.clone()))
        });
    }
    edit.and_then(Edit::finish).unwrap_or(task)
}

/// A task as it leaves: under a handle, which also says of which tool it is, so that who may no longer call that may no longer
/// ask for the task either.
pub(crate) fn sealed(
    router: &Router,
    mount: &Mount,
    recipient: &Recipient,
    tool: Option<&str>,
    task: &Json,
) -> Json {
    let Some(own) = Object::of(task).and_then(|task| task.text("taskId")) else { return task.clone() };
    // A task id may have any character, a tool's name has no NUL.
    let tool = tool.filter(|tool| !tool.contains('\0')).unwrap_or_default();
    let content = format!("{}\0{tool}\0{own}", mount.name());
    let (sealer, binding) = (router.sealer.load(), recipient.binding(BOUND, digest(["task"])));
    match sealer.seal(content.as_bytes(), &binding, u64::MAX, tidegate_service::random()) {
        Some(handle) => with_id(task, &handle),
        None => task.clone(),
    }
}

/// Whose task a handle names, and what its server calls it.
pub(crate) fn open(router: &Router, context: &Context, handle: &str) -> Option<(Arc<Mount>, ByteString)> {
    let is_seen = |state: &State, offer: &Offer<'_>| {
        router.views.sees(state, context, offer.kind, offer.name, offer.server)
    };
    opened(router, context, handle, is_seen)
}

fn opened(
    router: &Router,
    context: &Context,
    handle: &str,
    may_call: impl Fn(&State, &Offer<'_>) -> bool,
) -> Option<(Arc<Mount>, ByteString)> {
    let binding = context.binding(BOUND, digest(["task"]));
    let content = router.sealer.load().open(handle, &binding, 0).ok()?;
    let content = String::from_utf8(content).ok()?;
    let (name, rest) = content.split_once('\0')?;
    let (tool, own) = rest.split_once('\0')?;
    let state = router.state.load();
    // It may have been at this endpoint and be there no more, and so may its tool.
    let is_there = match tool {
        "" => router.views.knows_server(&state, context, name),
        tool => may_call(&state, &Offer { kind: OfferKind::Tool, name: tool, server: name }),
    };
    let mount = state.mounts.iter().find(|mount| is_there && mount.name() == name)?;
    Some((mount.clone(), own.into()))
}

/// A task under another id.
pub(crate) fn with_id(task: &Json, id: &str) -> Json {
    let mut edit = Edit::of(task);
    if let Some(edit) = edit.as_mut().filter(|edit| edit.object().has("taskId")) {
        edit.set("taskId", Json::string(id));
    }
    edit.and_then(Edit::finish).unwrap_or_else(|| task.clone())
}

/// Tasks are for clients that know them (2026-07-28, SEP-2663).
pub(crate) fn may_have_tasks(context: &Context) -> Result<(), Error> {
    match context.revision.is_modern() && !context.capabilities.has(Capability::Tasks) {
        true => Err(Error::missing_capabilities(&[Capability::Tasks])),
        false => Ok(()),
    }
}

fn unknown(handle: &str) -> Error {
    Error::new(Symbol::TaskNotFound, format!("Unknown task: {handle}"))
}
