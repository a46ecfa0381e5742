//! Tools that go from entity to entity.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{
    json_result, object_schema, read_tool, relations as relation_list, result, schema_of, with_handler,
};
use crate::error::Fault;
use crate::graph::model::{self, within};
use crate::graph::path::{self, PathSearch};
use crate::graph::relations::Direction;
use crate::graph::walk::{self, Reached, Walk};
use crate::server::state::ServerState;

/// How many names and types one call may give.
const MOST_NAMES: usize = 100;
/// How far a walk goes at most.
const MOST_STEPS: usize = 10;

/// One name, or several.
#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
enum Names {
    One(String),
    Several(Vec<String>),
}

impl Names {
    fn list(self) -> Vec<String> {
        match self {
            Names::One(name) => vec![name],
            Names::Several(names) => names,
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Traverse {
    /// The name of the entity to start from, or a list of names.
    from: Names,
    /// The maximum number of steps, 1 to 10; default 3.
    depth: Option<i64>,
    /// Follow relations forwards (out), backwards (in), or both.
    #[serde(default)]
    direction: Direction,
    /// Follow only relations of these types.
    #[serde(default, alias = "relation_types")]
    relation_types: Vec<String>,
    /// Visit only entities of these types.
    #[serde(default, alias = "entity_types")]
    entity_types: Vec<String>,
    /// The maximum number of entities, 1 to 500; default 100.
    limit: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct FindPath {
    /// The entity to start from.
    from: String,
    /// The entity to reach.
    to: String,
    /// The maximum length of the path, 1 to 10; default 6.
    #[serde(alias = "max_depth")]
    max_depth: Option<i64>,
    /// Follow relations forwards (out), backwards (in), or both.
    #[serde(default)]
    direction: Direction,
    /// Follow only relations of these types.
    #[serde(default, alias = "relation_types")]
    relation_types: Vec<String>,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let reached = object_schema(json!({
        "entities": {"type": "array", "items": schema_of::<Reached>()},
        "relations": relation_list(),
        "truncated": {"type": "boolean"},
    }));
    let path = object_schema(json!({
        "found": {"type": "boolean"},
        "length": {"type": ["integer", "null"]},
        "path": {"type": "array", "items": {"type": "string"}},
        "relations": relation_list(),
        "truncated": {"type": "boolean"},
    }));
    vec![
        with_handler(
            state,
            traverse,
            read_tool(
                "traverse_graph",
                "Traverse Graph",
                "Traverse the knowledge graph from one or more entities and get the entities that are reached, nearest \
                 first, with their distance",
            )
            .output_schema(reached),
        ),
        with_handler(
            state,
            find_path,
            read_tool("find_path", "Find Path", "Find the shortest path of relations between two entities")
                .output_schema(path),
        ),
    ]
}

/// A list that is not too long.
fn few(field: &str, list: &[String]) -> Result<(), Fault> {
    match list.len() > MOST_NAMES {
        true => Err(Fault::input(
            field,
            format!("must have at most {MOST_NAMES} entries, and has {}", list.len()),
        )),
        false => Ok(()),
    }
}

async fn traverse(state: ServerState, args: Traverse, cx: Cx) -> Result<ToolResult, ToolError> {
    let from = args.from.list();
    few("from", &from)?;
    few("relationTypes", &args.relation_types)?;
    few("entityTypes", &args.entity_types)?;
    if from.is_empty() {
        return Err(Fault::input("from", "must name at least one entity").into());
    }
    let walk = Walk {
        from,
        depth: within("depth", args.depth, 3, MOST_STEPS)?,
        direction: args.direction,
        relation_types: args.relation_types,
        entity_types: args.entity_types,
        limit: within("limit", args.limit, 100, 500)?,
    };
    let walked = state.memory(&cx).view(move |view| walk::walk(view, &walk)).await?;
    result(&walked, json!(walked))
}

async fn find_path(state: ServerState, args: FindPath, cx: Cx) -> Result<ToolResult, ToolError> {
    few("relationTypes", &args.relation_types)?;
    model::name("from", &args.from)?;
    model::name("to", &args.to)?;
    let wanted = path::PathQuery {
        from: args.from,
        to: args.to,
        most: within("maxDepth", args.max_depth, 6, MOST_STEPS)?,
        direction: args.direction,
        relation_types: args.relation_types,
    };
    let found = state.memory(&cx).view(move |view| path::find(view, &wanted)).await?;
    let structured = match found {
        PathSearch::Found(path) => json!({
            "found": true, "length": path.relations.len(), "path": path.names, "relations": path.relations,
            "truncated": false,
        }),
        other => json!({
            "found": false, "length": null, "path": [], "relations": [], "truncated": other == PathSearch::GaveUp,
        }),
    };
    json_result(structured)
}
