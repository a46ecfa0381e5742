//! Tools that read the graph.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{entities as entity_list, memory, object, on, reading, relations as relation_list, told};
use crate::Recall;
use crate::graph::entities::check_names;
use crate::graph::{read, relations, search};
use crate::store::Fault;

/// No arguments. Some clients send one all the same, because they cannot send none.
#[derive(Deserialize, JsonSchema)]
struct Nothing {
    /// Means nothing.
    #[allow(dead_code)]
    random_string: Option<String>,
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
    relation_type: Option<String>,
}

pub(super) fn tools(recall: &Recall) -> Vec<Tool> {
    let graph = || object(json!({"entities": entity_list(), "relations": relation_list()}));
    vec![
        on(
            recall,
            read_graph,
            reading("read_graph", "Read Graph", "Read the entire knowledge graph").output_schema(graph()),
        ),
        on(
            recall,
            search_nodes,
            reading(
                "search_nodes",
                "Search Nodes",
                "Search for nodes in the knowledge graph based on a query",
            )
            .output_schema(graph()),
        ),
        on(
            recall,
            open_nodes,
            reading("open_nodes", "Open Nodes", "Open specific nodes in the knowledge graph by their names")
                .output_schema(graph()),
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
                .output_schema(object(json!({"relations": relation_list()}))),
        ),
    ]
}

async fn read_graph(recall: Recall, _: Nothing, cx: Cx) -> Result<ToolResult, ToolError> {
    let graph = memory(&recall, &cx).view(read::whole).await?;
    told(&graph, json!(graph))
}

async fn search_nodes(recall: Recall, args: SearchNodes, cx: Cx) -> Result<ToolResult, ToolError> {
    let graph = memory(&recall, &cx).view(move |view| search::nodes(view, &args.query)).await?;
    told(&graph, json!(graph))
}

async fn open_nodes(recall: Recall, args: OpenNodes, cx: Cx) -> Result<ToolResult, ToolError> {
    check_names("names", &args.names)?;
    let graph = memory(&recall, &cx).view(move |view| read::open(view, &args.names)).await?;
    told(&graph, json!(graph))
}

async fn get_relation(recall: Recall, args: Which, cx: Cx) -> Result<ToolResult, ToolError> {
    let found = memory(&recall, &cx)
        .view(move |view| relations::find(view, &args.from, &args.to, &args.relation_type))
        .await?;
    let relation = found.map(|kept| kept.relation);
    told(&relation, json!({"relation": relation}))
}

async fn get_relations(recall: Recall, args: GetRelations, cx: Cx) -> Result<ToolResult, ToolError> {
    let found = memory(&recall, &cx)
        .view(move |view| {
            let found =
                relations::of(view, &args.entity_name, args.direction, args.relation_type.as_deref())?;
            if found.is_empty() && crate::graph::entities::find(view, &args.entity_name)?.is_none() {
                return Err(Fault::no_entity(&args.entity_name));
            }
            Ok(found)
        })
        .await?;
    told(&found, json!({"relations": found}))
}
