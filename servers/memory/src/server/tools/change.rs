//! Tools that change the graph.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::{
    change, entities as entity_list, object_schema, relations as relation_list, result, schema_of,
    with_handler, write_tool,
};
use crate::error::Fault;
use crate::graph::entities::{self, check_names};
use crate::graph::model::{self, Entity, Relation};
use crate::graph::relations;
use crate::server::state::ServerState;

#[derive(Deserialize, JsonSchema)]
struct CreateEntities {
    /// The entities. Those whose name already exists are left unchanged.
    entities: Vec<Entity>,
}

#[derive(Deserialize, JsonSchema)]
struct CreateRelations {
    /// The relations, in active voice. Those that already exist are left unchanged.
    relations: Vec<Relation>,
}

/// What is to be added to one entity.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Observed {
    /// The name of the entity.
    entity_name: String,
    /// The observations to add. Those that already exist are not added again.
    contents: Vec<String>,
}

/// Either a list, or one entity at the top level.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct AddObservations {
    /// What to add to which entity.
    observations: Option<Vec<Observed>>,
    /// Instead of `observations`: the name of one entity.
    entity_name: Option<String>,
    /// Instead of `observations`: the observations to add to it.
    contents: Option<Vec<String>>,
}

impl AddObservations {
    fn list(self) -> Result<Vec<Observed>, Fault> {
        match (self.observations, self.entity_name, self.contents) {
            (Some(list), None, None) => Ok(list),
            (None, Some(entity_name), Some(contents)) => Ok(vec![Observed { entity_name, contents }]),
            _ => Err(Fault::input(
                "observations",
                "pass either \"observations\": [{\"entityName\", \"contents\"}], or \"entityName\" and \"contents\"",
            )),
        }
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct DeleteEntities {
    /// The names of the entities. Unknown names are skipped.
    entity_names: Vec<String>,
}

/// What is to be forgotten of one entity.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Deletion {
    /// The name of the entity.
    entity_name: String,
    /// The exact text of the observations.
    observations: Vec<String>,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteObservations {
    /// What to delete from which entity.
    deletions: Vec<Deletion>,
}

#[derive(Deserialize, JsonSchema)]
struct DeleteRelations {
    /// The relations. Unknown ones are skipped.
    relations: Vec<Relation>,
}

/// Either the relation itself, or under `relation`.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct UpdateRelation {
    /// The relation with its new values. What is omitted stays as it is.
    relation: Option<Relation>,
    /// Instead of `relation`: the entity where it starts.
    from: Option<String>,
    /// Instead of `relation`: the entity where it ends.
    to: Option<String>,
    /// Instead of `relation`: its type.
    relation_type: Option<String>,
    /// Instead of `relation`: its new strength, 0 to 1.
    strength: Option<f64>,
    /// Instead of `relation`: its new confidence, 0 to 1.
    confidence: Option<f64>,
    /// Instead of `relation`: metadata to add or replace.
    metadata: Option<serde_json::Map<String, Value>>,
}

impl UpdateRelation {
    fn one(self) -> Result<Relation, Fault> {
        match (self.relation, self.from, self.to, self.relation_type) {
            (Some(relation), None, None, None) => Ok(relation),
            (None, Some(from), Some(to), Some(relation_type)) => Ok(Relation {
                from,
                to,
                relation_type,
                strength: self.strength,
                confidence: self.confidence,
                metadata: self.metadata,
            }),
            _ => Err(Fault::input("relation", "pass \"relation\", or \"from\", \"to\" and \"relationType\"")),
        }
    }
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    vec![
        with_handler(state, create_entities, write_tool(
                "create_entities",
                "Create Entities",
                "Create multiple new entities in the knowledge graph, with observations and key-value properties",
            )
            .output_schema(object_schema(json!({"entities": entity_list(), "created": {"type": "integer"}})))),
        with_handler(state, create_relations, write_tool(
                "create_relations",
                "Create Relations",
                "Create multiple new relations between entities in the knowledge graph. Relations should be in active \
                 voice",
            )
            .output_schema(object_schema(json!({"relations": relation_list(), "created": {"type": "integer"}})))),
        {            let added = object_schema(json!({
                "entityName": {"type": "string"},
                "addedObservations": {"type": "array", "items": {"type": "string"}},
            }));
            let results = json!({"type": "array", "items": added});
            let mut schema = object_schema(json!({"results": results, "added": {"type": "integer"}}));
            schema["properties"]["entityName"] = json!({"type": "string"});
            schema["properties"]["totalObservations"] = json!({"type": "integer"});
            with_handler(state, add_observations, write_tool(
                "add_observations",
                "Add Observations",
                "Add new observations to existing entities in the knowledge graph",
            )
            .output_schema(schema))
        },
        with_handler(state, delete_entities, deleting(
                "delete_entities",
                "Delete Entities",
                "Delete multiple entities and their associated relations from the knowledge graph. Their history is kept",
                json!({"entityNames": {"type": "array", "items": {"type": "string"}}}),
            )),
        with_handler(state, delete_observations, deleting(
                "delete_observations",
                "Delete Observations",
                "Delete specific observations from entities in the knowledge graph. Their history is kept",
                json!({"entities": {"type": "array", "items": object_schema(json!({
                    "entityName": {"type": "string"}, "deletedCount": {"type": "integer"},
                }))}}),
            )),
        with_handler(state, delete_relations, deleting(
                "delete_relations",
                "Delete Relations",
                "Delete multiple relations from the knowledge graph. Their history is kept",
                json!({}),
            )),
        with_handler(state, update_relation, write_tool(
                "update_relation",
                "Update Relation",
                "Change the strength, confidence or metadata of a relation. This also restarts the decay of its confidence",
            )
            .output_schema(schema_of::<Relation>())),
    ]
}

fn deleting(name: &str, title: &str, description: &str, more: Value) -> Tool {
    let mut output = json!({
        "success": {"type": "boolean"}, "message": {"type": "string"}, "deleted": {"type": "integer"},
    });
    extend(&mut output, more);
    write_tool(name, title, description).destructive(true).idempotent().output_schema(object_schema(output))
}

fn deleted(what: &str, count: usize, more: Value) -> Result<ToolResult, ToolError> {
    let message = format!("{what} deleted successfully");
    let mut structured = json!({"success": true, "message": message, "deleted": count});
    extend(&mut structured, more);
    Ok(ToolResult::text(message).structured(tidegate_server::Json::from(structured)))
}

/// Puts the members of one object into another.
fn extend(object: &mut Value, more: Value) {
    if let (Value::Object(object), Value::Object(more)) = (object, more) {
        object.extend(more);
    }
}

async fn create_entities(state: ServerState, args: CreateEntities, cx: Cx) -> Result<ToolResult, ToolError> {
    model::entries("entities", &args.entities)?;
    for (at, entity) in args.entities.iter().enumerate() {
        entity.check(at)?;
    }
    model::all_properties("entities", args.entities.iter().map(|entity| entity.properties.len()).sum())?;
    let made =
        change(&state, &cx, "create_entities", move |change| entities::create(change, args.entities)).await?;
    result(&made, json!({"entities": made, "created": made.len()}))
}

async fn create_relations(
    state: ServerState,
    args: CreateRelations,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    model::entries("relations", &args.relations)?;
    for (at, relation) in args.relations.iter().enumerate() {
        relation.check(&format!("relations[{at}]"))?;
    }
    let made =
        change(&state, &cx, "create_relations", move |change| relations::create(change, args.relations))
            .await?;
    result(&made, json!({"relations": made, "created": made.len()}))
}

async fn add_observations(
    state: ServerState,
    args: AddObservations,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    let list = args.list()?;
    model::entries("observations", &list)?;
    for (at, observed) in list.iter().enumerate() {
        model::entries(&format!("observations[{at}].contents"), &observed.contents)?;
        for (n, text) in observed.contents.iter().enumerate() {
            model::observation(&format!("observations[{at}].contents[{n}]"), text)?;
        }
    }
    let (results, added, total) = change(&state, &cx, "add_observations", move |change| {
        let (mut results, mut count, mut total) = (Vec::new(), 0, 0);
        for observed in list {
            let entity = entities::find(change, &observed.entity_name)?
                .ok_or_else(|| Fault::no_entity(&observed.entity_name))?;
            let added = entities::observe(change, &entity, observed.contents, false)?;
            count += added.len();
            total = entities::count(change, entity.key)?;
            results.push(json!({"entityName": observed.entity_name, "addedObservations": added}));
        }
        Ok((results, count, total))
    })
    .await?;
    let mut structured = json!({"results": results, "added": added});
    if let [only] = &results[..] {
        structured["entityName"] = only["entityName"].clone();
        structured["totalObservations"] = total.into();
    }
    result(&results, structured)
}

async fn delete_entities(state: ServerState, args: DeleteEntities, cx: Cx) -> Result<ToolResult, ToolError> {
    check_names("entityNames", &args.entity_names)?;
    let gone =
        change(&state, &cx, "delete_entities", move |change| entities::delete(change, &args.entity_names))
            .await?;
    deleted("Entities", gone.len(), json!({"entityNames": gone}))
}

async fn delete_observations(
    state: ServerState,
    args: DeleteObservations,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    model::entries("deletions", &args.deletions)?;
    for (at, deletion) in args.deletions.iter().enumerate() {
        model::entries(&format!("deletions[{at}].observations"), &deletion.observations)?;
    }
    let (count, each) = change(&state, &cx, "delete_observations", move |change| {
        let (mut count, mut each) = (0, Vec::new());
        for deletion in &args.deletions {
            if let Some(entity) = entities::find(change, &deletion.entity_name)? {
                let gone = entities::unobserve(change, &entity, &deletion.observations)?;
                each.push(json!({"entityName": entity.name, "deletedCount": gone}));
                count += gone;
            }
        }
        Ok((count, each))
    })
    .await?;
    deleted("Observations", count, json!({"entities": each}))
}

async fn delete_relations(
    state: ServerState,
    args: DeleteRelations,
    cx: Cx,
) -> Result<ToolResult, ToolError> {
    model::entries("relations", &args.relations)?;
    let count =
        change(&state, &cx, "delete_relations", move |change| relations::delete(change, &args.relations))
            .await?;
    deleted("Relations", count, json!({}))
}

async fn update_relation(state: ServerState, args: UpdateRelation, cx: Cx) -> Result<ToolResult, ToolError> {
    let relation = args.one()?;
    relation.check("relation")?;
    let updated =
        change(&state, &cx, "update_relation", move |change| relations::update(change, relation)).await?;
    result(&updated, json!(updated))
}
