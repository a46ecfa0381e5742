//! OpenAI's Responses API.

use serde_json::{Value, json};

use super::{Answer, Asked, Offered, list, returned, text, unique};
use crate::agents::MODEL;

pub(super) fn read(request: &Value) -> Asked {
    let results = list(&request["input"])
        .filter(|item| item["type"] == "function_call_output")
        .map(|item| returned(&item["output"]));
    Asked { tools: list(&request["tools"]).flat_map(offered).collect(), results: results.collect() }
}

/// A tool, or those of a namespace.
fn offered(tool: &Value) -> Vec<Offered> {
    let function = |group: Option<&str>, tool: &Value| Offered {
        group: group.map(str::to_owned),
        name: text(&tool["name"]).to_owned(),
        schema: tool["parameters"].to_string(),
    };
    match tool["type"].as_str() {
        Some("namespace") => {
            list(&tool["tools"]).map(|inner| function(tool["name"].as_str(), inner)).collect()
        }
        _ => vec![function(None, tool)],
    }
}

pub(super) fn whole(answer: &Answer) -> Value {
    let id = unique();
    response(id, "completed", &[item(id, answer, "completed")])
}

pub(super) fn events(answer: &Answer) -> Vec<Value> {
    let id = unique();
    let done = item(id, answer, "completed");
    let mut begun = item(id, answer, "in_progress");
    let at = json!({"item_id": begun["id"], "output_index": 0});
    let with = |mut event: Value| {
        for (name, value) in at.as_object().expect("an object") {
            event[name] = value.clone();
        }
        event
    };
    let within = match answer {
        Answer::Call { arguments, .. } => {
            begun["arguments"] = json!("");
            let whole = arguments.to_string();
            vec![
                with(json!({"type": "response.function_call_arguments.delta", "delta": whole})),
                with(json!({"type": "response.function_call_arguments.done", "arguments": whole})),
            ]
        }
        Answer::Text(whole) => {
            begun["content"] = json!([]);
            let empty = json!({"type": "output_text", "text": "", "annotations": []});
            vec![
                with(json!({"type": "response.content_part.added", "content_index": 0, "part": empty})),
                with(json!({"type": "response.output_text.delta", "content_index": 0, "delta": whole})),
                with(json!({"type": "response.output_text.done", "content_index": 0, "text": whole})),
                with(
                    json!({"type": "response.content_part.done", "content_index": 0, "part": done["content"][0]}),
                ),
            ]
        }
    };
    let mut events = vec![
        json!({"type": "response.created", "response": response(id, "in_progress", &[])}),
        json!({"type": "response.output_item.added", "output_index": 0, "item": begun}),
    ];
    events.extend(within);
    events.push(json!({"type": "response.output_item.done", "output_index": 0, "item": done}));
    events.push(json!({"type": "response.completed", "response": response(id, "completed", &[done])}));
    for (number, event) in events.iter_mut().enumerate() {
        event["sequence_number"] = json!(number);
    }
    events
}

fn response(id: usize, status: &str, output: &[Value]) -> Value {
    json!({
        "id": format!("resp_{id}"), "object": "response", "created_at": 1, "status": status, "model": MODEL, "output": output,
        "parallel_tool_calls": false, "tool_choice": "auto", "tools": [],
        "usage": {
            "input_tokens": 1, "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1, "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 2,
        },
    })
}

fn item(id: usize, answer: &Answer, status: &str) -> Value {
    match answer {
        Answer::Call { tool, arguments } => {
            let mut call = json!({
                "type": "function_call", "id": format!("fc_{id}"), "call_id": format!("call_{id}"),
                "name": tool.name, "arguments": arguments.to_string(), "status": status,
            });
            if let Some(group) = &tool.group {
                call["namespace"] = json!(group);
            }
            call
        }
        Answer::Text(text) => json!({
            "type": "message", "id": format!("msg_{id}"), "role": "assistant", "status": status,
            "content": [{"type": "output_text", "text": text, "annotations": []}],
        }),
    }
}
