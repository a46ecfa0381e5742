//! Tools that read the graph.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{
    entities as entity_list, json_result, object_schema, read_tool, relations as relation_list, result,
    with_handler,
};
use crate::error::Fault;
use crate::graph::entities::{self, check_names};
use crate::graph::model::{Graph, within};
use crate::graph::slice::{self, SliceRequest};
use crate::graph::{self, read, relations, search};
use crate::server::state::ServerState;
use crate::store::Memory;

/// Without arguments: everything.
#[derive(Deserialize, JsonSchema)]
struct ReadGraph {
    /// Return a page of at most this many entities and relations, 1 to 1000.
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct SearchNodes {
    /// The search query to match against entity names, types, and observation content.
    query: String,
}

#[derive(Deserialize, JsonSchema)]
struct OpenNodes {
    /// An array of entity names to retrieve.
    names: Vec<String>,
}

/// Which relation.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Which {
    /// The entity where it starts.
    pub(super) from: String,
    /// The entity where it ends.
    pub(super) to: String,
    /// The type of the relation.
    pub(super) relation_type: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GetRelations {
    /// The name of the entity.
    entity_name: String,
    /// Relations that start at the entity (out), end at it (in), or both.
    #[serde(default)]
    direction: relations::Direction,
    /// Only relations of this type.
    #[serde(alias = "relation_type")]
    relation_type: Option<String>,
    /// The maximum number, 1 to 1000; default 1000.
    limit: Option<i64>,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let graph = |more: Value| {
        let mut schema = object_schema(json!({"entities": entity_list(), "relations": relation_list()}));
        for (name, member) in more.as_object().into_iter().flatten() {
            schema["properties"][name] = member.clone();
        }
        schema
    };
    let opened = graph(json!({
        "found": {"type": "integer"},
        "ids": ids(),
        "notFound": {"type": "array", "items": {"type": "string"}},
    }));
    let searched = graph(json!({"count": {"type": "integer"}, "ids": ids(), "note": {"type": "string"}}));
    let whole = graph(json!({"nextCursor": {"type": "string"}}));
    vec![
        with_handler(
            state,
            read_graph,
            read_tool(
                "read_graph",
                "Read Graph",
                "Read the entire knowledge graph, or a page of it",
            )
            .output_schema(whole),
        ),
        with_handler(
            state,
            search_nodes,
            read_tool(
                "search_nodes",
                "Search Nodes",
                "Search for nodes in the knowledge graph based on a query. If nothing matches, the closest nodes are \
                 returned with a note that says so",
            )
            .output_schema(searched),
        ),
        with_handler(
            state,
            open_nodes,
            read_tool("open_nodes", "Open Nodes", "Open specific nodes in the knowledge graph by their names")
                .output_schema(opened),
        ),
        {
            let relation = json!({"anyOf": [super::schema_of::<crate::graph::model::Relation>(), {"type": "null"}]});
            with_handler(
                state,
                get_relation,
                read_tool(
                    "get_relation",
                    "Get Relation",
                    "Get one relation with its strength, confidence and metadata",
                )
                .output_schema(object_schema(json!({"relation": relation}))),
            )
        },
        with_handler(
            state,
            get_relations,
            read_tool("get_relations", "Get Relations", "Get the relations from and to an entity")
                .output_schema(object_schema(json!({
                    "relations": relation_list(), "truncated": {"type": "boolean"},
                }))),
        ),
    ]
}

async fn read_graph(state: ServerState, args: ReadGraph, cx: Cx) -> Result<ToolResult, ToolError> {
    let memory = state.memory(&cx);
    let Some(part) = part(args.limit, args.cursor)? else {
        let graph = memory.view(read::all).await?;
        return result(&graph, json!(graph));
    };
    let found = sliced(memory.view(move |view| slice::slice(view, &part)).await?);
    json_result(found)
}

/// Which part of a graph is wanted, if not all of it.
pub(super) fn part(limit: Option<i64>, cursor: Option<String>) -> Result<Option<SliceRequest>, Fault> {
    if limit.is_none() && cursor.is_none() {
        return Ok(None);
    }
    let limit = within("limit", limit, 100, slice::MOST)?;
    Ok(Some(SliceRequest { limit, cursor, ..SliceRequest::default() }))
}

/// A part of a graph, and where the next begins.
pub(super) fn sliced(slice: slice::Slice) -> Value {
    let mut told = json!(slice.graph);
    if let Some(next) = slice.next {
        told["nextCursor"] = next.into();
    }
    told
}

async fn search_nodes(state: ServerState, args: SearchNodes, cx: Cx) -> Result<ToolResult, ToolError> {
    let memory = state.memory(&cx);
    let found = search::find(&state.search, &memory, &args.query).await?;
    let mut structured = json!(found.graph);
    structured["count"] = found.graph.entities.len().into();
    structured["ids"] = ids_of(&memory, &found.graph).await?;
    if let Some(note) = found.note {
        structured["note"] = note.into();
    }
    result(&found.graph, structured)
}

async fn open_nodes(state: ServerState, args: OpenNodes, cx: Cx) -> Result<ToolResult, ToolError> {
    check_names("names", &args.names)?;
    let names = args.names.clone();
    let memory = state.memory(&cx);
    let graph = memory.view(move |view| read::open(view, &names)).await?;
    let found: HashSet<&str> = graph.entities.iter().map(|entity| entity.name.as_str()).collect();
    let missing: Vec<&String> = args.names.iter().filter(|name| !found.contains(name.as_str())).collect();
    let mut structured = json!(graph);
    structured["found"] = found.len().into();
    structured["notFound"] = json!(missing);
    structured["ids"] = ids_of(&memory, &graph).await?;
    result(&graph, structured)
}

/// The schema of [`ids_of`].
fn ids() -> Value {
    json!({"type": "object", "additionalProperties": {"type": "string"}, "description": "The ids of the entities by name"})
}

/// The ids of entities by name. Entities themselves look as in `server-memory`.
async fn ids_of(memory: &Memory, graph: &Graph) -> Result<Value, ToolError> {
    let names: Vec<String> = graph.entities.iter().map(|entity| entity.name.clone()).collect();
    let found = memory.view(move |view| {
        let mut found = Map::new();
        for name in names {
            // Somebody may have renamed it in between.
            if let Some(kept) = entities::find(view, &name)? {
                found.insert(name, graph::ids::of(view, kept.key)?.into());
            }
        }
        Ok(found)
    });
    Ok(Value::Object(found.await?))
}

async fn get_relation(state: ServerState, args: Which, cx: Cx) -> Result<ToolResult, ToolError> {
    let found = state
        .memory(&cx)
        .view(move |view| relations::find(view, &args.from, &args.to, &args.relation_type))
        .await?;
    let relation = found.map(|kept| kept.relation);
    let structured = json!({"relation": relation});
    json_result(structured)
}

async fn get_relations(state: ServerState, args: GetRelations, cx: Cx) -> Result<ToolResult, ToolError> {
    let limit = within("limit", args.limit, 1_000, 1_000)?;
    let (mut found, truncated) = state
        .memory(&cx)
        .view(move |view| {
            let types: Vec<String> = args.relation_type.into_iter().collect();
            let found = relations::some_of(view, &args.entity_name, args.direction, &types, limit)?;
            if found.0.is_empty() && entities::find(view, &args.entity_name)?.is_none() {
                return Err(Fault::no_entity(&args.entity_name));
            }
            Ok(found)
        })
        .await?;
    found.sort_by_key(|kept| kept.id);
    let found: Vec<_> = found.into_iter().map(|kept| kept.relation).collect();
    let structured = json!({"relations": found, "truncated": truncated});
    json_result(structured)
}
