//! Legacy callers in front of a modern server: what 2025-11-25 calls tasks is an extension there.

use std::sync::Arc;

use tidegate_protocol::{
    ClientCapabilities, Error, Feature, Json, Limits, Method, Object, Params, Revision, Symbol,
    tasks_extension,
};
use tidegate_service::{Call, CallerId, Reply};

use super::{ExchangeError, Modern};
use crate::server_info::CORE_TASKS;
use crate::time_budget::TimeBudget;

/// Whether a call comes from somebody else than the client itself (`own`), of the era before.
pub(crate) fn is_legacy_caller(call: &Call, own: CallerId) -> bool {
    !call.context.revision.is_modern() && call.context.caller != Some(own)
}

impl Modern {
    /// Answers a call of such a caller.
    pub(crate) async fn call_for_legacy(
        self: &Arc<Self>,
        call: &Call,
        budget: TimeBudget,
    ) -> Result<Reply, ExchangeError> {
        let knows_tasks = call.context.revision.allows(Feature::CoreTasks);
        match call.method {
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => {
                self.call(&with_tasks(call)?, budget).await
            }
            Method::ToolsCall if knows_tasks && call.params.has("task") && self.offers_tasks() => {
                self.call(&with_tasks(call)?, budget).await
            }
            Method::ToolsCall => match self.call(call, budget).await? {
                // The server insists on a task, and says so before it does anything. Whoever asked will wait for it.
                Reply::Error(error) if wants_tasks(&error) => self.call(&with_tasks(call)?, budget).await,
                reply => Ok(reply),
            },
            Method::ToolsList if knows_tasks && self.offers_tasks() => match self.call(call, budget).await? {
                Reply::Complete(result) => Ok(Reply::Complete(with_support(&result).unwrap_or(result))),
                reply => Ok(reply),
            },
            _ => self.call(call, budget).await,
        }
    }

    /// A discovery as Tidegate in front of this server gives it, in the words of its caller.
    pub(crate) async fn discover_for(
        self: &Arc<Self>,
        call: &Call,
        own: CallerId,
        budget: TimeBudget,
    ) -> Result<Reply, ExchangeError> {
        let knows_tasks = is_legacy_caller(call, own) && call.context.revision.allows(Feature::CoreTasks);
        Ok(match self.call(call, budget).await? {
            Reply::Complete(result) => {
                Reply::Complete(spoken_here(match knows_tasks && self.offers_tasks() {
                    true => with_core_tasks(&result).unwrap_or(result),
                    false => result,
                }))
            }
            reply => reply,
        })
    }

    /// Whether the server has the extension for tasks.
    fn offers_tasks(&self) -> bool {
        let capabilities = Object::of(&self.server_info.capabilities);
        let extensions = capabilities.and_then(|capabilities| capabilities.object("extensions"));
        extensions.is_some_and(|extensions| extensions.has(tasks_extension()))
    }
}

/// The call with the extension declared, which is how a modern client says that it knows tasks. The parameter by which
/// an older one asks for a task means nothing there.
fn with_tasks(call: &Call) -> Result<Call, Error> {
    let mut call = call.clone();
    let declared = Object::of(call.context.capabilities.as_json()).unwrap_or_else(Object::empty);
    let extensions = declared.object("extensions").unwrap_or_else(Object::empty);
    let extensions = extensions.with(tasks_extension(), &Json::empty_object());
    call.context.capabilities = ClientCapabilities::from_json(declared.with("extensions", &extensions));
    if call.params.has("task") {
        let own = Limits { max_depth: 127, max_bytes: usize::MAX };
        let params = Params::parse(&call.params.without(&["task"]), &own);
        call.params = params.map_err(|_| Error::internal())?;
    }
    Ok(call)
}

/// Whether a server refuses a call because the caller has not said that it knows tasks (SEP-2663, Capability
/// Negotiation).
fn wants_tasks(error: &Error) -> bool {
    error.symbol() == Symbol::MissingCapability
        && error
            .data()
            .and_then(Object::of)
            .and_then(|data| data.object("requiredCapabilities")?.object("extensions"))
            .is_some_and(|needed| needed.len() == 1 && needed.has(tasks_extension()))
}

/// A discovery that offers tasks in the words of 2025-11-25.
fn with_core_tasks(discovery: &Json) -> Option<Json> {
    let discovery = Object::of(discovery)?;
    let all = discovery.object("capabilities")?;
    Some(discovery.with("capabilities", &all.with("tasks", &Json::trusted(CORE_TASKS))))
}

/// A list of tools, each of which may be called as a task: a modern server decides at each call, and what it answers at
/// once is a task that is done.
fn with_support(list: &Json) -> Option<Json> {
    let list = Object::of(list)?;
    let tools = list.json("tools")?.elements()?;
    let marked = tools.into_iter().map(|tool| match Object::of(&tool) {
        Some(object) if !object.has("execution") => {
            object.with("execution", &Json::trusted(r#"{"taskSupport":"optional"}"#))
        }
        _ => tool,
    });
    Some(list.with("tools", &Json::array(&marked.collect::<Vec<_>>())))
}

/// A discovery that promises what Tidegate speaks: all revisions, whatever the server behind it speaks.
fn spoken_here(discovered: Json) -> Json {
    let Some(object) = Object::of(&discovered) else { return discovered };
    let all: Vec<_> = Revision::ALL.iter().rev().map(|r| r.as_str()).collect();
    match Json::of(&all) {
        Ok(all) => object.with("supportedVersions", &all),
        Err(_) => discovered,
    }
}
