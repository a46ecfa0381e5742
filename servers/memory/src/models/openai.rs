//! Chat completions, as OpenAI has them and others have them nearly.

use serde_json::{Value, json};

use super::conversation::{ANSWER, ModelReply, Request, ToolCall, Turn, Usage};
use super::http::{Delta, OnDelta};
use super::plain::{self, RequestStyle, Speaker};
use crate::error::{Code, Fault, Result};

/// What is sent. `newer` says how the limit of tokens is called there.
pub(super) fn body(request: &Request<'_>, model: &str, manner: RequestStyle, newer: bool) -> Value {
    let limit = if newer { "max_completion_tokens" } else { "max_tokens" };
    let mut body = json!({"model": model, limit: request.max_tokens, "stream": true});
    if manner == RequestStyle::Plain {
        let mut messages = vec![json!({"role": "system", "content": plain::system(request)})];
        messages.extend(plain::messages(request.turns).into_iter().map(|(who, text)| said(who, &text)));
        body["messages"] = messages.into();
        return body;
    }
    let mut messages = vec![json!({"role": "system", "content": plain::with_schema(request)})];
    messages.extend(request.turns.iter().flat_map(message));
    body["messages"] = messages.into();
    body["stream_options"] = json!({"include_usage": true});
    if !request.tools.is_empty() {
        let tool = |tool: &super::ToolOffer| {
            let function =
                json!({"name": tool.name, "description": tool.description, "parameters": tool.input_schema});
            json!({"type": "function", "function": function})
        };
        body["tools"] = request.tools.iter().map(tool).collect();
        body["tool_choice"] = if request.answer_now { "none" } else { "auto" }.into();
    }
    if manner == RequestStyle::Full {
        body["response_format"] =
            json!({"type": "json_schema", "json_schema": {"name": ANSWER, "schema": request.schema}});
    }
    body
}

fn said(who: Speaker, text: &str) -> Value {
    let role = if who == Speaker::User { "user" } else { "assistant" };
    json!({"role": role, "content": text})
}

fn message(turn: &Turn) -> Vec<Value> {
    match turn {
        Turn::User(text) => vec![said(Speaker::User, text)],
        Turn::Model { text, calls } if calls.is_empty() => vec![said(Speaker::Model, text)],
        Turn::Model { text, calls } => {
            let call = |call: &ToolCall| {
                // What was no JSON is not said back: there are endpoints that fail on it.
                let arguments = call.arguments.as_ref().map_or_else(|_| "{}".to_owned(), Value::to_string);
                let function = json!({"name": call.name, "arguments": arguments});
                json!({"id": call.id, "type": "function", "function": function})
            };
            let calls: Vec<Value> = calls.iter().map(call).collect();
            let text = if text.is_empty() { Value::Null } else { text.as_str().into() };
            vec![json!({"role": "assistant", "content": text, "tool_calls": calls})]
        }
        Turn::Results(results) => results
            .iter()
            .map(|result| {
                let text =
                    if result.failed { format!("Failed: {}", result.text) } else { result.text.clone() };
                json!({"role": "tool", "tool_call_id": result.id, "content": text})
            })
            .collect(),
    }
}

/// What came so far of an answer.
#[derive(Default)]
pub(super) struct Reader {
    said: ModelReply,
    calls: Vec<Call>,
    ended: bool,
}

#[derive(Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

impl Reader {
    /// Takes one event. What it brings of the answer is heard at once.
    pub(super) fn event(&mut self, data: &str, heard: OnDelta<'_>) -> Result<()> {
        if data.trim() == "[DONE]" {
            self.ended = true;
            return Ok(());
        }
        let Ok(event) = serde_json::from_str::<Value>(data) else {
            return Err(Fault::new(Code::Outside, "The model sent an event that is not valid JSON"));
        };
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(super::http::provider_error(error));
        }
        self.take(&event, "delta", heard);
        Ok(())
    }

    /// Takes an answer that came in one piece.
    pub(super) fn read_message(&mut self, message: &Value) {
        self.take(message, "message", &mut |_| {});
        self.ended = true;
    }

    fn take(&mut self, event: &Value, member: &str, heard: OnDelta<'_>) {
        if let Some(model) = event["model"].as_str().filter(|model| !model.is_empty()) {
            self.said.model = model.to_owned();
        }
        if let Some(usage) = event.get("usage").filter(|usage| usage.is_object()) {
            let number = |name: &str| usage[name].as_u64().unwrap_or_default();
            let usage =
                Usage { input_tokens: number("prompt_tokens"), output_tokens: number("completion_tokens") };
            self.said.usage = Some(usage).filter(|usage| usage.total() > 0);
        }
        let choice = &event["choices"][0];
        if let Some(reason) = choice["finish_reason"].as_str() {
            self.said.cut = reason == "length";
            self.said.refused |= reason == "content_filter";
            // Some close the connection after this instead of saying that they are done.
            self.ended = true;
        }
        self.said.refused |= choice[member]["refusal"].as_str().is_some_and(|why| !why.is_empty());
        if let Some(text) = choice[member]["content"].as_str() {
            self.said.text.push_str(text);
            heard(Delta::Text(text));
        }
        for piece in choice[member]["tool_calls"].as_array().into_iter().flatten() {
            self.call(piece);
        }
    }

    /// A piece of a call: the index says of which, where there is one, and an id that is new begins another.
    fn call(&mut self, piece: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let (index, id) = (piece["index"].as_u64(), text(&piece["id"]));
        let name = text(&piece["function"]["name"]);
        let arguments = match &piece["function"]["arguments"] {
            Value::String(part) => part.clone(),
            Value::Null => String::new(),
            whole => whole.to_string(),
        };
        let known = self.calls.iter_mut().rev().find(|call| match index {
            Some(_) => call.index == index && (id.is_empty() || call.id.is_empty() || call.id == id),
            None => name.is_empty() && (id.is_empty() || call.id == id),
        });
        match known {
            Some(call) => {
                call.id = if id.is_empty() { std::mem::take(&mut call.id) } else { id };
                // Some say the name with every piece.
                if call.name.is_empty() {
                    call.name = name;
                }
                call.arguments.push_str(&arguments);
            }
            None => self.calls.push(Call { index, id, name, arguments }),
        }
    }

    /// The answer, once the stream is over. `turn` is part of the ids of calls that have none.
    pub(super) fn finish(mut self, turn: usize) -> Option<ModelReply> {
        if !self.ended {
            return None;
        }
        for (at, call) in self.calls.into_iter().enumerate() {
            let id = if call.id.is_empty() { format!("call_{turn}_{at}") } else { call.id };
            self.said.calls.push(ToolCall::new(id, call.name, &call.arguments));
        }
        Some(self.said)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(events: &[Value]) -> Vec<(String, String, Value)> {
        let mut reader = Reader::default();
        for event in events {
            reader
                .event(&json!({"choices": [{"delta": {"tool_calls": event}}]}).to_string(), &mut |_| {})
                .unwrap();
        }
        reader.event("[DONE]", &mut |_| {}).unwrap();
        let said = reader.finish(3).unwrap();
        said.calls.into_iter().map(|call| (call.id, call.name, call.arguments.unwrap())).collect()
    }

    #[test]
    fn calls_are_put_together_however_they_come() {
        let usual = calls(&[
            json!([{"index": 0, "id": "a", "function": {"name": "f", "arguments": ""}}]),
            json!([{"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}]),
            json!([{"index": 0, "function": {"arguments": "{\"x\":"}}, {"index": 1, "function": {"arguments": "}"}}]),
            json!([{"index": 0, "function": {"arguments": "1}"}}]),
        ]);
        assert_eq!(usual, [("a".into(), "f".into(), json!({"x": 1})), ("b".into(), "g".into(), json!({}))]);
        let all_first = calls(&[json!([
            {"index": 0, "id": "a", "function": {"name": "f", "arguments": {"x": 1}}},
            {"index": 0, "id": "b", "function": {"name": "f", "arguments": {"x": 2}}},
        ])]);
        assert_eq!(all_first.len(), 2);
        let nameless =
            calls(&[json!([{"function": {"name": "f", "arguments": {}}}, {"function": {"name": "g"}}])]);
        assert_eq!(
            nameless,
            [("call_3_0".into(), "f".into(), json!({})), ("call_3_1".into(), "g".into(), json!({}))]
        );
    }

    #[test]
    fn what_breaks_off_is_no_answer() {
        let mut reader = Reader::default();
        reader.event(r#"{"choices":[{"delta":{"content":"hal"}}]}"#, &mut |_| {}).unwrap();
        assert!(reader.finish(0).is_none());
        let error =
            Reader::default().event(r#"{"error":{"message":"no room","type":"server_error"}}"#, &mut |_| {});
        assert!(error.unwrap_err().message.contains("no room"));
    }
}
