//! Tools that list entities and their types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{json_result, object_schema, read_tool, schema_of, with_handler, with_typed_handler};
use crate::error::Fault;
use crate::graph::list::{self, Counted, ListQuery, Listed};
use crate::graph::model::within;
use crate::server::state::ServerState;

/// How many types are told.
const TYPES: usize = 200;
/// What a cursor begins with; the name after which to go on follows.
const AFTER: &str = "after:";

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct ListEntities {
    /// Only entities of this type.
    #[serde(alias = "entity_type")]
    entity_type: Option<String>,
    /// Only entities whose name starts with this, ignoring case.
    prefix: Option<String>,
    /// The maximum number, 1 to 200; default 50.
    limit: Option<i64>,
    /// The `nextCursor` of the previous page.
    cursor: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
struct NoArguments {}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let mut entities = object_schema(json!({
        "entities": {"type": "array", "items": schema_of::<Listed>()},
        "total": {"type": "integer"},
    }));
    entities["properties"]["nextCursor"] = json!({"type": "string"});
    vec![
        with_handler(
            state,
            list_entities,
            read_tool(
                "list_entities",
                "List Entities",
                "List entities by name, with id, number of observations, version and time of the last change",
            )
            .output_schema(entities),
        ),
        with_typed_handler(
            state,
            list_types,
            read_tool(
                "list_entity_types",
                "List Entity Types",
                "List the types of entities with the number of entities of each, most frequent first",
            ),
        ),
    ]
}

async fn list_entities(state: ServerState, args: ListEntities, cx: Cx) -> Result<ToolResult, ToolError> {
    let after = args.cursor.map(|cursor| match cursor.strip_prefix(AFTER) {
        Some(name) => Ok(name.to_owned()),
        None => Err(Fault::input("cursor", "is not a cursor that this tool returned")),
    });
    let wanted = ListQuery {
        entity_type: args.entity_type,
        prefix: args.prefix,
        limit: within("limit", args.limit, 50, 200)?,
        after: after.transpose()?,
    };
    let part = state.memory(&cx).view(move |view| list::entities(view, &wanted)).await?;
    let mut structured = json!({"entities": part.entities, "total": part.total});
    if let Some(last) = part.entities.last().filter(|_| part.more) {
        structured["nextCursor"] = Value::from(format!("{AFTER}{}", last.name));
    }
    json_result(structured)
}

#[derive(Serialize, JsonSchema)]
struct EntityTypes {
    types: Vec<Counted>,
    truncated: bool,
}

async fn list_types(state: ServerState, _: NoArguments, cx: Cx) -> Result<EntityTypes, ToolError> {
    let mut types = state.memory(&cx).view(|view| list::types(view, TYPES + 1)).await?;
    let truncated = types.len() > TYPES;
    types.truncate(TYPES);
    Ok(EntityTypes { types, truncated })
}
