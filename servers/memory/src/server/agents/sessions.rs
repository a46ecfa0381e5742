//! Tools that show what was said to agents and by them.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::caller::Caller;
use super::manage::Asking;
use crate::agents::sessions;
use crate::server::state::ServerState;
use crate::server::tools::{object, of, on, reading, told};

/// Most sessions and messages that are shown at once.
const MOST: i64 = 200;

#[derive(Deserialize, JsonSchema)]
struct OneSession {
    /// The session.
    session_id: String,
    #[serde(flatten)]
    asking: Asking,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let listed = object(json!({
        "sessions": {"type": "array", "items": of::<sessions::Session>()}, "count": {"type": "integer"},
    }));
    let said = object(json!({
        "session_id": {"type": "string"}, "messages": {"type": "array", "items": of::<sessions::Message>()},
        "count": {"type": "integer"},
    }));
    let list = reading("list_sessions", "List Sessions", "List your sessions with agents, the latest first");
    let get = reading("get_session", "Get Session", "Get what was last said in a session, oldest first");
    vec![
        on(state, list_sessions, list.output_schema(listed)),
        on(state, get_session, get.output_schema(said)),
    ]
}

async fn list_sessions(state: ServerState, args: Asking, cx: Cx) -> Result<ToolResult, ToolError> {
    let caller = Caller::new(&state, &cx);
    let owner = args.user(&caller)?;
    let sessions = caller.memory.view(move |view| sessions::all(view, &owner, MOST)).await?;
    let answer = json!({"sessions": sessions, "count": sessions.len()});
    told(&answer, answer.clone())
}

async fn get_session(state: ServerState, args: OneSession, cx: Cx) -> Result<ToolResult, ToolError> {
    let caller = Caller::new(&state, &cx);
    let owner = args.asking.user(&caller)?;
    sessions::check("session_id", &args.session_id)?;
    let name = args.session_id.clone();
    let messages = caller.memory.view(move |view| sessions::messages(view, &owner, &name, MOST)).await?;
    let answer = json!({"session_id": args.session_id, "messages": messages, "count": messages.len()});
    told(&answer, answer.clone())
}
