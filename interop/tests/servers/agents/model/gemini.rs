//! Google's `generateContent`.

use serde_json::{Value, json};

use super::{Answer, Asked, Offered, list, text};
use crate::agents::MODEL;

pub(super) fn read(request: &Value) -> Asked {
    let tool = |tool: &Value| Offered {
        group: None,
        name: text(&tool["name"]).to_owned(),
        schema: tool.to_string(),
    };
    let tools = list(&request["tools"]).flat_map(|tools| list(&tools["functionDeclarations"]));
    let results = list(&request["contents"])
        .flat_map(|content| list(&content["parts"]))
        .filter_map(|part| part.get("functionResponse"))
        .map(|result| result["response"].to_string());
    Asked { tools: tools.map(tool).collect(), results: results.collect() }
}

pub(super) fn whole(answer: &Answer) -> Value {
    let part = match answer {
        Answer::Call { tool, arguments } => {
            json!({"functionCall": {"name": tool.name, "args": arguments}})
        }
        Answer::Text(text) => json!({"text": text}),
    };
    let content = json!({"role": "model", "parts": [part]});
    json!({
        "candidates": [{"index": 0, "content": content, "finishReason": "STOP"}],
        "usageMetadata": {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2},
        "modelVersion": MODEL,
    })
}
