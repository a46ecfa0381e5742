//! Asking the client: in the middle of the call, or with the result of it, as the revision has it.
#![allow(deprecated, reason = "sampling and roots are, and still have to work")]

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock, ErrorData,
    InputRequest, InputRequiredResult, ProtocolVersion, ServerRequest,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};

/// What a tool asks.
pub(crate) fn question(tool: &str) -> Option<Value> {
    Some(match tool {
        "greet" => json!({"method": "elicitation/create", "params": {
            "mode": "form",
            "message": "Who is there?",
            "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]},
        }}),
        "think" => json!({"method": "sampling/createMessage", "params": {
            "messages": [{"role": "user", "content": {"type": "text", "text": "Six by nine?"}}],
            "maxTokens": 10,
        }}),
        "where" => json!({"method": "roots/list"}),
        _ => return None,
    })
}

/// Asks, or goes on with the answer.
pub(crate) async fn ask(
    call: CallToolRequestParams,
    question: Value,
    context: RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let broken = |what: &str| ErrorData::internal_error(what.to_owned(), None);
    let modern = context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28);
    let answer = if !modern {
        let question: ServerRequest = serde_json::from_value(question).map_err(|e| broken(&e.to_string()))?;
        let answer: ClientResult =
            context.peer.send_request(question).await.map_err(|e| broken(&e.to_string()))?;
        serde_json::to_value(answer).map_err(|e| broken(&e.to_string()))?
    } else if let Some(mut answers) = call.input_responses {
        if call.request_state.as_deref() != Some("asked") {
            return Err(broken("the state did not come back"));
        }
        answers.remove("it").ok_or_else(|| broken("no answer to the question"))?
    } else {
        let question: InputRequest = serde_json::from_value(question).map_err(|e| broken(&e.to_string()))?;
        let questions = [("it".to_owned(), question)].into();
        return Ok(InputRequiredResult::new(Some(questions), Some("asked".to_owned())).into());
    };
    let text = |at: &str| answer.pointer(at).and_then(Value::as_str).unwrap_or_default().to_owned();
    let said = match &*call.name {
        "greet" => format!("Hello, {}!", text("/content/name")),
        "think" => format!("It is {}", text("/content/text")),
        _ => text("/roots/0/uri"),
    };
    Ok(CallToolResult::success(vec![ContentBlock::text(said)]).into())
}
