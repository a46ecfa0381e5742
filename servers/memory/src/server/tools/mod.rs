//! The tools: names and results as assistants know them from `server-memory`, and what DevFlow adds.
//!
//! Where the two disagree about arguments, both shapes are taken. Results have the members of both.

pub(crate) mod arguments;
mod change;
mod documents;
mod edit;
mod embeddings;
mod files;
mod history;
mod ingest;
mod knowledge_base;
mod list;
mod lookup;
mod properties;
mod read;
mod semantic;
mod undo;
mod walk;

use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tidegate_server::{Cx, Json, Server, Tool, ToolError, ToolResult};
use tidegate_service::schema::{remove_sizes, restated};

use super::state::ServerState;
use super::tenant;
use crate::error::{Code, Fault};
use crate::graph::model::{Entity, Relation};
use crate::store::Change;

/// The tools that are listed if nobody wants to see all of them: those of DevFlow and of Percolate, and what the guide
/// tells people to ask for.
pub(crate) const CORE: [&str; 24] = [
    "ask_agent",
    "search_knowledge_base",
    "create_agent",
    "lookup_entity",
    "create_entities",
    "create_relations",
    "add_observations",
    "delete_entities",
    "delete_observations",
    "delete_relations",
    "get_relation",
    "update_relation",
    "read_graph",
    "search_nodes",
    "open_nodes",
    "semantic_search",
    "get_entity_embedding",
    "get_entity_history",
    "get_relation_history",
    "get_graph_at_time",
    "get_decayed_graph",
    "undo",
    "list_changes",
    "ingest_document",
];

/// The tools of the graph.
pub(crate) fn add_graph(server: Server, state: &ServerState) -> Server {
    let server = change::tools(state).into_iter().fold(server, Server::tool);
    let server = read::tools(state).into_iter().fold(server, Server::tool);
    let server = history::tools(state).into_iter().fold(server, Server::tool);
    let server = walk::tools(state).into_iter().fold(server, Server::tool);
    let server = list::tools(state).into_iter().fold(server, Server::tool);
    let server = edit::tools(state).into_iter().fold(server, Server::tool);
    let server = properties::tools(state).into_iter().fold(server, Server::tool);
    let server = undo::tools(state).into_iter().fold(server, Server::tool);
    files::tools(state).into_iter().fold(server, Server::tool)
}

/// The tools of documents, and of what is found in them and in the graph together.
pub(crate) fn add_documents(server: Server, state: &ServerState) -> Server {
    let server = ingest::tools(state).into_iter().fold(server, Server::tool);
    let server = documents::tools(state).into_iter().fold(server, Server::tool);
    let server = knowledge_base::tools(state).into_iter().fold(server, Server::tool);
    lookup::tools(state).into_iter().fold(server, Server::tool)
}

/// The tools that find by meaning and show vectors.
pub(crate) fn add_embeddings(server: Server, state: &ServerState) -> Server {
    embeddings::tools(state).into_iter().fold(server, Server::tool)
}

impl From<Fault> for ToolError {
    fn from(fault: Fault) -> ToolError {
        // What the caller can fix is said plainly; programs have the code, and where it is about a field, which.
        let mut data = json!({"code": fault.code.as_str()});
        if let Some((field, reason)) = fault.field() {
            (data["field"], data["reason"]) = (field.into(), reason.into());
        }
        let symbol = match fault.code {
            Code::InvalidInput | Code::InvalidEntityName => tidegate_server::Symbol::Validation,
            Code::AgentNotFound => tidegate_server::Symbol::AgentNotFound,
            Code::TenantNotFound => tidegate_server::Symbol::TenantNotFound,
            Code::Unavailable => tidegate_server::Symbol::CircuitOpen,
            _ => tidegate_server::Symbol::ToolExecution,
        };
        ToolError::new(symbol, fault.message).data(Json::from(data))
    }
}

/// A result in two forms: `text` as `server-memory` writes it, and structured.
pub(crate) fn result(text: &impl Serialize, structured: Value) -> Result<ToolResult, ToolError> {
    let text = serde_json::to_string_pretty(text).map_err(ToolError::from_error)?;
    Ok(ToolResult::text(text).structured(Json::from(structured)))
}

/// Makes a change in the memory of whoever calls.
pub(crate) async fn change<T: Send + 'static>(
    state: &ServerState,
    cx: &Cx,
    what: &'static str,
    work: impl FnOnce(&mut Change<'_>) -> Result<T, Fault> + Send + 'static,
) -> Result<T, ToolError> {
    Ok(state.memory(cx).change(what, work).await?)
}

/// The same value as text and structured.
pub(crate) fn json_result(value: Value) -> Result<ToolResult, ToolError> {
    let text = serde_json::to_string_pretty(&value).map_err(ToolError::from_error)?;
    Ok(ToolResult::text(text).structured(Json::from(value)))
}

/// The tool with its handler, which gets at the memory.
pub(crate) fn with_handler<A, Fut>(
    state: &ServerState,
    handler: fn(ServerState, A, Cx) -> Fut,
    tool: Tool,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    Fut: Future<Output = Result<ToolResult, ToolError>> + Send + 'static,
{
    let (state, is_authenticated) = (state.clone(), state.settings.is_authenticated);
    arguments::closed(tool, is_authenticated, move |args: A, cx: Cx| {
        let work = tenant::admit(&cx).map(|()| handler(state.clone(), args, cx));
        async move { work?.await }
    })
}

/// The same for a handler that returns a value, whose type is the schema of what the tool returns.
pub(crate) fn with_typed_handler<A, T, Fut>(
    state: &ServerState,
    handler: fn(ServerState, A, Cx) -> Fut,
    tool: Tool,
) -> Tool
where
    A: DeserializeOwned + JsonSchema + Send + 'static,
    T: Serialize + JsonSchema + 'static,
    Fut: Future<Output = Result<T, ToolError>> + Send + 'static,
{
    let (state, is_authenticated) = (state.clone(), state.settings.is_authenticated);
    arguments::closed(tool.output_schema(schema_of::<T>()), is_authenticated, move |args: A, cx: Cx| {
        let work = tenant::admit(&cx).map(|()| handler(state.clone(), args, cx));
        async move { json_result(serde_json::to_value(work?.await?).map_err(ToolError::from_error)?) }
    })
}

/// A tool that changes things in this memory only.
pub(crate) fn write_tool(name: &str, title: &str, description: &str) -> Tool {
    memory_tool(name, title, description).destructive(false)
}

/// A tool that only reads this memory.
pub(crate) fn read_tool(name: &str, title: &str, description: &str) -> Tool {
    memory_tool(name, title, description).read_only().idempotent()
}

/// A tool of this memory. Arguments may be spelled like DevFlow's schemas have them, or like its code.
fn memory_tool(name: &str, title: &str, description: &str) -> Tool {
    Tool::new(name).title(title).description(description).open_world(false).any_case()
}

/// The schema of an object with these members, all of which are there.
pub(crate) fn object_schema(members: Value) -> Value {
    let required: Vec<_> = members.as_object().into_iter().flatten().map(|(name, _)| name.clone()).collect();
    restated(&json!({"type": "object", "properties": members, "required": required}))
}

/// The schema of a type, without what only generators of schemas need.
pub(crate) fn schema_of<T: JsonSchema>() -> Value {
    let mut generator = schemars::generate::SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .into_generator();
    let mut schema = generator.root_schema_for::<T>().to_value();
    if let Some(members) = schema.as_object_mut() {
        members.remove("title");
        members.remove("$schema");
    }
    remove_sizes(&mut schema);
    restated(&schema)
}

/// The schema of a list of entities.
pub(crate) fn entities() -> Value {
    json!({"type": "array", "items": schema_of::<Entity>()})
}

/// The schema of a list of relations.
pub(crate) fn relations() -> Value {
    json!({"type": "array", "items": schema_of::<Relation>()})
}
