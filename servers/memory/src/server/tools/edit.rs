//! Tools that change what an entity is: its name, its type, or with which other it is one.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{change, json_result, object_schema, schema_of, with_handler, write_tool};
use crate::error::Fault;
use crate::graph::list::{self, Listed};
use crate::graph::rename::{self, Update};
use crate::graph::restore::{self, RestorePoint};
use crate::graph::{entities, merge, model};
use crate::server::state::ServerState;

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateEntity {
    /// The name of the entity.
    name: String,
    /// Its new name. Relations and history are kept.
    #[serde(alias = "new_name")]
    new_name: Option<String>,
    /// Its new type.
    #[serde(alias = "entity_type")]
    entity_type: Option<String>,
    /// The version that you have read (list_entities, get_entity_history). If the entity has changed since, nothing is
    /// done.
    #[serde(alias = "expected_version")]
    expected_version: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateObservation {
    /// The name of the entity.
    entity_name: String,
    /// The exact text of the observation.
    observation: String,
    /// The text to replace it with.
    new_observation: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct MergeEntities {
    /// The entity to merge. It no longer exists afterwards.
    from: String,
    /// The entity to merge it into.
    into: String,
    /// The version of `into` that you have read. If it has changed since, nothing is done.
    #[serde(alias = "expected_version")]
    expected_version: Option<i64>,
}

#[derive(Deserialize, JsonSchema)]
struct RestoreEntity {
    /// The name of the entity. It may have been deleted.
    name: String,
    /// The version to restore (get_entity_history).
    version: Option<i64>,
    /// Instead of `version`: a time at which that version was current, in milliseconds since 1970.
    at: Option<i64>,
}

impl RestoreEntity {
    fn which(&self) -> Result<RestorePoint, Fault> {
        match (self.version, self.at) {
            (Some(version), None) => match usize::try_from(version) {
                Ok(version @ 1..1_000_000_000) => Ok(RestorePoint::Version(version)),
                _ => Err(Fault::input("version", "must be 1 or more")),
            },
            (None, Some(at)) => Ok(RestorePoint::At(at)),
            _ => Err(Fault::input("version", "pass either \"version\" or \"at\"")),
        }
    }
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let merged = object_schema(json!({
        "entity": schema_of::<Listed>(),
        "movedObservations": {"type": "integer"},
        "movedProperties": {"type": "integer"},
        "movedRelations": {"type": "integer"},
        "droppedRelations": {"type": "integer"},
    }));
    let restored =
        object_schema(json!({"entity": schema_of::<Listed>(), "restoredVersion": {"type": "integer"}}));
    vec![
        with_handler(
            state,
            update_entity,
            write_tool(
                "update_entity",
                "Update Entity",
                "Change the name or type of an entity. It keeps its id, observations, relations and history",
            )
            .output_schema(object_schema(json!({"entity": schema_of::<Listed>()}))),
        ),
        with_handler(
            state,
            update_observation,
            write_tool(
                "update_observation",
                "Update Observation",
                "Replace the text of one observation of an entity. The earlier text stays in the history",
            )
            .output_schema(object_schema(json!({"entity": schema_of::<Listed>()}))),
        ),
        with_handler(
            state,
            merge_entities,
            write_tool(
                "merge_entities",
                "Merge Entities",
                "Merge two entities that are the same thing: observations, properties and relations move to one of them, \
                 without duplicates. The history of both is kept",
            )
            .destructive(true)
            .output_schema(merged),
        ),
        with_handler(
            state,
            restore_entity,
            write_tool(
                "restore_entity",
                "Restore Entity",
                "Restore the type, observations and properties of an entity from an earlier version, even if it was deleted",
            )
            .idempotent()
            .output_schema(restored),
        ),
    ]
}

async fn update_entity(state: ServerState, args: UpdateEntity, cx: Cx) -> Result<ToolResult, ToolError> {
    if args.new_name.is_none() && args.entity_type.is_none() {
        return Err(Fault::input("newName", "pass \"newName\", \"entityType\" or both").into());
    }
    for (field, given) in [("newName", &args.new_name), ("entityType", &args.entity_type)] {
        given.as_ref().map_or(Ok(()), |given| model::name(field, given))?;
    }
    let update = Update {
        name: args.name,
        new_name: args.new_name,
        entity_type: args.entity_type,
        expected: args.expected_version,
    };
    let entity = change(&state, &cx, "update_entity", move |change| {
        let kept = rename::update(change, update)?;
        list::listed(change, kept)
    })
    .await?;
    let structured = json!({"entity": entity});
    json_result(structured)
}

async fn update_observation(
    state: ServerState,
    args: UpdateObservation,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    model::observation("newObservation", &args.new_observation)?;
    let entity = change(&state, &cx, "update_observation", move |change| {
        let kept =
            entities::find(change, &args.entity_name)?.ok_or_else(|| Fault::no_entity(&args.entity_name))?;
        entities::reword(change, &kept, &args.observation, args.new_observation)?;
        list::listed(change, kept)
    })
    .await?;
    let structured = json!({"entity": entity});
    json_result(structured)
}

async fn merge_entities(state: ServerState, args: MergeEntities, cx: Cx) -> Result<ToolResult, ToolError> {
    let (entity, merged) = change(&state, &cx, "merge_entities", move |change| {
        rename::expect(change, &args.into, args.expected_version)?;
        let merged = merge::merge(change, &args.from, &args.into)?;
        Ok((list::listed(change, merged.into.clone())?, merged))
    })
    .await?;
    let structured = json!({
        "entity": entity, "movedObservations": merged.observations, "movedProperties": merged.properties,
        "movedRelations": merged.relations.moved, "droppedRelations": merged.relations.dropped,
    });
    json_result(structured)
}

async fn restore_entity(state: ServerState, args: RestoreEntity, cx: Cx) -> Result<ToolResult, ToolError> {
    let which = args.which()?;
    let (entity, version) = change(&state, &cx, "restore_entity", move |change| {
        let (kept, version) = restore::restore(change, &args.name, which)?;
        Ok((list::listed(change, kept)?, version))
    })
    .await?;
    let structured = json!({"entity": entity, "restoredVersion": version});
    json_result(structured)
}
