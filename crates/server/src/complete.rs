//! Completion of prompt arguments and template variables.

use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;

use futures_util::future::BoxFuture;
use serde_json::Value;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::{Call, Reply};

use crate::cx::Cx;
use crate::dispatch::Started;
use crate::run::{Run, Work};
use crate::server::Core;
use crate::tool::{args, write_meta};

/// 2026-07-28 server/utilities/completion: at most 100 values in one answer.
const MAX_VALUES: usize = 100;

/// What is being completed.
#[derive(Debug, Clone, Default)]
pub struct Completing {
    /// What was typed so far.
    pub value: String,
    /// The arguments that are settled already.
    pub arguments: BTreeMap<String, String>,
}

impl Completing {
    /// Those candidates that start with what was typed, whatever their case.
    pub fn filter<S: Into<String>>(&self, candidates: impl IntoIterator<Item = S>) -> Vec<String> {
        let typed = self.value.to_lowercase();
        candidates.into_iter().map(Into::into).filter(|c| c.to_lowercase().starts_with(&typed)).collect()
    }
}

/// Suggestions, best first.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Completions {
    /// The suggestions. Only the first hundred are sent.
    pub values: Vec<String>,
    /// How many there are in all, if that is known and more than `values`.
    pub total: Option<usize>,
}

/// What a completer may return.
pub trait IntoCompletions {
    /// The suggestions.
    fn into_completions(self) -> Completions;
}

impl IntoCompletions for Completions {
    fn into_completions(self) -> Completions {
        self
    }
}

impl<S: Into<String>> IntoCompletions for Vec<S> {
    fn into_completions(self) -> Completions {
        Completions { values: self.into_iter().map(Into::into).collect(), total: None }
    }
}

pub(crate) type Completer = Box<dyn Fn(Completing, Cx) -> BoxFuture<'static, Completions> + Send + Sync>;

pub(crate) fn completer<F, Fut>(complete: F) -> Completer
where
    F: Fn(Completing, Cx) -> Fut + Send + Sync + 'static,
    Fut: Future<Output: IntoCompletions> + Send + 'static,
{
    Box::new(move |typed, cx| {
        let future = complete(typed, cx);
        Box::pin(async move { future.await.into_completions() })
    })
}

/// `completion/complete`.
pub(crate) fn complete(core: &Arc<Core>, call: Call) -> Started {
    prepare(core, call).unwrap_or_else(Started::failed)
}

fn prepare(core: &Arc<Core>, call: Call) -> Result<Started, Error> {
    let wrong = |what: &str| Error::invalid_params(format_args!("\"{what}\" is missing or of a wrong type"));
    let params = call.params.object();
    let (Some(reference), Some(argument)) = (params.object("ref"), params.object("argument")) else {
        return Err(wrong(if params.has("ref") { "argument" } else { "ref" }));
    };
    let name = argument.str("name").ok_or_else(|| wrong("argument.name"))?.into_owned();
    let value = argument.str("value").ok_or_else(|| wrong("argument.value"))?.into_owned();
    let arguments = match params.object("context").and_then(|context| context.json("arguments")) {
        None => BTreeMap::new(),
        Some(arguments) => strings(arguments.as_str()).ok_or_else(|| wrong("context.arguments"))?,
    };
    let typed = Completing { value, arguments };

    let registry = core.registry.load();
    let no_such = |what: &str, which: &str| Error::invalid_params(format_args!("no such {what}: {which}"));
    let cx = |call: Call| Cx::new(core.clone(), call);
    // An argument without a completer has no suggestions; one that does not exist is a mistake.
    let (cx, future) = match reference.str("type").as_deref() {
        Some("ref/prompt") => {
            let which = reference.str("name").ok_or_else(|| wrong("ref.name"))?;
            let prompt = registry
                .prompts
                .get(&which)
                .ok_or_else(|| Error::new(Symbol::PromptNotFound, format!("Unknown prompt: {which}")))?;
            let argument = prompt.argument(&name).ok_or_else(|| no_such("argument", &name))?;
            let cx = cx(call)?;
            (cx.clone(), argument.complete.as_ref().map(|complete| complete(typed, cx)))
        }
        Some("ref/resource") => {
            let which = reference.str("uri").ok_or_else(|| wrong("ref.uri"))?;
            match registry.templates.get(&which) {
                Some(template) if !template.has_variable(&name) => return Err(no_such("variable", &name)),
                Some(template) => {
                    let cx = cx(call)?;
                    (cx.clone(), template.completer(&name).map(|complete| complete(typed, cx)))
                }
                None if registry.resources.has(&which) => (cx(call)?, None),
                None => return Err(no_such("resource template", &which)),
            }
        }
        _ => return Err(Error::invalid_params("\"ref.type\" must be \"ref/prompt\" or \"ref/resource\"")),
    };
    let run = cx.clone();
    let work = async move {
        let completions = match future {
            Some(future) => future.await,
            None => Completions::default(),
        };
        Ok(write(&cx, completions))
    };
    Ok(Started::Running(Run::new(run, Work::Other(Box::pin(work)))))
}

fn write(cx: &Cx, mut completions: Completions) -> Reply {
    let total = completions.total.unwrap_or(0).max(completions.values.len());
    completions.values.truncate(MAX_VALUES);
    let info = cx.revision().is_modern().then_some(cx.core().info.meta_entry());
    let mut completion = ObjectWriter::new();
    completion
        .value("values", &completions.values)
        .value("total", &total)
        .value("hasMore", &(total > completions.values.len()));
    let mut w = ObjectWriter::new();
    if info.is_some() {
        w.str("resultType", "complete");
    }
    w.json("completion", &completion.finish());
    write_meta(&mut w, None, info);
    Reply::Complete(w.finish())
}

/// An object whose values are all strings.
pub(crate) fn strings(text: &str) -> Option<BTreeMap<String, String>> {
    let Ok(Value::Object(map)) = args::parse(text) else { return None };
    map.into_iter()
        .map(|(name, value)| match value {
            Value::String(value) => Some((name, value)),
            _ => None,
        })
        .collect()
}
