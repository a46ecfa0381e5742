//! Tools that read the graph.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{entities as entity_list, memory, object, on, reading, relations as relation_list, told};
use crate::Recall;
use crate::graph::entities::check_names;
use crate::graph::model::within;
use crate::graph::slice::{self, Part};
use crate::graph::{read, relations, search};
use crate::store::Fault;

/// Without arguments: everything.
#[derive(Deserialize, JsonSchema)]
struct ReadGraph {
    /// Means nothing. Some clients send it, because they cannot send no arguments.
    #[allow(dead_code)]
    random_string: Option<String>,
    /// Only a part: this many entities and relations together, 1 to 1000.
    limit: Option<i64>,
    /// The `nextCursor` of the part before.
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
    /// The entity that it starts from.
    pub(super) from: String,
    /// The entity that it leads to.
    pub(super) to: String,
    /// What it is.
    pub(super) relation_type: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct GetRelations {
    /// The name of the entity.
    entity_name: String,
    /// Relations that start from it (out), that lead to it (in), or both.
    #[serde(default)]
    direction: relations::Direction,
    /// Only relations of this type.
    #[serde(alias = "relation_type")]
    relation_type: Option<String>,
    /// How many: 1 to 1000, usually 1000.
    limit: Option<i64>,
}

pub(super) fn tools(recall: &Recall) -> Vec<Tool> {
    let graph = |more: Value| {
        let mut schema = object(json!({"entities": entity_list(), "relations": relation_list()}));
        for (name, member) in more.as_object().into_iter().flatten() {
            schema["properties"][name] = member.clone();
        }
        schema
    };
    let opened = graph(json!({
        "found": {"type": "integer"},
        "notFound": {"type": "array", "items": {"type": "string"}},
    }));
    let searched = graph(json!({"count": {"type": "integer"}, "note": {"type": "string"}}));
    let whole = graph(json!({"nextCursor": {"type": "string"}}));
    vec![
        on(
            recall,
            read_graph,
            reading(
                "read_graph",
                "Read Graph",
                "Read the entire knowledge graph, or a part of it after the other",
            )
            .output_schema(whole),
        ),
        on(
            recall,
            search_nodes,
            reading(
                "search_nodes",
                "Search Nodes",
                "Search for nodes in the knowledge graph based on a query. If nothing has its words, what is near is \
                 found, and a note says so",
            )
            .output_schema(searched),
        ),
        on(
            recall,
            open_nodes,
            reading("open_nodes", "Open Nodes", "Open specific nodes in the knowledge graph by their names")
                .output_schema(opened),
        ),
        {
            let relation = json!({"anyOf": [super::of::<crate::Relation>(), {"type": "null"}]});
            on(
                recall,
                get_relation,
                reading(
                    "get_relation",
                    "Get Relation",
                    "Get one relation with its strength, confidence and metadata",
                )
                .output_schema(object(json!({"relation": relation}))),
            )
        },
        on(
            recall,
            get_relations,
            reading("get_relations", "Get Relations", "Get the relations from and to an entity")
                .output_schema(object(json!({
                    "relations": relation_list(), "truncated": {"type": "boolean"},
                }))),
        ),
    ]
}

async fn read_graph(recall: Recall, args: ReadGraph, cx: Cx) -> Result<ToolResult, ToolError> {
    let memory = memory(&recall, &cx);
    let Some(part) = part(args.limit, args.cursor)? else {
        let graph = memory.view(read::whole).await?;
        return told(&graph, json!(graph));
    };
    let found = sliced(memory.view(move |view| slice::slice(view, &part)).await?);
    told(&found, found.clone())
}

/// Which part of a graph is wanted, if not all of it.
pub(super) fn part(limit: Option<i64>, cursor: Option<String>) -> Result<Option<Part>, Fault> {
    if limit.is_none() && cursor.is_none() {
        return Ok(None);
    }
    let limit = within("limit", limit, 100, slice::MOST)?;
    Ok(Some(Part { limit, cursor, ..Part::default() }))
}

/// A part of a graph, and where the next begins.
pub(super) fn sliced(slice: slice::Slice) -> Value {
    let mut told = json!(slice.graph);
    if let Some(next) = slice.next {
        told["nextCursor"] = next.into();
    }
    told
}

async fn search_nodes(recall: Recall, args: SearchNodes, cx: Cx) -> Result<ToolResult, ToolError> {
    let found = search::find(&recall, &memory(&recall, &cx), &args.query).await?;
    let mut structured = json!(found.graph);
    structured["count"] = found.graph.entities.len().into();
    if let Some(note) = found.note {
        structured["note"] = note.into();
    }
    told(&found.graph, structured)
}

async fn open_nodes(recall: Recall, args: OpenNodes, cx: Cx) -> Result<ToolResult, ToolError> {
    check_names("names", &args.names)?;
    let names = args.names.clone();
    let graph = memory(&recall, &cx).view(move |view| read::open(view, &names)).await?;
    let found: HashSet<&str> = graph.entities.iter().map(|entity| entity.name.as_str()).collect();
    let missing: Vec<&String> = args.names.iter().filter(|name| !found.contains(name.as_str())).collect();
    let mut structured = json!(graph);
    structured["found"] = found.len().into();
    structured["notFound"] = json!(missing);
    told(&graph, structured)
}

async fn get_relation(recall: Recall, args: Which, cx: Cx) -> Result<ToolResult, ToolError> {
    let found = memory(&recall, &cx)
        .view(move |view| relations::find(view, &args.from, &args.to, &args.relation_type))
        .await?;
    let relation = found.map(|kept| kept.relation);
    let structured = json!({"relation": relation});
    told(&structured, structured.clone())
}

async fn get_relations(recall: Recall, args: GetRelations, cx: Cx) -> Result<ToolResult, ToolError> {
    let limit = within("limit", args.limit, 1_000, 1_000)?;
    let (mut found, truncated) = memory(&recall, &cx)
        .view(move |view| {
            let types: Vec<String> = args.relation_type.into_iter().collect();
            let found = relations::some_of(view, &args.entity_name, args.direction, &types, limit)?;
            if found.0.is_empty() && crate::graph::entities::find(view, &args.entity_name)?.is_none() {
                return Err(Fault::no_entity(&args.entity_name));
            }
            Ok(found)
        })
        .await?;
    found.sort_by_key(|kept| kept.id);
    let found: Vec<_> = found.into_iter().map(|kept| kept.relation).collect();
    let structured = json!({"relations": found, "truncated": truncated});
    told(&structured, structured.clone())
}
