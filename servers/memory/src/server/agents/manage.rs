//! Tools that make, change and delete agents.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::caller::{Caller, denied};
use super::find;
use super::toolbox::Toolbox;
use crate::agents::agentlet::{self, Agent};
use crate::agents::version::{is_before, raised};
use crate::agents::{address, check, repository};
use crate::error::{Code, Fault};
use crate::models;
use crate::server::state::ServerState;
use crate::server::tools::{json_result, object_schema, with_handler, write_tool};
use crate::store::Change;
use crate::uri::qualified;

/// How long servers may take to say which tools they have.
const WITHIN: Duration = Duration::from_secs(10);

/// The parts, or all of it in one document.
#[derive(Deserialize, JsonSchema)]
struct CreateAgent {
    /// A name that is unique among your agents: letters, digits and hyphens.
    agent_name: Option<String>,
    /// The system prompt: instructions for the agent.
    description: Option<String>,
    /// The JSON Schema of the answers, for an object.
    #[schemars(with = "Option<Document>")]
    output_schema: Option<Value>,
    /// The tools that the agent may use: names, or {mcp_server, tool_name, usage}.
    #[schemars(with = "Option<Vec<Document>>")]
    tools: Option<Vec<Value>>,
    /// The model that the agent prefers.
    model: Option<String>,
    /// Tags to find the agent by.
    tags: Option<Vec<String>>,
    /// Instead of the above: the whole agent-let as a JSON document, or as its text.
    #[schemars(with = "Option<Document>")]
    agentlet: Option<Value>,
    /// The tenant. Optional: your own, or the default one.
    #[expect(dead_code, reason = "whose memory it is, is read where all tools are told")]
    tenant_id: Option<String>,
    /// Your user id. Optional.
    user_id: Option<String>,
}

/// A JSON object, or a text that stands for one.
struct Document;

impl JsonSchema for Document {
    fn schema_name() -> Cow<'static, str> {
        "Document".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": ["object", "string"]})
    }
}

/// Who asks, if they say.
#[derive(Deserialize, JsonSchema)]
pub(super) struct CallerArgs {
    /// The tenant. Optional: your own, or the default one.
    #[expect(dead_code, reason = "whose memory it is, is read where all tools are told")]
    tenant_id: Option<String>,
    /// Your user id. Optional.
    user_id: Option<String>,
}

impl CallerArgs {
    /// Who that is, if it is true.
    pub(super) fn user(&self, caller: &Caller) -> Result<String, Fault> {
        caller.user(self.user_id.as_deref())
    }
}

/// Which agent, by its address or its name.
#[derive(Deserialize, JsonSchema)]
pub(super) struct AgentArgs {
    /// The agent: its name or its URI.
    agent_uri: Option<String>,
    /// Instead of `agent_uri`: its name.
    agent_name: Option<String>,
    #[serde(flatten)]
    pub(super) asking: CallerArgs,
}

impl AgentArgs {
    pub(super) fn uri(&self) -> Result<&str, Fault> {
        let given = self.agent_uri.as_deref().or(self.agent_name.as_deref());
        given.ok_or_else(|| Fault::input("agent_uri", "is required: name the agent or give its URI"))
    }
}

#[derive(Deserialize, JsonSchema)]
struct UpdateAgent {
    #[serde(flatten)]
    which: AgentArgs,
    /// The new system prompt.
    description: Option<String>,
    /// The new JSON Schema of answers.
    #[schemars(with = "Option<Document>")]
    output_schema: Option<Value>,
    /// The new list of tools.
    #[schemars(with = "Option<Vec<Document>>")]
    tools: Option<Vec<Value>>,
    /// The new model.
    model: Option<String>,
    /// The new list of tags.
    tags: Option<Vec<String>>,
    /// The new version. By default, the last number of the current version is incremented.
    version: Option<String>,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let done = || {
        object_schema(json!({
            "status": {"const": "success"}, "agent_uri": {"type": "string"}, "message": {"type": "string"},
            "version": {"type": "string"},
        }))
    };
    vec![
        with_handler(
            state,
            create_agent,
            write_tool(
                "create_agent",
                "Create Agent",
                "Create an agent from a system prompt, a schema for its answers, and the tools that it may use. Ask it with \
                 ask_agent",
            )
            .output_schema(done()),
        ),
        with_handler(
            state,
            update_agent,
            write_tool("update_agent", "Update Agent", "Change an agent. Fields that are not given stay as they are, and its history is kept")
                .output_schema(done()),
        ),
        with_handler(
            state,
            delete_agent,
            write_tool("delete_agent", "Delete Agent", "Delete an agent. Its history is kept")
                .destructive(true)
                .output_schema(done()),
        ),
    ]
}

/// The agent that the arguments describe.
fn described(args: &CreateAgent) -> Result<Agent, Fault> {
    let mut agent = match (&args.agentlet, &args.agent_name, &args.description, &args.output_schema) {
        (Some(document), ..) => {
            let mut agent = Agent::read(written("agentlet", document)?.as_ref())?;
            if let Some(name) = &args.agent_name {
                agent.name.clone_from(name);
            }
            agent
        }
        (None, Some(name), Some(description), Some(schema)) => Agent {
            name: name.clone(),
            title: None,
            description: description.clone(),
            version: "1.0.0".to_owned(),
            full_name: None,
            schema: written("output_schema", schema)?.into_owned(),
            tools: Vec::new(),
            resources: Vec::new(),
            model: None,
            tags: Vec::new(),
            extra: Map::new(),
        },
        (None, name, description, _) => {
            let missing = match (name, description) {
                (None, _) => "agent_name",
                (_, None) => "description",
                _ => "output_schema",
            };
            let reason = "is required: give agent_name, description and output_schema, or an agentlet";
            return Err(Fault::input(missing, reason));
        }
    };
    put(&mut agent, args.output_schema.as_ref(), args.tools.as_ref(), args.model.as_ref())?;
    if let Some(tags) = &args.tags {
        agent.tags.clone_from(tags);
    }
    check::name("agent_name", &agent.name)?;
    agent.check("")?;
    Ok(agent)
}

/// The document, also where its text was given.
fn written<'a>(field: &str, given: &'a Value) -> Result<Cow<'a, Value>, Fault> {
    match given {
        Value::String(text) => serde_json::from_str(text).map(Cow::Owned).map_err(|error| {
            Fault::input(field, format!("must be a JSON object, but its text is not valid JSON: {error}"))
        }),
        given => Ok(Cow::Borrowed(given)),
    }
}

/// Refuses an agent that names tools which cannot be there.
async fn has_tools(state: &ServerState, cx: &Cx, agent: &Agent) -> Result<(), Fault> {
    let until = Instant::now() + WITHIN;
    let absent = Toolbox::new(state).absent(cx, until, &agent.tools).await;
    match absent.first() {
        None => Ok(()),
        Some(at) => {
            let name = &agent.tools[*at].tool_name;
            let reason = format!("there is no tool {name:?} in the memory");
            Err(Fault::input(&format!("tools[{at}]"), reason))
        }
    }
}

/// Puts what is given into an agent.
fn put(
    agent: &mut Agent,
    schema: Option<&Value>,
    tools: Option<&Vec<Value>>,
    model: Option<&String>,
) -> Result<(), Fault> {
    if let Some(schema) = schema {
        let schema = &*written("output_schema", schema)?;
        check::schema("output_schema", schema)?;
        // A whole agent-let may stand where its schema is wanted: then its tools are meant, too, and what else it says.
        let extra = schema.as_object().map(agentlet::extra).transpose()?.unwrap_or_default();
        if let Some(listed) = extra.get("tools") {
            agent.tools = agentlet::tools("output_schema.json_schema_extra.tools", listed)?;
        }
        if let Some(Value::Array(listed)) = extra.get("resources") {
            agent.resources.clone_from(listed);
        }
        agent.extra.extend(agentlet::unused(Value::Object(extra)));
        agent.schema = schema.as_object().map(agentlet::bare).unwrap_or_default();
    }
    if let Some(tools) = tools {
        agent.tools = agentlet::tools("tools", &Value::Array(tools.clone()))?;
    }
    if let Some(model) = model {
        models::check("model", Some(model))?;
        agent.model = Some(model.clone());
    }
    Ok(())
}

fn done(uri: &str, message: &str, version: &str) -> Result<ToolResult, ToolError> {
    let answer = json!({"status": "success", "agent_uri": uri, "message": message, "version": version});
    json_result(answer)
}

async fn create_agent(state: ServerState, args: CreateAgent, cx: Cx) -> Result<ToolResult, ToolError> {
    let caller = Caller::new(&state, &cx);
    let owner = caller.user(args.user_id.as_deref())?;
    let agent = described(&args)?;
    has_tools(&state, &cx, &agent).await?;
    let (whose, name, version) = (owner.clone(), agent.name.clone(), agent.version.clone());
    caller.memory.change("create_agent", move |change| repository::create(change, &owner, &agent)).await?;
    // The agent is there, whether or not its shortest URI can be found now.
    let uri = find::uri(&state, &caller, &whose, &name).await;
    let uri = uri.unwrap_or_else(|_| qualified(&address::user(&whose, &name), caller.chosen.as_deref()));
    done(&uri, "Agent created successfully", &version)
}

pub(super) async fn find_agent(
    state: &ServerState,
    cx: &Cx,
    which: &AgentArgs,
) -> Result<(Caller, find::FoundAgent), Fault> {
    let caller = Caller::new(state, cx);
    which.asking.user(&caller)?;
    let found = find::agent(&caller, "agent_uri", which.uri()?).await?;
    Ok((caller, found))
}

/// The agent that is to be changed, which must be one that was made.
async fn own(state: &ServerState, cx: &Cx, which: &AgentArgs) -> Result<(Caller, find::FoundAgent), Fault> {
    let (caller, found) = find_agent(state, cx, which).await?;
    match (&found.kept, caller.named()) {
        (Some(kept), Some(who)) if kept.owner != who => {
            let whose = &kept.owner;
            let reason = format!(
                "{} is not yours: it belongs to {whose:?}, and only its owner can change it",
                found.uri
            );
            Err(Fault::input("agent_uri", reason))
        }
        (Some(_), _) => Ok((caller, found)),
        (None, _) => Err(Fault::input(
            "agent_uri",
            format!("{} comes with the server and cannot be changed", found.uri),
        )),
    }
}

async fn update_agent(state: ServerState, args: UpdateAgent, cx: Cx) -> Result<ToolResult, ToolError> {
    let (caller, found) = own(&state, &cx, &args.which).await?;
    let Some(kept) = found.kept else { return Err(denied().into()) };
    if args.tools.is_some() || args.output_schema.is_some() {
        let mut agent = kept.agent.clone();
        args.put(&mut agent)?;
        has_tools(&state, &cx, &agent).await?;
    }
    let updated = caller.memory.change("update_agent", move |change| {
        // As it is now: somebody else may have changed it in between.
        let kept = still(change, &kept)?;
        let mut agent = kept.agent.clone();
        args.put(&mut agent)?;
        if agent == kept.agent && args.version.as_ref().is_none_or(|version| *version == agent.version) {
            return Ok((agent.version, false));
        }
        agent.version = match args.version {
            None => raised(&agent.version),
            Some(version) => {
                check::version("version", &version)?;
                if is_before(&version, &agent.version) {
                    let reason = format!("must not be lower than the current version, {}", agent.version);
                    return Err(Fault::input("version", reason));
                }
                version
            }
        };
        agent.check("")?;
        repository::update(change, &kept, &agent)?;
        Ok((agent.version, true))
    });
    let (version, changed) = updated.await?;
    if !changed {
        return done(&found.uri, "Nothing changed: the agent is already like that", &version);
    }
    done(&found.uri, "Agent updated successfully", &version)
}

impl UpdateAgent {
    /// Puts what is given into an agent, all but its version.
    fn put(&self, agent: &mut Agent) -> Result<(), Fault> {
        if let Some(description) = &self.description {
            agent.description.clone_from(description);
        }
        if let Some(tags) = &self.tags {
            agent.tags.clone_from(tags);
        }
        put(agent, self.output_schema.as_ref(), self.tools.as_ref(), self.model.as_ref())
    }
}

/// The agent as it is now, if it is still there.
fn still(change: &mut Change<'_>, kept: &repository::AgentRow) -> Result<repository::AgentRow, Fault> {
    let (owner, name) = (&kept.owner, &kept.agent.name);
    repository::find(change, owner, name)?.ok_or_else(|| {
        Fault::new(Code::AgentNotFound, format!("agent_uri: Agent not found: {name:?} was deleted"))
    })
}

async fn delete_agent(state: ServerState, args: AgentArgs, cx: Cx) -> Result<ToolResult, ToolError> {
    let (caller, found) = own(&state, &cx, &args).await?;
    let Some(kept) = found.kept else { return Err(denied().into()) };
    let delete = caller.memory.change("delete_agent", move |change| {
        let kept = still(change, &kept)?;
        repository::delete(change, &kept)
    });
    delete.await?;
    done(&found.uri, "Agent deleted successfully", &found.agent.version)
}
