//! Tools that show what was said to agents and by them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tidegate_server::{Cx, Tool, ToolError};

use super::caller::Caller;
use super::manage::CallerArgs;
use crate::agents::sessions;
use crate::server::state::ServerState;
use crate::server::tools::{read_tool, with_typed_handler};

/// Most sessions and messages that are shown at once.
const MOST: i64 = 200;

#[derive(Deserialize, JsonSchema)]
struct SessionArgs {
    /// The session.
    session_id: String,
    #[serde(flatten)]
    asking: CallerArgs,
}

#[derive(Serialize, JsonSchema)]
struct Sessions {
    sessions: Vec<sessions::Session>,
    count: i64,
}

#[derive(Serialize, JsonSchema)]
struct Messages {
    session_id: String,
    messages: Vec<sessions::Message>,
    count: i64,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let list =
        read_tool("list_sessions", "List Sessions", "List your sessions with agents, the latest first");
    let get = read_tool("get_session", "Get Session", "Get what was last said in a session, oldest first");
    vec![with_typed_handler(state, list_sessions, list), with_typed_handler(state, get_session, get)]
}

async fn list_sessions(state: ServerState, args: CallerArgs, cx: Cx) -> Result<Sessions, ToolError> {
    let caller = Caller::new(&state, &cx);
    let owner = args.user(&caller)?;
    let sessions = caller.memory.view(move |view| sessions::all(view, &owner, MOST)).await?;
    Ok(Sessions { count: sessions.len() as i64, sessions })
}

async fn get_session(state: ServerState, args: SessionArgs, cx: Cx) -> Result<Messages, ToolError> {
    let caller = Caller::new(&state, &cx);
    let owner = args.asking.user(&caller)?;
    sessions::check("session_id", &args.session_id)?;
    let name = args.session_id.clone();
    let messages = caller.memory.view(move |view| sessions::messages(view, &owner, &name, MOST)).await?;
    Ok(Messages { session_id: args.session_id, count: messages.len() as i64, messages })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::server::tools::schema_of;

    #[test]
    fn what_is_listed_is_no_more_than_what_a_reader_needs() {
        let message = schema_of::<sessions::Message>();
        let members = json!({
            "session_id": {"type": "string"}, "messages": {"type": "array", "items": message},
            "count": {"type": "integer"},
        });
        assert_eq!(schema_of::<Messages>()["properties"], members);
    }
}
