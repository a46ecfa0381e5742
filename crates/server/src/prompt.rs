//! Prompts: templates for conversations, with arguments.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::{Map, Value};
use tidegate_protocol::content::{Icon, PromptMessage, Role};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json};
use tidegate_service::{Call, Reply, unknown_prompt};

use crate::complete::{Completer, Completing, IntoCompletions, completer, strings};
use crate::cx::Cx;
use crate::dispatch::Started;
use crate::run::{Run, Work};
use crate::server::Core;
use crate::tool::{ToolError, write_meta};

/// A filled-in prompt, in full. Most handlers just return messages.
#[derive(Debug, Clone, Default)]
pub struct PromptResult {
    messages: Vec<PromptMessage>,
    description: Option<String>,
    meta: Option<Map<String, Value>>,
}

impl PromptResult {
    /// A prompt of these messages.
    pub fn new(messages: Vec<PromptMessage>) -> PromptResult {
        PromptResult { messages, ..PromptResult::default() }
    }

    /// What the prompt is.
    pub fn description(mut self, description: impl Into<String>) -> PromptResult {
        self.description = Some(description.into());
        self
    }

    /// One member of `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> PromptResult {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    fn write(&self, server_info: Option<&str>, description: Option<&str>) -> Json {
        let mut w = ObjectWriter::with_capacity(512);
        if server_info.is_some() {
            w.str("resultType", "complete");
        }
        if let Some(description) = self.description.as_deref().or(description) {
            w.str("description", description);
        }
        w.with("messages", |out| {
            out.push(b'[');
            for (i, message) in self.messages.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                out.extend_from_slice(match message.role {
                    Role::User => b"{\"role\":\"user\",\"content\":",
                    Role::Assistant => b"{\"role\":\"assistant\",\"content\":",
                });
                message.content.write(out);
                out.push(b'}');
            }
            out.push(b']');
        });
        write_meta(&mut w, self.meta.as_ref(), server_info);
        w.finish()
    }
}

/// What a prompt's handler may return.
pub trait IntoPromptResult {
    /// The prompt.
    fn into_prompt_result(self) -> PromptResult;
}

impl IntoPromptResult for PromptResult {
    fn into_prompt_result(self) -> PromptResult {
        self
    }
}

impl IntoPromptResult for Vec<PromptMessage> {
    fn into_prompt_result(self) -> PromptResult {
        PromptResult::new(self)
    }
}

impl IntoPromptResult for PromptMessage {
    fn into_prompt_result(self) -> PromptResult {
        PromptResult::new(vec![self])
    }
}

impl IntoPromptResult for String {
    fn into_prompt_result(self) -> PromptResult {
        PromptMessage::user(self).into_prompt_result()
    }
}

impl IntoPromptResult for &'static str {
    fn into_prompt_result(self) -> PromptResult {
        PromptMessage::user(self).into_prompt_result()
    }
}

/// The arguments that a prompt is filled in with.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PromptArgs(BTreeMap<String, String>);

impl PromptArgs {
    /// An argument. Required ones are always there.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// All arguments.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

impl std::ops::Index<&str> for PromptArgs {
    type Output = str;

    /// The argument, or an empty text if it was not given.
    fn index(&self, name: &str) -> &str {
        self.get(name).unwrap_or_default()
    }
}

/// One argument of a prompt.
pub struct Argument {
    name: String,
    title: Option<String>,
    description: Option<String>,
    required: bool,
    pub(crate) complete: Option<Completer>,
}

impl Argument {
    /// An argument that may be left out.
    pub fn new(name: impl Into<String>) -> Argument {
        Argument { name: name.into(), title: None, description: None, required: false, complete: None }
    }

    /// Must be given.
    pub fn required(mut self) -> Argument {
        self.required = true;
        self
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Argument {
        self.title = Some(title.into());
        self
    }

    /// What it is.
    pub fn description(mut self, description: impl Into<String>) -> Argument {
        self.description = Some(description.into());
        self
    }

    /// Completes its values.
    pub fn complete<F, Fut>(mut self, complete: F) -> Argument
    where
        F: Fn(Completing, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: IntoCompletions> + Send + 'static,
    {
        self.complete = Some(completer(complete));
        self
    }
}

impl std::fmt::Debug for Argument {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Argument").field("name", &self.name).finish_non_exhaustive()
    }
}

type Filled = BoxFuture<'static, Result<PromptResult, ToolError>>;
type Handler = Box<dyn Fn(PromptArgs, Cx) -> Filled + Send + Sync>;

/// A prompt: a name, arguments, and the handler that fills it in.
///
/// ```
/// use tidegate_server::{Argument, Completing, Cx, Prompt, PromptArgs, PromptMessage};
///
/// let greet = Prompt::new("greet")
///     .description("Greets somebody")
///     .argument(Argument::new("name").required().complete(|typed: Completing, _cx: Cx| async move {
///         typed.filter(["ann", "bob"])
///     }))
///     .handler(|args: PromptArgs, _cx: Cx| async move {
///         Ok(vec![PromptMessage::user(format!("Greet {}.", &args["name"]))])
///     });
/// ```
pub struct Prompt {
    pub(crate) name: String,
    title: Option<String>,
    description: Option<String>,
    icons: Vec<Icon>,
    meta: Option<Map<String, Value>>,
    arguments: Vec<Argument>,
    handler: Option<Handler>,
}

impl Prompt {
    /// A prompt that needs a handler.
    pub fn new(name: impl Into<String>) -> Prompt {
        Prompt {
            name: name.into(),
            title: None,
            description: None,
            icons: Vec::new(),
            meta: None,
            arguments: Vec::new(),
            handler: None,
        }
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> Prompt {
        self.title = Some(title.into());
        self
    }

    /// What it is for.
    pub fn description(mut self, description: impl Into<String>) -> Prompt {
        self.description = Some(description.into());
        self
    }

    /// An icon.
    pub fn icon(mut self, icon: Icon) -> Prompt {
        self.icons.push(icon);
        self
    }

    /// One member of the definition's `_meta`.
    pub fn meta(mut self, key: impl Into<String>, value: impl Into<Value>) -> Prompt {
        self.meta.get_or_insert_default().insert(key.into(), value.into());
        self
    }

    /// One more argument.
    pub fn argument(mut self, argument: Argument) -> Prompt {
        self.arguments.push(argument);
        self
    }

    /// Fills the prompt in.
    pub fn handler<F, Fut, R>(mut self, handler: F) -> Prompt
    where
        F: Fn(PromptArgs, Cx) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<R, ToolError>> + Send + 'static,
        R: IntoPromptResult,
    {
        self.handler = Some(Box::new(move |args, cx| {
            let future = handler(args, cx);
            Box::pin(async move { future.await.map(R::into_prompt_result) })
        }));
        self
    }

    pub(crate) fn compile(self) -> Result<PromptEntry, String> {
        let mut w = ObjectWriter::with_capacity(256);
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
        if !self.arguments.is_empty() {
            let arguments: Vec<Json> = self.arguments.iter().map(argument_definition).collect();
            w.value("arguments", &arguments);
        }
        if let Some(meta) = &self.meta {
            w.value("_meta", meta);
        }
        for (i, argument) in self.arguments.iter().enumerate() {
            if self.arguments[..i].iter().any(|other| other.name == argument.name) {
                return Err(format!("it has two arguments named {:?}", argument.name));
            }
        }
        Ok(PromptEntry {
            definition: w.finish(),
            description: self.description,
            arguments: self.arguments,
            handler: self.handler.ok_or("it has no handler")?,
        })
    }
}

impl std::fmt::Debug for Prompt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Prompt").field("name", &self.name).finish_non_exhaustive()
    }
}

fn argument_definition(argument: &Argument) -> Json {
    let mut w = ObjectWriter::new();
    w.str("name", &argument.name);
    if let Some(title) = &argument.title {
        w.str("title", title);
    }
    if let Some(description) = &argument.description {
        w.str("description", description);
    }
    if argument.required {
        w.raw("required", "true");
    }
    w.finish()
}

/// A prompt as the running server holds it.
pub(crate) struct PromptEntry {
    pub(crate) definition: Json,
    description: Option<String>,
    arguments: Vec<Argument>,
    handler: Handler,
}

impl PromptEntry {
    pub(crate) fn argument(&self, name: &str) -> Option<&Argument> {
        self.arguments.iter().find(|argument| argument.name == name)
    }

    pub(crate) fn completes(&self) -> bool {
        self.arguments.iter().any(|argument| argument.complete.is_some())
    }
}

/// `prompts/get`.
pub(crate) fn get(core: &Arc<Core>, call: Call) -> Started {
    prepare(core, call).unwrap_or_else(Started::failed)
}

fn prepare(core: &Arc<Core>, call: Call) -> Result<Started, Error> {
    let Some(name) = call.params.str("name") else {
        return Err(Error::invalid_params("\"name\" must be a string"));
    };
    let registry = core.registry.load();
    let prompt = registry
        .prompts
        .get(&name)
        .cloned()
        .ok_or_else(|| unknown_prompt(&name, registry.prompts.names()))?;
    let args = match call.params.get("arguments") {
        None => BTreeMap::new(),
        Some(text) => strings(text).ok_or_else(|| {
            Error::invalid_params("\"arguments\" must be an object whose values are strings")
        })?,
    };
    let missing: Vec<&str> = prompt
        .arguments
        .iter()
        .filter(|argument| argument.required && !args.contains_key(&argument.name))
        .map(|argument| argument.name.as_str())
        .collect();
    if !missing.is_empty() {
        return Err(Error::invalid_params(format_args!("missing required argument: {}", missing.join(", "))));
    }
    let cx = Cx::new(core.clone(), call)?;
    let filled = (prompt.handler)(PromptArgs(args), cx.clone());
    let run = cx.clone();
    let work = async move {
        let result = filled.await?;
        let info = cx.revision().is_modern().then_some(cx.core().info.meta_entry());
        Ok(Reply::Complete(result.write(info, prompt.description.as_deref())))
    };
    Ok(Started::Running(Run::new(run, Work::Other(Box::pin(work)))))
}
