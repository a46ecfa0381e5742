//! Tools: how they are described, and what is made of the description when the server is built.

pub(crate) mod args;
mod call;
mod entry;
mod error;
mod names;
pub(crate) mod problem;
pub(crate) mod read;
mod result;
pub mod returned;
pub(crate) mod schema;

use std::future::Future;
use std::time::Duration;

use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use tidegate_protocol::content::Icon;
use tidegate_service::Principal;

pub(crate) use call::{Arguments, call, finish};
pub(crate) use entry::{ToolEntry, sentence};
pub use error::ToolError;
pub use read::read_value;
pub(crate) use result::write_meta;
pub use result::{IntoToolResult, Structured, ToolResult};

use self::read::Misread;
use crate::cx::Cx;

pub(crate) type ToolFuture = BoxFuture<'static, Result<ToolResult, ToolError>>;
type Handler = Box<dyn Fn(Value, Cx) -> Result<ToolFuture, Misread> + Send + Sync>;
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
/// Arguments are a Rust type, and arguments are checked against its schema before the handler runs. Clients see that
/// schema in words that every one of them understands ([`portable`](tidegate_service::schema::portable)): an `Option<T>` is
/// a `T` that can be left out, and a `null` there counts as left out, whichever way the member is optional. What a handler
/// may return is the business of [`IntoToolResult`].
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
    /// Whether the input schema is that of the handler's type: what is listed may then be in other words.
    derived: bool,
    output: Option<Value>,
    pub(crate) aliases: Vec<String>,
    timeout: Option<Duration>,
    task: TaskSupport,
    asks_first: bool,
    visible: Option<Visible>,
    listed: bool,
    any_case: bool,
    pub(crate) ignored: Vec<String>,
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
            derived: false,
            output: None,
            aliases: Vec::new(),
            timeout: None,
            task: TaskSupport::Forbidden,
            asks_first: false,
            visible: None,
            listed: true,
            any_case: false,
            ignored: Vec::new(),
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

    /// An input schema instead of the one that the handler's type gives. It is listed as it is.
    pub fn input_schema(mut self, schema: Value) -> Tool {
        self.input = Some(schema);
        self.derived = false;
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

    /// Leaves the tool out of the list: a model pays for every tool that it is told of. Who knows it can call it.
    pub fn unlisted(mut self) -> Tool {
        self.listed = false;
        self
    }

    /// Takes arguments in any spelling: `entity_name` for a member that the schema calls `entityName`, and the other way
    /// round. Models mix them up.
    ///
    /// Only names that the schema does not have are understood so, at the top and in the objects and lists within. Where
    /// the schema allows members of any name, those are data and stay as they are.
    ///
    /// ```
    /// use tidegate_server::{Cx, Tool, schemars};
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// #[serde(rename_all = "camelCase")]
    /// struct Look {
    ///     entity_name: String,
    /// }
    ///
    /// // Takes {"entityName": "Ann"}, which the schema shows, and {"entity_name": "Ann"}.
    /// let look = Tool::new("look").any_case().handler(|args: Look, _cx: Cx| async move { args.entity_name });
    /// ```
    pub fn any_case(mut self) -> Tool {
        self.any_case = true;
        self
    }

    /// An argument that some clients send and that means nothing here. It is dropped before arguments are checked, unless
    /// the schema names it, and is not listed. Without this, a schema with `additionalProperties: false` refuses it.
    pub fn ignores(mut self, argument: impl Into<String>) -> Tool {
        self.ignored.push(argument.into());
        self
    }

    pub(crate) fn list(&mut self, listed: bool) {
        self.listed = listed;
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
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
            self.derived = true;
        }
        self.take_handler::<Fut>(move |args, cx| match serde_json::from_value::<A>(args) {
            Ok(args) => {
                let future = handler(args, cx);
                Ok(Box::pin(async move { future.await.into_tool_result() }))
            }
            Err(_) => Err(Misread { cx, why: read::why::<A> }),
        })
    }

    /// The handler, whose value is told as structured content with the schema of its type, and as text for clients that read
    /// only text. With [`handler`](Tool::handler) that is a value in [`Structured`].
    ///
    /// ```
    /// use tidegate_server::{Cx, Tool, ToolError, schemars};
    ///
    /// #[derive(serde::Serialize, schemars::JsonSchema)]
    /// struct Tide {
    ///     /// Metres above chart datum
    ///     height: f64,
    /// }
    ///
    /// let tide = Tool::new("tide").handler_structured(|_: (), _cx: Cx| async move {
    ///     Ok::<_, ToolError>(Tide { height: 2.5 })
    /// });
    /// ```
    pub fn handler_structured<A, T, E, F, Fut>(self, handler: F) -> Tool
    where
        A: DeserializeOwned + JsonSchema + Send + 'static,
        T: Serialize + JsonSchema,
        E: Into<ToolError>,
        F: Fn(A, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<T, E>> + Send + 'static,
    {
        self.handler(move |args: A, cx| {
            let value = handler(args, cx);
            async move { value.await.map(Structured) }
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
            Ok(Box::pin(async move { future.await.into_tool_result() }))
        })
    }

    fn take_handler<Fut>(
        mut self,
        handler: impl Fn(Value, Cx) -> Result<ToolFuture, Misread> + Send + Sync + 'static,
    ) -> Tool
    where
        Fut: Future<Output: IntoToolResult>,
    {
        self.output = self.output.or_else(<Fut::Output as IntoToolResult>::output_schema);
        self.handler = Some(Box::new(handler));
        self
    }
}

impl std::fmt::Debug for Tool {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tool").field("name", &self.name).finish_non_exhaustive()
    }
}
