//! Anthropic's Messages API.

use serde_json::{Value, json};

use super::{Answer, Asked, Offered, list, returned, text, unique};
use crate::agents::MODEL;

pub(super) fn read(request: &Value) -> Asked {
    let tool = |tool: &Value| Offered {
        group: None,
        name: text(&tool["name"]).to_owned(),
        schema: tool["input_schema"].to_string(),
    };
    let results = list(&request["messages"])
        .flat_map(|message| list(&message["content"]))
        .filter(|block| block["type"] == "tool_result")
        .map(|block| returned(&block["content"]));
    Asked { tools: list(&request["tools"]).map(tool).collect(), results: results.collect() }
}

pub(super) fn whole(answer: &Answer) -> Value {
    let mut message = message(&[block(answer)]);
    message["stop_reason"] = json!(stop(answer));
    message
}

pub(super) fn events(answer: &Answer) -> Vec<Value> {
    let (empty, delta) = match answer {
        Answer::Call { arguments, .. } => {
            let mut empty = block(answer);
            empty["input"] = json!({});
            (empty, json!({"type": "input_json_delta", "partial_json": arguments.to_string()}))
        }
        Answer::Text(text) => {
            (json!({"type": "text", "text": ""}), json!({"type": "text_delta", "text": text}))
        }
    };
    let stopped = json!({"stop_reason": stop(answer), "stop_sequence": null});
    vec![
        json!({"type": "message_start", "message": message(&[])}),
        json!({"type": "content_block_start", "index": 0, "content_block": empty}),
        json!({"type": "content_block_delta", "index": 0, "delta": delta}),
        json!({"type": "content_block_stop", "index": 0}),
        json!({"type": "message_delta", "delta": stopped, "usage": {"output_tokens": 1}}),
        json!({"type": "message_stop"}),
    ]
}

fn message(content: &[Value]) -> Value {
    json!({
        "id": format!("msg_{}", unique()), "type": "message", "role": "assistant", "model": MODEL, "content": content,
        "stop_reason": null, "stop_sequence": null, "usage": {"input_tokens": 1, "output_tokens": 1},
    })
}

fn block(answer: &Answer) -> Value {
    match answer {
        Answer::Call { tool, arguments } => {
            let id = format!("toolu_{}", unique());
            json!({"type": "tool_use", "id": id, "name": tool.name, "input": arguments})
        }
        Answer::Text(text) => json!({"type": "text", "text": text}),
    }
}

fn stop(answer: &Answer) -> &'static str {
    match answer {
        Answer::Call { .. } => "tool_use",
        Answer::Text(_) => "end_turn",
    }
}
