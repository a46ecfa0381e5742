//! [`ToolEntry`]: a tool as the running server holds it, checked, compiled and written once.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use serde_json::Value;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::param_headers::HeaderParams;
use tidegate_protocol::{Error, Feature, Json, Object, Revision, Symbol};
use tidegate_service::Principal;
use tidegate_service::schema::portable;

use super::names::{Names, common};
use super::problem::{Problem, unknown};
use super::schema::{self, Compiled};
use super::{Handler, TaskSupport, Tool, ToolResult, Visible};

/// A tool as the running server holds it.
pub(crate) struct ToolEntry {
    pub(crate) name: String,
    /// The definition as it stands in a list.
    definition: Json,
    /// The definition for 2025-11-25, where it says more.
    with_execution: Option<Json>,
    /// How its arguments are spelled, if they may be spelled in another way.
    pub(super) spelling: Option<Arc<Names>>,
    /// Which of its arguments can be left out, if `null` is as good as that.
    pub(super) optional: Option<Arc<Names>>,
    pub(super) input_check: Compiled,
    /// The names of its arguments.
    known: Vec<String>,
    /// Arguments that are not among them, and that are dropped instead of being refused.
    ignored: Vec<String>,
    output_check: Option<Compiled>,
    pub(super) headers: HeaderParams,
    pub(super) handler: Handler,
    pub(super) unit: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) task: TaskSupport,
    pub(super) asks_first: bool,
    visible: Option<Visible>,
    /// Whether it stands in the list.
    pub(crate) listed: bool,
    pub(super) executions: Arc<AtomicU64>,
}

impl ToolEntry {
    pub(crate) fn is_visible(&self, principal: &Principal) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(principal))
    }

    /// Whether everybody sees the tool.
    pub(crate) fn is_public(&self) -> bool {
        self.visible.is_none()
    }

    pub(crate) fn definition(&self, revision: Revision) -> &Json {
        match &self.with_execution {
            Some(definition) if revision.allows(Feature::CoreTasks) => definition,
            _ => &self.definition,
        }
    }

    /// Drops the arguments that are ignored.
    pub(super) fn drop_ignored(&self, arguments: &mut Value) {
        if let Some(members) = arguments.as_object_mut().filter(|_| !self.ignored.is_empty()) {
            let any_case = self.spelling.is_some();
            let is_ignored = |name: &str| {
                self.ignored.iter().any(|one| one == name || any_case && common(one) == common(name))
            };
            members.retain(|name, _| self.known.contains(name) || !is_ignored(name));
        }
    }

    /// The error for arguments that do not fit.
    pub(super) fn refuse(&self, problems: Vec<Problem>) -> Error {
        let explained = |problem: Problem| match problem.is_unknown_argument() {
            true => unknown(&problem.field, &self.known),
            false => problem,
        };
        invalid_arguments(&self.name, &problems.into_iter().map(explained).collect::<Vec<_>>())
    }

    /// Whether a result must be told as text only when it is a failure: a tool with an output schema must not put
    /// anything else into its structured content.
    pub(crate) fn has_output_schema(&self) -> bool {
        self.output_check.is_some()
    }

    /// Checks structured content against the output schema, unless that would take long; the sentence is for the log.
    pub(super) fn check_output(&self, result: &ToolResult) -> Result<(), String> {
        let Some(check) = &self.output_check else { return Ok(()) };
        let Some(structured) = &result.structured else {
            return Err("there is an output schema but no structured content".into());
        };
        let value: Value = structured.to().map_err(|e| e.to_string())?;
        if !check.is_short(&value) {
            // It is the author's own value, and others are waiting for this thread.
            return Ok(());
        }
        let problems = check.problems(&value);
        if problems.is_empty() { Ok(()) } else { Err(sentence(&problems)) }
    }
}

impl Tool {
    /// Checks and compiles everything once, so that a call has little left to do.
    pub(crate) fn compile(self, executions: Arc<AtomicU64>) -> Result<ToolEntry, String> {
        let Some(handler) = self.handler else { return Err("it has no handler".into()) };
        let mut input = self.input.ok_or("it has no input schema")?;
        schema::object_root(&mut input)?;
        let headers = HeaderParams::from_schema(&input)?;
        let input_check = Compiled::new(&input).map_err(|e| format!("input: {e}"))?;
        let names = if self.any_case || self.derived { Names::of(&input).map(Arc::new) } else { None };
        let known: Vec<String> =
            input["properties"].as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
        // What the author wrote is listed as it is.
        let listed = if self.derived { portable(&input) } else { input };
        let output_check = match &self.output {
            Some(output) => Some(Compiled::new(output).map_err(|e| format!("output: {e}"))?),
            None => None,
        };

        let mut w = ObjectWriter::with_capacity(512);
        w.str("name", &self.name);
        if let Some(title) = &self.title {
            w.str("title", title);
        }
        if let Some(description) = &self.description {
            w.str("description", description);
        }
        if !self.icons.is_empty() {
            w.value("icons", &self.icons);
        }
        w.value("inputSchema", &listed);
        if let Some(output) = &self.output {
            w.value("outputSchema", output);
        }
        if !self.annotations.is_empty() {
            w.value("annotations", &self.annotations);
        }
        if let Some(meta) = &self.meta {
            w.value("_meta", meta);
        }
        let definition = w.finish();
        // 2025-11-25 server/tools: `execution.taskSupport`. Later revisions leave it to the extension.
        let with_execution = (self.task != TaskSupport::Forbidden).then(|| {
            let mut execution = ObjectWriter::new();
            execution.str("taskSupport", self.task.as_str());
            Object::of(&definition)
                .map_or(definition.clone(), |object| object.with("execution", &execution.finish()))
        });
        Ok(ToolEntry {
            name: self.name,
            definition,
            with_execution,
            spelling: names.clone().filter(|_| self.any_case),
            optional: names.filter(|_| self.derived),
            input_check,
            known,
            ignored: self.ignored,
            output_check,
            headers,
            handler,
            unit: self.unit,
            timeout: self.timeout,
            task: self.task,
            asks_first: self.asks_first,
            visible: self.visible,
            listed: self.listed,
            executions,
        })
    }
}

/// Several problems in one sentence.
pub(crate) fn sentence(problems: &[Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn invalid_arguments(tool: &str, problems: &[Problem]) -> Error {
    let data: Vec<_> =
        problems.iter().map(|p| serde_json::json!({"field": p.field, "reason": p.reason})).collect();
    Error::new(Symbol::Validation, format!("Invalid arguments for {tool}: {}", sentence(problems)))
        .with_data(Json::from(Value::Array(data)))
}
