//! The Messages API of Anthropic.

use serde_json::{Value, json};

use super::conversation::{ANSWER, ModelReply, Request, ToolCall, Turn, Usage};
use super::http::{Delta, OnDelta};
use super::plain::{self, RequestStyle, Speaker};
use crate::error::{Code, Fault, Result};

/// What is sent.
pub(super) fn body(request: &Request<'_>, model: &str, manner: RequestStyle) -> Value {
    let mut body = json!({"model": model, "max_tokens": request.max_tokens, "stream": true});
    if manner == RequestStyle::Plain {
        body["system"] = plain::system(request).into();
        body["messages"] = plain::messages(request.turns).into_iter().map(said).collect();
        return body;
    }
    body["system"] = request.system.into();
    body["messages"] = request.turns.iter().map(message).collect();
    let tool = |tool: &super::ToolOffer| json!({"name": tool.name, "description": tool.description, "input_schema": tool.input_schema});
    let mut tools: Vec<Value> = request.tools.iter().map(tool).collect();
    tools.push(json!({
        "name": ANSWER,
        "description": "Gives the answer. Use it once you know enough: it ends the conversation.",
        "input_schema": request.schema,
    }));
    body["tools"] = tools.into();
    // A tool in any case; which of them is the model's choice for as long as there is one.
    body["tool_choice"] = match (manner, request.tools.is_empty() || request.answer_now) {
        (RequestStyle::Loose, _) => json!({"type": "auto"}),
        (_, true) => json!({"type": "tool", "name": ANSWER}),
        (_, false) => json!({"type": "any"}),
    };
    body
}

fn said((who, text): (Speaker, String)) -> Value {
    let role = if who == Speaker::User { "user" } else { "assistant" };
    json!({"role": role, "content": filled(&text)})
}

/// Texts must not be empty.
fn filled(text: &str) -> &str {
    if text.trim().is_empty() { "(nothing)" } else { text }
}

fn message(turn: &Turn) -> Value {
    match turn {
        Turn::User(text) => said((Speaker::User, text.clone())),
        Turn::Model { text, calls } if calls.is_empty() => said((Speaker::Model, text.clone())),
        Turn::Model { text, calls } => {
            let mut blocks = Vec::new();
            if !text.trim().is_empty() {
                blocks.push(json!({"type": "text", "text": text}));
            }
            blocks.extend(calls.iter().map(|call| {
                let input = call.arguments.as_ref().cloned().unwrap_or_else(|_| json!({}));
                json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
            }));
            json!({"role": "assistant", "content": blocks})
        }
        Turn::Results(results) => {
            let block = |result: &super::ToolReply| {
                json!({
                    "type": "tool_result", "tool_use_id": result.id, "content": filled(&result.text),
                    "is_error": result.failed,
                })
            };
            json!({"role": "user", "content": results.iter().map(block).collect::<Vec<_>>()})
        }
    }
}

/// What came so far of an answer.
#[derive(Default)]
pub(super) struct Reader {
    said: ModelReply,
    blocks: Vec<Block>,
    usage: Usage,
    ended: bool,
}

/// A part of the answer: a text, or a tool with its arguments as they are written.
#[derive(Default)]
struct Block {
    index: u64,
    tool: Option<(String, String)>,
    text: String,
}

impl Reader {
    /// Takes one event. What it brings of the answer is heard at once.
    pub(super) fn event(&mut self, data: &str, heard: OnDelta<'_>) -> Result<()> {
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            return Err(Fault::new(Code::Outside, "The model sent an event that is not valid JSON"));
        };
        match event["type"].as_str().unwrap_or_default() {
            "message_start" => {
                self.said.model = event["message"]["model"].as_str().unwrap_or_default().to_owned();
                self.count(&event["message"]["usage"]);
            }
            "content_block_start" => {
                self.start(event["index"].as_u64().unwrap_or_default(), &event["content_block"])
            }
            "content_block_delta" => {
                let piece = match event["delta"]["type"].as_str().unwrap_or_default() {
                    "text_delta" => event["delta"]["text"].as_str(),
                    "input_json_delta" => event["delta"]["partial_json"].as_str(),
                    _ => None,
                };
                let index = event["index"].as_u64().unwrap_or_default();
                let block = self.blocks.iter_mut().rev().find(|block| block.index == index);
                if let (Some(block), Some(piece)) = (block, piece) {
                    block.text.push_str(piece);
                    match &block.tool {
                        None => heard(Delta::Text(piece)),
                        Some((_, name)) if name == ANSWER => heard(Delta::Answer(piece)),
                        Some(_) => {}
                    }
                }
            }
            "message_delta" => {
                self.stopped(&event["delta"]["stop_reason"]);
                self.count(&event["usage"]);
            }
            "message_stop" => self.ended = true,
            "error" => return Err(super::http::provider_error(&event["error"])),
            // Pings, and what may be added some day.
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, index: u64, block: &Value) {
        let text = |name: &str| block[name].as_str().unwrap_or_default().to_owned();
        let started = match text("type").as_str() {
            "text" => Block { index, tool: None, text: text("text") },
            "tool_use" => Block { index, tool: Some((text("id"), text("name"))), text: String::new() },
            _ => return,
        };
        self.blocks.push(started);
    }

    fn stopped(&mut self, why: &Value) {
        self.said.cut = why == "max_tokens";
        self.said.refused = why == "refusal";
    }

    /// Numbers are totals: what comes later replaces what came before.
    fn count(&mut self, usage: &Value) {
        let number = |name: &str| usage[name].as_u64();
        if let Some(fresh) = number("input_tokens") {
            let cached = ["cache_creation_input_tokens", "cache_read_input_tokens"];
            self.usage.input_tokens = fresh + cached.into_iter().filter_map(number).sum::<u64>();
        }
        if let Some(output) = number("output_tokens") {
            self.usage.output_tokens = output;
        }
    }

    /// Takes an answer that came in one piece.
    pub(super) fn read_message(&mut self, message: &Value) {
        self.said.model = message["model"].as_str().unwrap_or_default().to_owned();
        self.stopped(&message["stop_reason"]);
        self.count(&message["usage"]);
        for (index, block) in message["content"].as_array().into_iter().flatten().enumerate() {
            self.start(index as u64, block);
            if let (Some(last), Some(input)) = (self.blocks.last_mut(), block.get("input")) {
                last.text = input.to_string();
            }
        }
        self.ended = true;
    }

    /// The answer, once the stream is over.
    pub(super) fn finish(mut self) -> Option<ModelReply> {
        if !self.ended {
            return None;
        }
        for block in self.blocks {
            match block.tool {
                Some((id, name)) => self.said.calls.push(ToolCall::new(id, name, &block.text)),
                None => self.said.text.push_str(&block.text),
            }
        }
        self.said.usage = Some(self.usage).filter(|usage| usage.total() > 0);
        Some(self.said)
    }
}
