//! The tool that sets properties of an entity.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{change, json_result, object_schema, with_handler, write_tool};
use crate::error::Fault;
use crate::graph::model::{self, Properties};
use crate::graph::{entities, ids, properties, rename};
use crate::server::state::ServerState;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SetProperties {
    /// The name of the entity.
    entity_name: String,
    /// The properties to set: strings, numbers or booleans; null removes one. Others stay as they are.
    properties: Properties,
    /// The version that you have read. If the entity has changed since, nothing is done.
    expected_version: Option<i64>,
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let output = object_schema(json!({
        "id": {"type": "string"}, "entityName": {"type": "string"},
        "properties": {"type": "object"},
        "set": {"type": "integer"}, "removed": {"type": "integer"},
    }));
    vec![with_handler(
        state,
        set_properties,
        write_tool(
            "set_properties",
            "Set Properties",
            "Set or remove key-value properties of an entity. Returns all its properties. Earlier values stay in the history",
        )
        .idempotent()
        .output_schema(output),
    )]
}

async fn set_properties(state: ServerState, args: SetProperties, cx: Cx) -> Result<ToolResult, ToolError> {
    model::properties("properties", &args.properties)?;
    let structured = change(&state, &cx, "set_properties", move |change| {
        let entity =
            entities::find(change, &args.entity_name)?.ok_or_else(|| Fault::no_entity(&args.entity_name))?;
        rename::expect(change, &entity.name, args.expected_version)?;
        let done = properties::set(change, &entity, args.properties)?;
        Ok(json!({
            "id": ids::of(change, entity.key)?, "entityName": entity.name,
            "properties": properties::of(change, entity.key)?, "set": done.set, "removed": done.removed,
        }))
    })
    .await?;
    json_result(structured)
}
