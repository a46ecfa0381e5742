//! What is said to a model and what it says, whoever runs it.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The tool by which a model gives its answer, where tools are how it is told what an answer looks like.
pub(crate) const ANSWER: &str = "answer";

/// A tool that a model may use.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolOffer {
    /// The name as models know it: letters, digits, `_` and `-`.
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) input_schema: Value,
}

/// One part of a conversation.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Turn {
    User(String),
    Model { text: String, calls: Vec<ToolCall> },
    Results(Vec<ToolReply>),
}

/// A model asks for a tool.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolCall {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The arguments, or the text that was to be some and is no JSON object.
    pub(crate) arguments: Result<Value, String>,
}

impl ToolCall {
    /// The call with its arguments as they were written.
    pub(super) fn new(id: String, name: String, written: &str) -> ToolCall {
        let arguments = match serde_json::from_str(written) {
            Ok(value @ Value::Object(_)) => Ok(value),
            // No arguments at all is how some write an empty object.
            _ if matches!(written.trim(), "" | "null") => Ok(Value::Object(serde_json::Map::new())),
            _ => Err(written.to_owned()),
        };
        ToolCall { id, name, arguments }
    }
}

/// What a tool gave back.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ToolReply {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) failed: bool,
}

/// How many tokens it took.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Usage {
    pub(crate) input_tokens: u64,
    pub(crate) output_tokens: u64,
}

impl Usage {
    pub(crate) fn total(self) -> u64 {
        self.input_tokens.saturating_add(self.output_tokens)
    }

    pub(crate) fn add(&mut self, more: Usage) {
        self.input_tokens = self.input_tokens.saturating_add(more.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(more.output_tokens);
    }
}

/// What a model is asked.
pub(crate) struct Request<'a> {
    pub(crate) system: &'a str,
    pub(crate) turns: &'a [Turn],
    pub(crate) tools: &'a [ToolOffer],
    /// What the answer must fit.
    pub(crate) schema: &'a Value,
    /// No tools any more: the answer.
    pub(crate) answer_now: bool,
    pub(crate) max_tokens: u64,
}

impl Request<'_> {
    /// About how many tokens it has: four bytes are about one.
    pub(crate) fn about(&self) -> u64 {
        let turn = |turn: &Turn| match turn {
            Turn::User(text) => text.len(),
            Turn::Model { text, calls } => {
                text.len() + calls.iter().map(|call| call.name.len() + 64).sum::<usize>()
            }
            Turn::Results(results) => results.iter().map(|result| result.text.len() + 32).sum(),
        };
        let tools =
            self.tools.iter().map(|tool| tool.description.len() + tool.input_schema.to_string().len());
        let bytes = self.system.len()
            + self.schema.to_string().len()
            + tools.sum::<usize>()
            + self.turns.iter().map(turn).sum::<usize>();
        bytes as u64 / 4
    }
}

/// What a model said.
#[derive(Debug, Clone, Default)]
pub(crate) struct ModelReply {
    pub(crate) text: String,
    /// The tools that it asks for, and [`ANSWER`] among them if that is how it answers.
    pub(crate) calls: Vec<ToolCall>,
    /// As the provider counts; `None` if it does not tell.
    pub(crate) usage: Option<Usage>,
    /// The model that spoke, as it calls itself.
    pub(crate) model: String,
    /// Whether it stopped because there was no more room.
    pub(crate) cut: bool,
    /// Whether it would not answer at all.
    pub(crate) refused: bool,
}

impl ModelReply {
    /// About how many tokens it has.
    pub(crate) fn about(&self) -> u64 {
        let calls = self.calls.iter().map(|call| match &call.arguments {
            Ok(value) => value.to_string().len(),
            Err(text) => text.len(),
        });
        (self.text.len() + calls.sum::<usize>()) as u64 / 4
    }
}
