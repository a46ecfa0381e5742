//! [`Toolbox`]: the tools that an agent gets at, and how they are called.
//!
//! Tools are looked for among the memory's own, and then behind the door that the memory was given, where those of all
//! servers are. What is called is called in the name of whoever asked the agent, and in the memory that they asked in.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_protocol::{Error, Json, Limits, Method, Params, Symbol};
use tidegate_server::{Cx, Principal, Server, ServerDoor};
use tidegate_service::{Call, Door, Reply};

use super::tool_names::{alias, is_here, names, own_names};
use super::tool_output::{ToolOutput, of_contents, of_result};
use crate::agents::agentlet::{Agent, Named};
use crate::models::{ANSWER, ToolOffer};
use crate::server::runs::{DEPTH_META, RUN_META, depth};
use crate::server::state::ServerState;
use crate::server::tenant;
use crate::uri::TENANT_NAMES;

/// How many pages of a list of tools are read.
const PAGES: usize = 50;
/// The tool by which an agent reads the resources that it is about.
const READ: &str = "read_resource";
/// Where agents look for tools.
#[derive(Clone)]
pub(crate) struct Toolbox {
    pub(crate) state: ServerState,
    /// The memory's own tools, made when they are first needed.
    own: Arc<OnceLock<ServerDoor>>,
}

/// A tool that an agent gets at.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct AgentTool {
    /// As it is offered to the model.
    pub(crate) offer: ToolOffer,
    /// What it is called where it is.
    name: String,
    place: ToolLocation,
    /// Whether it only reads.
    reads: bool,
}

/// Where a tool is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
enum ToolLocation {
    /// It is one of the memory's own.
    Here,
    /// Behind the door that the memory was given.
    Outside,
    /// It is [`READ`].
    Resources,
}

/// In whose name a tool is called, and for how long.
#[derive(Clone, Copy)]
pub(crate) struct ToolCaller<'a> {
    pub(crate) cx: &'a Cx,
    pub(crate) until: Instant,
    /// What the call belongs to.
    pub(crate) run: &'a str,
    /// Who asked the agent.
    pub(crate) owner: &'a str,
}

impl Toolbox {
    pub(crate) fn new(state: &ServerState) -> Toolbox {
        Toolbox { state: state.clone(), own: Arc::default() }
    }

    /// The memory's own tools, behind a door of their own. That agents can be asked there, too, is what makes this a
    /// chain: each link is made when it is needed, and [`MAX_DEPTH`](crate::server::runs::MAX_DEPTH) ends it.
    fn own(&self) -> &ServerDoor {
        self.own.get_or_init(|| {
            let server = Server::new("tidegate-memory", env!("CARGO_PKG_VERSION"));
            (self.state.own_tools)(server, &self.state).build()
        })
    }

    /// Whether whoever asked the agent could do this where callers come in: at this endpoint, with these scopes.
    fn allows(&self, cx: &Cx, method: Method, params: &Value) -> Result<(), Error> {
        let Some(allows) = &self.state.settings.allows else { return Ok(()) };
        let params = Params::parse(&Json::from(params.clone()), &Limits::default());
        allows(&Call::new(method, params.map_err(Error::invalid_params)?, cx.on_behalf()))
    }

    /// The tools that an agent names, and the names of those that are not there.
    pub(crate) async fn tools(
        &self,
        cx: &Cx,
        until: Instant,
        agent: &Agent,
    ) -> (Vec<AgentTool>, Vec<String>) {
        let (mut tools, mut missing, mut taken) =
            (Vec::new(), Vec::new(), HashSet::from([ANSWER.to_owned()]));
        for (wanted, found) in agent.tools.iter().zip(self.find(cx, until, &agent.tools).await) {
            let Some((mut tool, place)) = found else {
                missing.push(names(wanted)[0].clone());
                continue;
            };
            let name = tool["name"].as_str().unwrap_or_default().to_owned();
            if tools.iter().any(|known: &AgentTool| known.name == name && known.place == place) {
                continue;
            }
            if place == ToolLocation::Here
                && let Some(properties) = tool["inputSchema"]["properties"].as_object_mut()
            {
                // Whose memory it is, is not for the model to say.
                TENANT_NAMES.iter().chain(&["user_id"]).for_each(|name| drop(properties.remove(*name)));
            }
            let mut description = tool["description"].as_str().unwrap_or_default().to_owned();
            if let Some(usage) = &wanted.usage {
                description.push_str(&format!("\nUse it {usage}"));
            }
            let offer = ToolOffer {
                name: alias(&name, &mut taken),
                description,
                input_schema: tool.get("inputSchema").cloned().unwrap_or_else(|| json!({"type": "object"})),
            };
            let reads = tool["annotations"]["readOnlyHint"] == true;
            tools.push(AgentTool { offer, name, place, reads });
        }
        tools.extend(resource_tool(agent, &mut taken));
        (tools, missing)
    }

    /// Those of the named tools that cannot be there, by their place in the list: the memory does not have them, and
    /// nobody else is meant.
    pub(crate) async fn absent(&self, cx: &Cx, until: Instant, named: &[Named]) -> Vec<usize> {
        let alone = self.state.settings.tools.is_none();
        let found = self.find(cx, until, named).await;
        let absent = |(at, found): (usize, Option<_>)| {
            let named = &named[at];
            let meant_here = is_here(named) && (alone || named.mcp_server.is_some());
            (found.is_none() && meant_here).then_some(at)
        };
        found.into_iter().enumerate().filter_map(absent).collect()
    }

    /// Where each of the named tools is.
    async fn find(&self, cx: &Cx, until: Instant, named: &[Named]) -> Vec<Option<(Value, ToolLocation)>> {
        if named.is_empty() {
            return Vec::new();
        }
        let outside = match &self.state.settings.tools {
            Some(door) => list(door, cx, until).await,
            None => Vec::new(),
        };
        let mut inside = list(self.own(), cx, until).await;
        inside.retain(|tool| {
            let params = json!({"name": tool["name"]});
            self.allows(cx, Method::ToolsCall, &params).is_ok()
        });
        let find = |listed: &[Value], names: &[String]| {
            names.iter().find_map(|name| listed.iter().find(|tool| tool["name"] == **name).cloned())
        };
        let place = |wanted: &Named| {
            let here = || Some((find(&inside, &own_names(wanted))?, ToolLocation::Here));
            here().or_else(|| Some((find(&outside, &names(wanted))?, ToolLocation::Outside)))
        };
        named.iter().map(place).collect()
    }

    /// Calls a tool. Whatever goes wrong is told to the model, which may know what to do about it.
    pub(crate) async fn call(
        &self,
        by: ToolCaller<'_>,
        tool: &AgentTool,
        mut arguments: Value,
    ) -> ToolOutput {
        let ToolCaller { cx, until, .. } = by;
        let meta = json!({DEPTH_META: depth(cx) + 1, RUN_META: by.run});
        if let (ToolLocation::Here, Some(members)) = (tool.place, arguments.as_object_mut()) {
            TENANT_NAMES.iter().chain(&["user_id"]).for_each(|name| drop(members.remove(*name)));
            if cx.principal().subject.is_none() && AS_USER.contains(&tool.name.as_str()) {
                members.insert("user_id".to_owned(), by.owner.into());
            }
        }
        let params = json!({"name": tool.name, "arguments": arguments, "_meta": meta});
        let reply = match (&self.state.settings.tools, tool.place) {
            (_, ToolLocation::Resources) => return self.read(cx, until, tool, &arguments).await,
            (Some(door), ToolLocation::Outside) => {
                answer(door, Method::ToolsCall, params, whose(cx), until).await
            }
            _ => match self.allows(cx, Method::ToolsCall, &params) {
                Ok(()) => answer(self.own(), Method::ToolsCall, params, here(cx), until).await,
                Err(error) => Reply::Error(error),
            },
        };
        match reply {
            Reply::Complete(result) => of_result(&result),
            Reply::Error(error) if error.symbol() == Symbol::MissingCapability => ToolOutput::failed(ASKS),
            Reply::Error(error) => ToolOutput::failed(error.message().to_owned()),
            Reply::InputRequired(_) => ToolOutput::failed(ASKS),
            Reply::Task(_) => ToolOutput::failed("The tool goes on as a task, which agents cannot wait for"),
            Reply::Subscription(_) => ToolOutput::failed("The tool gave no result"),
        }
    }

    /// Reads one of the resources that an agent is about.
    async fn read(&self, cx: &Cx, until: Instant, tool: &AgentTool, arguments: &Value) -> ToolOutput {
        let uris = &tool.offer.input_schema["properties"]["uri"]["enum"];
        let wanted = uris.as_array().into_iter().flatten().find(|uri| **uri == arguments["uri"]);
        let Some(uri) = wanted else { return ToolOutput::failed(format!("uri: must be one of {uris}")) };
        let params = json!({"uri": uri, "_meta": {DEPTH_META: depth(cx) + 1}});
        let mut reply = match self.allows(cx, Method::ResourcesRead, &params) {
            Ok(()) => answer(self.own(), Method::ResourcesRead, params.clone(), here(cx), until).await,
            Err(error) => Reply::Error(error),
        };
        if let (Reply::Error(_), Some(door)) = (&reply, &self.state.settings.tools) {
            reply = answer(door, Method::ResourcesRead, params, whose(cx), until).await;
        }
        match reply {
            Reply::Complete(result) => of_contents(&result),
            Reply::Error(error) => ToolOutput::failed(error.message().to_owned()),
            _ => ToolOutput::failed("The resource cannot be read"),
        }
    }
}

/// What is told of a tool that wants to ask the client something.
const ASKS: &str = "The tool wanted to ask the user something, which is not possible while an agent runs: it was not \
                    done. Go on without it, and say so";
/// The memory's own tools that are about somebody's agents or sessions.
const AS_USER: [&str; 9] = [
    "ask_agent",
    "create_agent",
    "update_agent",
    "delete_agent",
    "get_agent",
    "get_agent_history",
    "list_agents",
    "list_sessions",
    "get_session",
];

/// The tool by which an agent reads its resources, if it has any.
fn resource_tool(agent: &Agent, taken: &mut HashSet<String>) -> Option<AgentTool> {
    let mut uris: Vec<&str> = Vec::new();
    let mut description = "Read one of these resources:".to_owned();
    for resource in &agent.resources {
        let uri = resource.as_str().or_else(|| resource["uri"].as_str());
        let Some(uri) = uri.or_else(|| resource["resource_uri"].as_str()) else { continue };
        if !uris.contains(&uri) {
            uris.push(uri);
            let about = resource["description"].as_str().or_else(|| resource["usage"].as_str());
            description.push_str(&format!("\n{uri}: {}", about.unwrap_or("no description")));
        }
    }
    let input_schema = json!({
        "type": "object", "properties": {"uri": {"type": "string", "enum": uris}}, "required": ["uri"],
    });
    (!uris.is_empty()).then(|| AgentTool {
        offer: ToolOffer { name: alias(READ, taken), description, input_schema },
        name: READ.to_owned(),
        place: ToolLocation::Resources,
        reads: true,
    })
}

/// Who calls the tools of other servers.
fn whose(cx: &Cx) -> CallAs<'_> {
    CallAs(cx, cx.principal().clone())
}

/// Who calls the memory's own tools. A tenant that was chosen is known by then: there is no other for the model.
fn here(cx: &Cx) -> CallAs<'_> {
    let mut principal = cx.principal().clone();
    if let Some(chosen) = tenant::chosen(cx) {
        principal.tenant = Some(chosen.into());
    }
    CallAs(cx, principal)
}

/// Who calls, and in which of their calls.
struct CallAs<'a>(&'a Cx, Principal);

async fn answer<D: Door>(
    door: &D,
    method: Method,
    params: Value,
    whose: CallAs<'_>,
    until: Instant,
) -> Reply {
    let CallAs(cx, principal) = whose;
    // An agent reaches what whoever asked it could reach, at the same endpoint and with the same scopes.
    let mut context = cx.on_behalf();
    context.principal = principal;
    context.deadline = Some(until);
    // Whoever stops waiting for the agent stops what it has begun.
    let _stop = context.cancel.clone().drop_guard();
    let params = match Params::parse(&Json::from(params), &Limits::default()) {
        Ok(params) => params,
        Err(fault) => return Reply::Error(Error::invalid_params(fault)),
    };
    match door.answer(Call::new(method, params, context)).await {
        Ok(reply) => reply,
        Err(never) => match never {},
    }
}

/// All tools behind a door, as far as it says.
async fn list<D: Door>(door: &D, cx: &Cx, until: Instant) -> Vec<Value> {
    let (mut tools, mut params) = (Vec::new(), json!({}));
    for _ in 0..PAGES {
        let Reply::Complete(page) = answer(door, Method::ToolsList, params, whose(cx), until).await else {
            break;
        };
        let mut page: Value = page.to().unwrap_or_default();
        if let Some(Value::Array(more)) = page.get_mut("tools").map(Value::take) {
            tools.extend(more);
        }
        let Some(next) = page["nextCursor"].as_str() else { break };
        params = json!({"cursor": next});
    }
    tools
}
