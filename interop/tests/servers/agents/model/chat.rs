//! OpenAI's chat completions, which nearly everybody understands.

use serde_json::{Value, json};

use super::{Answer, Asked, Offered, list, returned, text, unique};
use crate::agents::MODEL;

pub(super) fn read(request: &Value) -> Asked {
    let tool = |tool: &Value| Offered {
        group: None,
        name: text(&tool["function"]["name"]).to_owned(),
        schema: tool["function"]["parameters"].to_string(),
    };
    let results = list(&request["messages"])
        .filter(|message| message["role"] == "tool")
        .map(|message| returned(&message["content"]));
    Asked { tools: list(&request["tools"]).map(tool).collect(), results: results.collect() }
}

pub(super) fn whole(answer: &Answer) -> Value {
    let choice = json!({"index": 0, "message": message(answer), "finish_reason": stop(answer)});
    let mut completion = completion("chat.completion", unique(), choice);
    completion["usage"] = json!({"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2});
    completion
}

pub(super) fn events(answer: &Answer) -> String {
    let mut delta = message(answer);
    if let Answer::Call { .. } = answer {
        delta["tool_calls"][0]["index"] = json!(0);
    }
    let chunks = [
        json!({"index": 0, "delta": delta, "finish_reason": null}),
        json!({"index": 0, "delta": {}, "finish_reason": stop(answer)}),
    ];
    let id = unique();
    let chunk = |choice| format!("data: {}\n\n", completion("chat.completion.chunk", id, choice));
    format!("{}data: [DONE]\n\n", chunks.map(chunk).concat())
}

fn completion(object: &str, id: usize, choice: Value) -> Value {
    json!({
        "id": format!("chatcmpl-{id}"), "object": object, "created": 1, "model": MODEL, "choices": [choice],
    })
}

fn message(answer: &Answer) -> Value {
    match answer {
        Answer::Call { tool, arguments } => {
            let function = json!({"name": tool.name, "arguments": arguments.to_string()});
            let call = json!({"id": format!("call_{}", unique()), "type": "function", "function": function});
            json!({"role": "assistant", "content": null, "tool_calls": [call]})
        }
        Answer::Text(text) => json!({"role": "assistant", "content": text}),
    }
}

fn stop(answer: &Answer) -> &'static str {
    match answer {
        Answer::Call { .. } => "tool_calls",
        Answer::Text(_) => "stop",
    }
}
