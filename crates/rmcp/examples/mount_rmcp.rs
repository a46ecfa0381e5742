//! A server written with rmcp behind a gateway, in the same process. Clients of both eras can call it, also as part of a list
//! with other servers.

use rmcp::ServerHandler;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, ErrorData, ListToolsResult,
    PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::{RequestContext, RoleServer};
use serde_json::json;
use tidegate_gateway::Gateway;
use tidegate_protocol::{Json, Limits, Method, Params};
use tidegate_service::{Call, Context, Door, Reply};

/// Any handler will do, with or without rmcp's macros.
#[derive(Clone)]
struct Greeter;

impl ServerHandler for Greeter {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = json!({"tools": [{"name": "hello", "inputSchema": {"type": "object"}}]});
        serde_json::from_value(tools).map_err(|error| ErrorData::internal_error(error.to_string(), None))
    }

    async fn call_tool(
        &self,
        _: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        Ok(CallToolResult::success(vec![ContentBlock::text("Hello from rmcp!")]).into())
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let gateway = Gateway::builder().connect("old", tidegate_rmcp::target(Greeter)).start()?;
    // A real program would serve the gateway: see `embed_gateway` of the facade.
    let params =
        Params::parse(&Json::from(json!({"name": "old_hello", "arguments": {}})), &Limits::default())?;
    let Ok(reply) = gateway.answer(Call::new(Method::ToolsCall, params, Context::local())).await;
    if let Reply::Complete(result) = reply {
        print(result.as_str());
    }
    gateway.close().await;
    Ok(())
}

#[allow(clippy::print_stdout)] // this is what the program is for
fn print(line: &str) {
    println!("{line}");
}
