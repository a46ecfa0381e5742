//! A server written with rmcp behind the gateway: plain calls, questions in the middle of a call, and changes.

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ClientResult, ContentBlock, ErrorData,
    ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig, ServerRequest,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::{Value, json};
use tidegate_gateway::{Gateway, ServerSettings, Settings, Source};
use tidegate_protocol::{ClientCapabilities, Json, Limits, Method, Params};
use tidegate_service::{Call, Context, Door, InputRequired, Reply};

/// Speaks nothing newer than 2025-11-25, so that it asks in the middle of a call.
#[derive(Clone)]
struct Handler;

impl ServerHandler for Handler {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
        Ok(serde_json::from_value(json!({"tools": [tool("hello"), tool("greet")]})).unwrap())
    }

    async fn call_tool(
        &self,
        call: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let name = match &*call.name {
            "greet" => {
                let question: ServerRequest = serde_json::from_value(json!({
                    "method": "elicitation/create",
                    "params": {
                        "mode": "form",
                        "message": "Who is there?",
                        "requestedSchema": {"type": "object", "properties": {"name": {"type": "string"}}},
                    },
                }))
                .unwrap();
                let broken = |what: String| ErrorData::internal_error(what, None);
                let answer: ClientResult =
                    context.peer.send_request(question).await.map_err(|e| broken(e.to_string()))?;
                let answer = serde_json::to_value(answer).map_err(|e| broken(e.to_string()))?;
                answer.pointer("/content/name").and_then(Value::as_str).unwrap_or("nobody").to_owned()
            }
            _ => "world".to_owned(),
        };
        Ok(CallToolResult::success(vec![ContentBlock::text(format!("Hello, {name}!"))]).into())
    }
}

fn gateway() -> Gateway {
    let mut settings = Settings::default();
    let mut server = ServerSettings::new("old", Source::Target(tidegate_rmcp::target(Handler)));
    server.options.era = tidegate_client::EraChoice::Legacy;
    settings.servers.push(server);
    Gateway::start(settings).unwrap()
}

async fn call(gateway: &Gateway, params: Value) -> Reply {
    let params = Params::parse(&Json::from(params), &Limits::default()).unwrap();
    let mut context = Context::local();
    context.capabilities = ClientCapabilities::from_json(Json::trusted(r#"{"elicitation":{"form":{}}}"#));
    let Ok(reply) = gateway.answer(Call::new(Method::ToolsCall, params, context)).await;
    reply
}

fn text(reply: Reply) -> String {
    let Reply::Complete(result) = reply else { panic!("{reply:?}") };
    let result: Value = result.to().unwrap();
    result["content"][0]["text"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_handler_is_a_server_like_any_other() {
    let gateway = gateway();
    assert_eq!(text(call(&gateway, json!({"name": "old_hello"})).await), "Hello, world!");
    gateway.close().await;
}

#[tokio::test]
async fn what_it_asks_in_the_middle_of_a_call_is_the_callers_question() {
    let gateway = gateway();
    let reply = call(&gateway, json!({"name": "old_greet"})).await;
    let Reply::InputRequired(InputRequired { questions, state, .. }) = reply else { panic!("{reply:?}") };
    assert!(questions[0].params.as_str().contains("Who is there?"));
    let answer = json!({"action": "accept", "content": {"name": "Ann"}});
    let retry = json!({
        "name": "old_greet",
        "inputResponses": {questions[0].key.to_string(): answer},
        "requestState": state.unwrap().to_string(),
    });
    assert_eq!(text(call(&gateway, retry).await), "Hello, Ann!");
    gateway.close().await;
}
