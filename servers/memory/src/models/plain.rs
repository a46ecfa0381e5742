//! Talking in plain text: for models that know nothing of tools or schemas but what they are told.

use serde_json::{Value, json};

use super::answer;
use super::conversation::{ANSWER, ModelReply, Request, ToolCall, Turn};

/// How much of what an endpoint offers is used. Some refuse parts of it: then less is asked of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(crate) enum RequestStyle {
    /// Tools, and the schema of the answer as the endpoint takes it.
    #[default]
    Full,
    /// Tools, and the schema in words.
    Loose,
    /// Everything in words.
    Plain,
}

impl RequestStyle {
    /// The next that asks for less.
    pub(super) fn less(self) -> Option<RequestStyle> {
        match self {
            RequestStyle::Full => Some(RequestStyle::Loose),
            RequestStyle::Loose => Some(RequestStyle::Plain),
            RequestStyle::Plain => None,
        }
    }
}

/// The system prompt with the schema of the answer in words.
pub(super) fn with_schema(request: &Request<'_>) -> String {
    format!(
        "{}\n\nGive the answer as one JSON object and nothing else: no explanation before or after it. It must fit this \
         JSON Schema:\n{}",
        request.system, request.schema
    )
}

/// The system prompt with everything in words, tools too.
pub(super) fn system(request: &Request<'_>) -> String {
    if request.tools.is_empty() || request.answer_now {
        return with_schema(request);
    }
    let tools: Vec<Value> = request
        .tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "arguments": tool.input_schema}))
        .collect();
    format!(
        "{}\n\nAlways reply with one JSON object and nothing else. To use a tool, reply {{\"tool\": \"its name\", \
         \"arguments\": {{…}}}}: you will be shown what it gives, and can go on. Once you know enough, reply \
         {{\"answer\": {{…}}}}.\n\nThe tools:\n{}\n\nThe answer must fit this JSON Schema:\n{}",
        request.system,
        Value::Array(tools),
        request.schema
    )
}

/// Who says something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Speaker {
    User,
    Model,
}

/// The conversation as texts.
pub(super) fn messages(turns: &[Turn]) -> Vec<(Speaker, String)> {
    turns.iter().map(message).collect()
}

fn message(turn: &Turn) -> (Speaker, String) {
    match turn {
        Turn::User(text) => (Speaker::User, text.clone()),
        Turn::Model { text, calls } if !text.is_empty() || calls.is_empty() => (Speaker::Model, text.clone()),
        Turn::Model { calls, .. } => {
            let written = |call: &ToolCall| {
                let arguments = call.arguments.as_ref().cloned().unwrap_or_else(|_| json!({}));
                match call.name.as_str() {
                    ANSWER => json!({"answer": arguments}).to_string(),
                    name => json!({"tool": name, "arguments": arguments}).to_string(),
                }
            };
            (Speaker::Model, calls.iter().map(written).collect::<Vec<_>>().join("\n"))
        }
        Turn::Results(results) => {
            let told = |result: &super::ToolReply| match (result.name.as_str(), result.failed) {
                (ANSWER, _) => result.text.clone(),
                (name, true) => format!("The tool {name} failed:\n{}", result.text),
                (name, false) => format!("The tool {name} gave:\n{}", result.text),
            };
            (Speaker::User, results.iter().map(told).collect::<Vec<_>>().join("\n\n"))
        }
    }
}

/// Finds the call of a tool, or the answer, in what was said.
pub(super) fn read(said: &mut ModelReply, request: &Request<'_>) {
    if request.tools.is_empty() {
        return;
    }
    let id = format!("call_{}", request.turns.len());
    for found in answer::objects(&said.text) {
        let Value::Object(mut members) = found else { continue };
        let arguments = match members.get("arguments") {
            Some(Value::Object(_)) => members.remove("arguments"),
            Some(Value::Null) | None => Some(json!({})),
            Some(_) => None,
        };
        let name = members.get("tool").and_then(Value::as_str).map(str::to_owned);
        if let (Some(name), Some(arguments)) = (name, arguments)
            && !request.answer_now
        {
            said.calls.push(ToolCall { id, name, arguments: Ok(arguments) });
            return;
        }
        if members.len() == 1
            && let Some(given @ Value::Object(_)) = members.remove(ANSWER)
        {
            said.calls.push(ToolCall { id, name: ANSWER.to_owned(), arguments: Ok(given) });
            return;
        }
    }
}
