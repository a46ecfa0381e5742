//! One `tools/call`, from its parameters to the handler and from the handler's result to the reply.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytestring::ByteString;
use serde_json::{Map, Value};
use tidegate_protocol::{Capability, Error, Feature, Json, Params, Profile, Symbol};
use tidegate_service::events::{self, Event, ToolFailed};
use tidegate_service::{Call, Reply, Tag, tool_failure, unknown_tool};

use super::read::{Misread, whole_numbers};
use super::{TaskSupport, ToolEntry, ToolError, ToolFuture, ToolResult, args};
use crate::cx::Cx;
use crate::dispatch::Started;
use crate::run::{Run, Work};
use crate::server::Core;

/// Everything up to the handler. Whatever can be refused is refused here, without a future.
pub(crate) fn call(core: &Arc<Core>, call: Call) -> Started {
    match prepare(core, call) {
        Ok(started) => started,
        Err(error) => Started::failed(error),
    }
}

fn prepare(core: &Arc<Core>, call: Call) -> Result<Started, Error> {
    let Some(name) = call.params.str("name") else {
        return Err(Error::invalid_params("\"name\" must be a string"));
    };
    let Some(tool) = find(core, &name, &call) else { return unknown(core, &name, &call) };
    if let Err(error) = core.admit(&call) {
        return match error.is_protocol() {
            true => Err(error.into_error()),
            false => Ok(Started::tool_failed(failure(core, &tool, &call, error.error()))),
        };
    }
    let arguments = tool.arguments(&call.params)?;
    if let Some(headers) = &call.context.param_headers {
        tool.headers.check(Some(&arguments), |name| headers.get(name))?;
    }
    let as_task = wants_task(core, &tool, &call)?;
    // What takes longer is checked when the tool runs, away from here.
    let checked = tool.input_check.is_short(&arguments);
    let problems = if checked { tool.input_check.problems(&arguments) } else { Vec::new() };
    if !problems.is_empty() {
        let error = tool.refuse(problems);
        return Ok(Started::tool_failed(failure(core, &tool, &call, &error)));
    }
    tracing::debug!(tool = tool.name, "Tool invocation started");
    tool.executions.fetch_add(1, Ordering::Relaxed);
    let arguments = Arguments { value: arguments, checked };
    let cx = Cx::new(core.clone(), call)?;
    if as_task && !tool.asks_first {
        // In the background from the start: what the handler does until it first waits is not the caller's time.
        return Ok(match crate::tasks::start(cx.clone(), tool.clone(), arguments) {
            Ok(reply) => Started::Ready(reply),
            Err(error) => Started::Failed(finish(&cx, &tool, Err(error.into())).0),
        });
    }
    if as_task {
        cx.allow_detach();
    }
    let future = tool.run(arguments, cx.clone());
    Ok(Started::Running(Run::new(cx, Work::Tool(future, tool))))
}

/// Arguments on their way to the handler.
pub(crate) struct Arguments {
    value: Value,
    /// Whether they fit the schema, which is not known yet of those that take long to check.
    checked: bool,
}

impl ToolEntry {
    /// The handler's future.
    pub(crate) fn run(self: &Arc<Self>, arguments: Arguments, cx: Cx) -> ToolFuture {
        if !arguments.checked {
            return self.check_and_run(arguments.value, cx);
        }
        let value = if self.unit { Value::Null } else { arguments.value };
        (self.handler)(value, cx).unwrap_or_else(|misread| self.run_again(misread))
    }

    #[cold]
    fn check_and_run(self: &Arc<Self>, value: Value, cx: Cx) -> ToolFuture {
        let tool = self.clone();
        Box::pin(async move {
            match tool.input_check.problems_apart(value).await {
                Ok(value) => tool.run(Arguments { value, checked: true }, cx).await,
                Err(problems) => Err(ToolError::from(tool.refuse(problems))),
            }
        })
    }

    /// Makes up for arguments that fit the schema but not the handler's type: numbers such as `1.0` are integers there. If
    /// that does not help, says what is wrong.
    #[cold]
    fn run_again(&self, misread: Misread) -> ToolFuture {
        let read = |cx: &Cx| {
            let mut arguments = self.arguments(&cx.call().params)?;
            whole_numbers(&mut arguments);
            Ok(arguments)
        };
        let error = match read(&misread.cx) {
            Err(error) => error,
            Ok(arguments) => match (self.handler)(arguments.clone(), misread.cx) {
                Ok(future) => return future,
                Err(misread) => match (misread.why)(arguments) {
                    Some(problem) => self.refuse(vec![problem]),
                    None => Error::internal(),
                },
            },
        };
        Box::pin(std::future::ready(Err(ToolError::from(error))))
    }

    /// The arguments as a tree, with the names that the schema has, and without a `null` where that says no more than
    /// leaving it out. No arguments are an empty object.
    fn arguments(&self, params: &Params) -> Result<Value, Error> {
        let (mut arguments, has_null) = arguments(params)?;
        if let Some(names) = &self.spelling {
            names.mend(&mut arguments);
        }
        self.drop_ignored(&mut arguments);
        if let Some(names) = self.optional.as_ref().filter(|_| has_null) {
            names.drop_nulls(&mut arguments);
        }
        Ok(arguments)
    }
}

fn find(core: &Core, name: &str, call: &Call) -> Option<Arc<ToolEntry>> {
    let registry = core.registry.load();
    registry.tool(name).filter(|tool| tool.is_visible(&call.context.principal)).cloned()
}

/// The arguments as they came, and whether there is a `null` in them.
fn arguments(params: &Params) -> Result<(Value, bool), Error> {
    match params.get("arguments") {
        None => Ok((Value::Object(Map::new()), false)),
        Some(text) if !text.starts_with('{') => Err(Error::invalid_params("\"arguments\" must be an object")),
        Some(text) => args::parse_and_look(text)
            .map_err(|fault| Error::invalid_params(format_args!("\"arguments\": {fault}"))),
    }
}

/// Whether this call becomes a task.
fn wants_task(core: &Core, tool: &ToolEntry, call: &Call) -> Result<bool, Error> {
    let context = &call.context;
    if context.revision.is_modern() {
        // SEP-2663: the server decides, for clients that declare the extension; a `task` parameter is ignored.
        let able = context.capabilities.has(Capability::Tasks);
        return match tool.task {
            TaskSupport::Forbidden => Ok(false),
            TaskSupport::Required if !able => Err(Error::missing_capabilities(&[Capability::Tasks])),
            _ => Ok(able),
        };
    }
    // 2025-11-25 basic/utilities/tasks, Tool-Level Negotiation: the client decides, with a `task` parameter.
    let asked = context.revision.allows(Feature::CoreTasks) && call.params.has("task");
    match tool.task {
        // A server without any tasks knows nothing of the parameter and ignores it.
        TaskSupport::Forbidden if asked && core.kinds().tasks => Err(Error::new(
            Symbol::MethodNotFound,
            format!("Tool {} cannot run as a task: call it without \"task\"", tool.name),
        )),
        // Older revisions cannot say it, so the edge or the caller simply waits.
        TaskSupport::Required if !asked && context.revision.allows(Feature::CoreTasks) => Err(Error::new(
            Symbol::MethodNotFound,
            format!("Tool {} runs only as a task: call it with \"task\"", tool.name),
        )),
        TaskSupport::Forbidden => Ok(false),
        _ => Ok(asked),
    }
}

/// An unknown tool, with the names that the caller may have meant.
fn unknown(core: &Core, name: &str, call: &Call) -> Result<Started, Error> {
    let registry = core.registry.load();
    let known = registry.tools().filter(|tool| tool.is_visible(&call.context.principal));
    let error = unknown_tool(name, known.map(|tool| tool.name.as_str()));
    if core.settings.profile == Profile::Gbif {
        // What that server's clients know: a result, as for any other failure.
        let tag = Tag { profile: Profile::Gbif, ..Tag::of(call) };
        let name = super::problem::shorten(name.to_owned());
        return Ok(Started::tool_failed(tool_failure(&error, &name, &tag, true)));
    }
    Err(error)
}

/// What the handler returned, as the caller sees it, and whether it counts as a success.
pub(crate) fn finish(cx: &Cx, tool: &ToolEntry, outcome: Result<ToolResult, ToolError>) -> (Reply, bool) {
    let core = cx.core();
    match outcome {
        Ok(result) => {
            if (cfg!(debug_assertions) || core.settings.validate_output)
                && !result.is_error
                && let Err(problem) = tool.check_output(&result)
            {
                tracing::error!(tool = tool.name, problem, "a tool's result does not fit its output schema");
                return (Reply::Error(Error::internal()), false);
            }
            tracing::debug!(tool = tool.name, failed = result.is_error, "Tool invocation completed");
            let info = cx.revision().is_modern().then_some(core.info.meta_entry());
            (Reply::Complete(result.write(info)), !result.is_error)
        }
        Err(error) if error.is_protocol() => {
            tracing::debug!(tool = tool.name, error = error.message(), "a tool refused the call");
            (Reply::Error(error.into_error()), false)
        }
        Err(error) => {
            events::emit(&Event::ToolFailed(ToolFailed { tool: &tool.name, error: error.message() }));
            (Reply::Complete(failure(core, tool, cx.call(), error.error())), false)
        }
    }
}

fn failure(core: &Core, tool: &ToolEntry, call: &Call, error: &Error) -> Json {
    let context = &call.context;
    let tag = Tag {
        tool: Some(ByteString::from(tool.name.as_str())),
        revision: context.revision,
        correlation: context.correlation,
        profile: core.settings.profile,
    };
    tool_failure(error, &tool.name, &tag, !tool.has_output_schema())
}
