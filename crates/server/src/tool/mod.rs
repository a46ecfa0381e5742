//! Tools: how they are described, and what is made of the description when the server is built.

pub(crate) mod args;
mod call;
mod error;
mod result;
pub(crate) mod schema;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tidegate_protocol::content::Icon;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::param_headers::HeaderParams;
use tidegate_protocol::{Error, Json, Symbol};
use tidegate_service::Principal;

pub(crate) use call::{call, finish};
pub use error::ToolError;
pub(crate) use result::write_meta;
pub use result::{IntoToolResult, Structured, ToolResult};

use crate::cx::Cx;
use schema::Compiled;

pub(crate) type ToolFuture = BoxFuture<'static, Result<ToolResult, ToolError>>;
type Handler = Box<dyn Fn(Value, Cx) -> ToolFuture + Send + Sync>;
type Visible = Box<dyn Fn(&Principal) -> bool + Send + Sync>;

/// Whether a tool can or must run as a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum TaskSupport {
    /// Never as a task.
    #[default]
    Forbidden,
    /// As a task for clients that know tasks, else at once.
    Optional,
    /// Only as a task.
    Required,
}

impl TaskSupport {
    fn as_str(self) -> &'static str {
        match self {
            TaskSupport::Forbidden => "forbidden",
            TaskSupport::Optional => "optional",
            TaskSupport::Required => "required",
        }
    }
}

/// A tool: a name, a description, schemas, and the handler that does the work.
///
/// Arguments are a Rust type; its schema is what clients see, and arguments are checked against it before the handler
/// runs. What a handler may return is the business of [`IntoToolResult`].
///
/// ```
/// use tidegate_server::{Cx, Structured, Tool, ToolError, schemars};
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Divide {
///     /// The dividend.
///     a: f64,
///     /// The divisor.
///     b: f64,
/// }
///
/// #[derive(serde::Serialize, schemars::JsonSchema)]
/// struct Quotient {
///     quotient: f64,
/// }
///
/// let divide = Tool::new("divide").description("Divides a by b").read_only().handler(
///     |args: Divide, _cx: Cx| async move {
///         if args.b == 0.0 {
///             return Err(ToolError::from("b must not be 0"));
///         }
///         Ok(Structured(Quotient { quotient: args.a / args.b }))
///     },
/// );
/// ```
pub struct Tool {
    pub(crate) name: String,
    title: Option<String>,
    description: Option<String>,
    icons: Vec<Icon>,
    annotations: Map<String, Value>,
    meta: Option<Map<String, Value>>,
    input: Option<Value>,
    output: Option<Value>,
    pub(crate) aliases: Vec<String>,
    timeout: Option<Duration>,
    task: TaskSupport,
    asks_first: bool,
    visible: Option<Visible>,
    handler: Option<Handler>,
    /// The arguments are `()`, which is read from `null` rather than from an object.
    unit: bool,
}

impl Tool {
    /// A tool whose schemas come from the types of its handler.
    pub fn new(name: impl Into<String>) -> Tool {
        Tool {
            name: name.into(),
            title: None,
            description: None,
            icons: Vec::new(),
            annotations: Map::new(),
            meta: None,
            input: None,
            output: None,
            aliases: Vec::new(),
            timeout: None,
            task: TaskSupport::Forbidden,
            asks_first: false,
            visible: None,
            handler: None,
            unit: false,
        }
    }

    /// A tool with a hand-written input schema, for [`Tool::handler_raw`].
    pub fn raw(name: impl Into<String>, input_schema: Value) -> Tool {
        Tool::new(name).input_schema(input_schema)
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Tool {
        self.title = Some(title.into());
        self
    }

    /// What the tool does, for the model.
    pub fn description(mut self, description: impl Into<String>) -> Tool {
        self.description = Some(description.into());
        self
    }

    /// An icon.
    pub fn icon(mut self, icon: Icon) -> Tool {
        self.icons.push(icon);
        self
    }

    fn hint(mut self, name: &str, value: bool) -> Tool {
        self.annotations.insert(name.into(), value.into());
        self
    }

    /// Hints that the tool changes nothing.
    pub fn read_only(self) -> Tool {
        self.hint("readOnlyHint", true)
    }

    /// Hints whether the tool may destroy something.
    pub fn destructive(self, destructive: bool) -> Tool {
        self.hint("destructiveHint", destructive)
    }

    /// Hints that calling it again with the same arguments changes nothing more.
    pub fn idempotent(self) -> Tool {
        self.hint("idempotentHint", true)
    }

    /// Hints whether the tool reaches into an open world, such as the web.
    pub fn open_world(self, open: bool) -> Tool {
        self.hint("openWorldHint", open)
    }

    /// One annotation by its name on the wire.
    pub fn annotation(mut self, name: impl Into<String>, value: impl Into<Value>) -> Tool {
        self.annotations.insert(name.into(), value.into());
        self
    }

    /// One member of the definition's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Tool {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// An input schema instead of the one that the handler's type gives.
    pub fn input_schema(mut self, schema: Value) -> Tool {
        self.input = Some(schema);
        self
    }

    /// An output schema instead of the one that the handler's type gives.
    pub fn output_schema(mut self, schema: Value) -> Tool {
        self.output = Some(schema);
        self
    }

    /// An older name under which the tool can still be called. It is not listed.
    pub fn alias(mut self, name: impl Into<String>) -> Tool {
        self.aliases.push(name.into());
        self
    }

    /// How long one call may take. What takes longer is stopped, and the caller told so.
    pub fn timeout(mut self, timeout: Duration) -> Tool {
        self.timeout = Some(timeout);
        self
    }

    /// Whether the tool can or must run as a task.
    ///
    /// The task is created at once and the handler runs in the background; questions it asks make the task wait for
    /// input. See [`Tool::asks_first`] for the other order.
    pub fn task(mut self, support: TaskSupport) -> Tool {
        self.task = support;
        self
    }

    /// The handler asks its questions before there is a task: it runs as an ordinary call until it awaits
    /// [`Cx::detach`], and only what follows runs as a task.
    pub fn asks_first(mut self) -> Tool {
        self.asks_first = true;
        self
    }

    /// Who can see the tool. For everybody else it does not exist.
    pub fn visible(mut self, visible: impl Fn(&Principal) -> bool + Send + Sync + 'static) -> Tool {
        self.visible = Some(Box::new(visible));
        self
    }

    /// The handler, with arguments of type `A`.
    ///
    /// `A` is an object type; `()` stands for no arguments.
    pub fn handler<A, F, Fut>(mut self, handler: F) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        F: Fn(A, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolResult> + Send + 'static,
    {
        let input = schema::input_of::<A>();
        self.unit = input.get("type").and_then(Value::as_str) == Some("null");
        if self.input.is_none() {
            self.input = Some(if self.unit { schema::no_arguments() } else { input });
        }
        self.take_handler::<Fut>(move |args, cx| match serde_json::from_value::<A>(args) {
            Ok(args) => {
                let future = handler(args, cx);
                Box::pin(async move { future.await.into_tool_result() })
            }
            Err(error) => {
                let error = ToolError::new(Symbol::Validation, schema::shorten(format!("Invalid arguments: {error}")));
                Box::pin(std::future::ready(Err(error)))
            }
        })
    }

    /// The handler, with arguments as they are. They were checked against the input schema.
    pub fn handler_raw<F, Fut>(self, handler: F) -> Tool
    where
        F: Fn(Value, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoToolResult> + Send + 'static,
    {
        self.take_handler::<Fut>(move |args, cx| {
            let future = handler(args, cx);
            Box::pin(async move { future.await.into_tool_result() })
        })
    }

    fn take_handler<Fut>(mut self, handler: impl Fn(Value, Cx) -> ToolFuture + Send + Sync + 'static) -> Tool
    where
        Fut: Future<Output: IntoToolResult>,
    {
        self.output = self.output.or_else(<Fut::Output as IntoToolResult>::output_schema);
        self.handler = Some(Box::new(handler));
        self
    }

    /// Checks and compiles everything once, so that a call has little left to do.
    pub(crate) fn compile(self, executions: Arc<AtomicU64>) -> Result<ToolEntry, String> {
        let Some(handler) = self.handler else { return Err("it has no handler".into()) };
        let mut input = self.input.ok_or("it has no input schema")?;
        schema::object_root(&mut input)?;
        let headers = HeaderParams::from_schema(&input)?;
        let input_check = Compiled::new(&input).map_err(|e| format!("input: {e}"))?;
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
        w.value("inputSchema", &input);
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
            tidegate_protocol::Object::of(&definition)
                .map_or(definition.clone(), |object| object.with("execution", &execution.finish()))
        });
        Ok(ToolEntry {
            name: self.name,
            definition,
            with_execution,
            input_check,
            output_check,
            headers,
            handler,
            unit: self.unit,
            timeout: self.timeout,
            task: self.task,
            asks_first: self.asks_first,
            visible: self.visible,
            executions,
        })
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A tool as the running server holds it.
pub(crate) struct ToolEntry {
    pub(crate) name: String,
    /// The definition as it stands in a list.
    definition: Json,
    /// The definition for 2025-11-25, where it says more.
    with_execution: Option<Json>,
    input_check: Compiled,
    output_check: Option<Compiled>,
    headers: HeaderParams,
    handler: Handler,
    unit: bool,
    pub(crate) timeout: Option<Duration>,
    pub(crate) task: TaskSupport,
    asks_first: bool,
    visible: Option<Visible>,
    executions: Arc<AtomicU64>,
}

impl ToolEntry {
    pub(crate) fn is_visible(&self, principal: &Principal) -> bool {
        self.visible.as_ref().is_none_or(|visible| visible(principal))
    }

    /// Whether everybody sees the tool.
    pub(crate) fn is_public(&self) -> bool {
        self.visible.is_none()
    }

    pub(crate) fn definition(&self, revision: tidegate_protocol::Revision) -> &Json {
        match &self.with_execution {
            Some(definition) if revision.allows(tidegate_protocol::Feature::CoreTasks) => definition,
            _ => &self.definition,
        }
    }

    /// Whether a result must be told as text only when it is a failure: a tool with an output schema must not put
    /// anything else into its structured content.
    pub(crate) fn has_output_schema(&self) -> bool {
        self.output_check.is_some()
    }

    /// Checks structured content against the output schema; the sentence is for the log.
    fn check_output(&self, result: &ToolResult) -> Result<(), String> {
        let Some(check) = &self.output_check else { return Ok(()) };
        let Some(structured) = &result.structured else {
            return Err("there is an output schema but no structured content".into());
        };
        let value: Value = structured.to().map_err(|e| e.to_string())?;
        let problems = check.problems(&value);
        if problems.is_empty() { Ok(()) } else { Err(sentence(&problems)) }
    }
}

/// Several problems in one sentence.
pub(crate) fn sentence(problems: &[schema::Problem]) -> String {
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

/// The error for arguments that do not fit.
fn invalid_arguments(tool: &str, problems: &[schema::Problem]) -> Error {
    let data: Vec<_> =
        problems.iter().map(|p| serde_json::json!({"field": p.field, "reason": p.reason})).collect();
    Error::new(Symbol::Validation, format!("Invalid arguments for {tool}: {}", sentence(problems)))
        .with_data(Json::from(Value::Array(data)))
}
