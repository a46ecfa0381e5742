//! Tools that show agents: which there are, one of them, and what it was.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::caller::{Caller, denied};
use super::manage::{AgentArgs, CallerArgs, find_agent};
use super::resources::item;
use crate::agents::address::{self, Address};
use crate::agents::{index, repository, system};
use crate::error::{Code, Fault};
use crate::server::state::ServerState;
use crate::server::tools::{json_result, object_schema, read_tool, schema_of, with_handler};

/// Longest query, in characters.
const MAX_QUERY: usize = 1_000;

#[derive(Deserialize, JsonSchema)]
struct ListAgents {
    /// Only agents that match these words, best first: by name, description, tags and tools.
    query: Option<String>,
    #[serde(flatten)]
    asking: CallerArgs,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let text = || json!({"type": "string"});
    let listed = object_schema(json!({
        "uri": text(), "name": text(), "description": text(), "version": text(), "fully_qualified_name": text(),
        "system": {"type": "boolean"},
    }));
    let versions = || json!({"type": "array", "items": schema_of::<repository::Version>()});
    vec![
        with_handler(
            state,
            list_agents,
            read_tool(
                "list_agents",
                "List Agents",
                "List the agents that can be asked, your own and those of the server, or only those that match a query",
            )
            .output_schema(object_schema(
                json!({"agents": {"type": "array", "items": listed}, "count": {"type": "integer"}}),
            )),
        ),
        with_handler(
            state,
            get_agent,
            read_tool("get_agent", "Get Agent", "Get an agent as a document, with all its versions")
                .output_schema(object_schema(
                    json!({"agent_uri": text(), "agentlet": {"type": "object"}, "history": versions()}),
                )),
        ),
        with_handler(
            state,
            get_agent_history,
            read_tool(
                "get_agent_history",
                "Get Agent History",
                "Get the versions of an agent, oldest first, up to the last 200. Also works for a deleted agent",
            )
            .output_schema(object_schema(
                json!({
                    "agent_name": text(), "history": versions(), "totalVersions": {"type": "integer"},
                    "truncated": {"type": "boolean"},
                }),
            )),
        ),
    ]
}

async fn list_agents(state: ServerState, args: ListAgents, cx: Cx) -> Result<ToolResult, ToolError> {
    let caller = Caller::new(&state, &cx);
    args.asking.user(&caller)?;
    let (own, system) = match &args.query {
        Some(query) if query.trim().is_empty() => {
            return Err(Fault::input("query", "must not be empty; leave it out to list all agents").into());
        }
        Some(query) if query.chars().count() > MAX_QUERY => {
            return Err(Fault::input("query", format!("must have at most {MAX_QUERY} characters")).into());
        }
        Some(query) => (index::find(&state.search, &caller.memory, query).await?, index::find_system(query)),
        None => (caller.memory.view(repository::all).await?, system::all().iter().collect()),
    };
    let mut agents: Vec<Value> = own
        .iter()
        .map(|kept| item(&address::user(&kept.owner, &kept.agent.name), &kept.agent, false))
        .collect();
    agents.extend(system.into_iter().map(|agent| item(&address::system(&agent.name), agent, true)));
    let answer = json!({"agents": agents, "count": agents.len()});
    json_result(answer)
}

async fn get_agent(state: ServerState, args: AgentArgs, cx: Cx) -> Result<ToolResult, ToolError> {
    let (caller, found) = find_agent(&state, &cx, &args).await?;
    let history = match found.kept {
        Some(kept) => {
            let name = found.agent.name.clone();
            caller.memory.view(move |view| repository::history(view, &kept.owner, &name)).await?
        }
        None => Vec::new(),
    };
    let answer = json!({"agent_uri": found.uri, "agentlet": found.agent.document(), "history": history});
    json_result(answer)
}

async fn get_agent_history(state: ServerState, args: AgentArgs, cx: Cx) -> Result<ToolResult, ToolError> {
    let caller = Caller::new(&state, &cx);
    args.asking.user(&caller)?;
    let address = Address::parse("agent_uri", args.uri()?)?;
    let name = address.name().to_owned();
    let wanted = name.clone();
    let owners = caller.memory.view(move |view| repository::owners(view, &wanted)).await?;
    let Some((owner, total)) = whose(&caller, &address, owners)? else {
        let why = match system::named(&name) {
            Some(agent) => {
                format!("Agent not found: {:?} comes with the server and has no history", agent.name)
            }
            None => format!("Agent not found: there never was an agent {name:?}. Use list_agents to see all"),
        };
        caller.memory.exists().await?;
        return Err(Fault::new(Code::AgentNotFound, format!("agent_uri: {why}")).into());
    };
    let wanted = name.clone();
    let history = caller.memory.view(move |view| repository::history(view, &owner, &wanted)).await?;
    let answer = json!({
        "agent_name": name, "totalVersions": total, "truncated": (history.len() as i64) < total, "history": history,
    });
    json_result(answer)
}

/// Whose agent is meant, of those who ever had one of its name, and how many versions that has had.
fn whose(
    caller: &Caller,
    address: &Address,
    owners: Vec<(String, i64)>,
) -> Result<Option<(String, i64)>, Fault> {
    let of = |name: &str| owners.iter().find(|(owner, _)| owner == name).cloned();
    match address {
        Address::System(_) => return Ok(None),
        Address::User { owner, .. } if caller.is_alias(owner) && of(&caller.owner()).is_some() => {
            return Ok(of(&caller.owner()));
        }
        Address::User { owner, .. } => match of(owner) {
            Some(found) => return Ok(Some(found)),
            None if caller.is_tenant(owner) => {}
            None if caller.is(owner) => return Ok(None),
            // Whether there is one of that name is not said, unless anybody could ask for it.
            None if caller.is_anybody() => return Ok(None),
            None => return Err(denied()),
        },
        _ => {}
    }
    match (of(&caller.owner()), owners.as_slice()) {
        (Some(own), _) => Ok(Some(own)),
        (None, [only]) => Ok(Some(only.clone())),
        (None, []) => Ok(None),
        (None, several) => {
            let name = address.name();
            let all: Vec<_> = several.iter().take(10).map(|(owner, _)| address::user(owner, name)).collect();
            let reason =
                format!("several users have had an agent of this name, say which: {}", all.join(", "));
            Err(Fault::input("agent_uri", reason))
        }
    }
}
