//! Tools that show what was said to agents and by them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::caller::Caller;
use super::manage::CallerArgs;
use crate::agents::sessions;
use crate::server::state::ServerState;
use crate::server::tools::{json_result, object_schema, read_tool, schema_of, with_handler};

/// Most sessions and messages that are shown at once.
const MOST: i64 = 200;

#[derive(Deserialize, JsonSchema)]
struct SessionArgs {
    /// The session.
    session_id: String,
    #[serde(flatten)]
    asking: CallerArgs,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let listed = object_schema(json!({
        "sessions": {"type": "array", "items": schema_of::<sessions::Session>()}, "count": {"type": "integer"},
    }));
    let said = object_schema(json!({
        "session_id": {"type": "string"}, "messages": {"type": "array", "items": schema_of::<sessions::Message>()},
        "count": {"type": "integer"},
    }));
    let list =
        read_tool("list_sessions", "List Sessions", "List your sessions with agents, the latest first");
    let get = read_tool("get_session", "Get Session", "Get what was last said in a session, oldest first");
    vec![
        with_handler(state, list_sessions, list.output_schema(listed)),
        with_handler(state, get_session, get.output_schema(said)),
    ]
}

async fn list_sessions(state: ServerState, args: CallerArgs, cx: Cx) -> Result<ToolResult, ToolError> {
    let caller = Caller::new(&state, &cx);
    let owner = args.user(&caller)?;
    let sessions = caller.memory.view(move |view| sessions::all(view, &owner, MOST)).await?;
    let answer = json!({"sessions": sessions, "count": sessions.len()});
    json_result(answer)
}

async fn get_session(state: ServerState, args: SessionArgs, cx: Cx) -> Result<ToolResult, ToolError> {
    let caller = Caller::new(&state, &cx);
    let owner = args.asking.user(&caller)?;
    sessions::check("session_id", &args.session_id)?;
    let name = args.session_id.clone();
    let messages = caller.memory.view(move |view| sessions::messages(view, &owner, &name, MOST)).await?;
    let answer = json!({"session_id": args.session_id, "messages": messages, "count": messages.len()});
    json_result(answer)
}
