//! `lookup_entity`: one entity by its name or by what is said about it, and what is connected with it.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Tool, ToolError, ToolResult};

use super::knowledge_base::check_query;
use super::{json_result, object_schema, read_tool, with_handler};
use crate::error::{Fault, Result as Stored};
use crate::graph::entities::{self, EntityRow};
use crate::graph::ids;
use crate::graph::relations::{self, Direction};
use crate::server::state::ServerState;
use crate::store::{Memory, Value as Sql, View};
use crate::texts::abbreviated;
use crate::{pages, search};

/// How far relations are followed at most.
const MAX_DEPTH: usize = 3;
/// How many connections are told at most.
const MAX_RELATED: usize = 100;
/// How many other names are told.
const NEAREST: usize = 5;
/// How many hits are looked at for one of the right type.
const LOOKED_AT: usize = 200;

/// Either a type and what to look for, or an id.
#[derive(Deserialize, JsonSchema)]
struct LookupEntity {
    /// The type of the entity: person, project, …
    entity_type: Option<String>,
    /// Its name, or words that describe it.
    query: Option<String>,
    /// Instead of query: its id, "type:name", or its name.
    entity_id: Option<String>,
    /// The tenant whose memory to use. Usually omitted.
    #[expect(dead_code, reason = "whose memory it is, is read where all tools are told")]
    tenant_id: Option<String>,
    /// Whether to return related entities; default false.
    include_related: Option<bool>,
    /// The same as include_related.
    include_relationships: Option<bool>,
    /// How many relations away related entities may be, 1 to 3; default 1.
    #[schemars(range(min = 1, max = 3))]
    depth: Option<usize>,
}

/// What is looked for.
#[derive(Clone)]
struct EntityQuery {
    /// What was given, which may be a name that begins or ends with a space.
    given: String,
    words: String,
    entity_type: Option<String>,
    /// Only under exactly this name.
    exactly: bool,
}

impl LookupEntity {
    fn wanted(&self) -> Stored<EntityQuery> {
        let entity_type = self.entity_type.as_deref().map(str::trim).filter(|text| !text.is_empty());
        let (field, words, exactly) = match (&self.query, &self.entity_id) {
            (Some(query), None) => ("query", query, false),
            (None, Some(id)) => ("entity_id", id, true),
            _ => {
                return Err(Fault::input(
                    "query",
                    "pass either \"query\" (with \"entity_type\") or \"entity_id\"",
                ));
            }
        };
        let (given, words) = (words.clone(), words.trim().to_owned());
        check_query(field, &words)?;
        Ok(EntityQuery { given, words, entity_type: entity_type.map(str::to_owned), exactly })
    }
}

impl EntityQuery {
    fn fits(&self, kept: &EntityRow) -> bool {
        self.entity_type.as_ref().is_none_or(|wanted| kept.entity_type.eq_ignore_ascii_case(wanted))
    }

    /// The entity with this id or of this very name, which may have the type before it.
    fn named(&self, view: &mut View<'_>) -> Stored<Option<EntityRow>> {
        if self.exactly
            && let Some(kept) = ids::find(view, &self.words)?.filter(|kept| self.fits(kept))
        {
            return Ok(Some(kept));
        }
        for name in either(&self.given) {
            if let Some(kept) = entities::find(view, name)?.filter(|kept| self.fits(kept)) {
                return Ok(Some(kept));
            }
        }
        let Some((entity_type, name)) = self.given.split_once(':') else { return Ok(None) };
        for name in either(name) {
            if let Some(kept) = entities::find(view, name)?
                && kept.entity_type.eq_ignore_ascii_case(entity_type.trim())
                && self.fits(&kept)
            {
                return Ok(Some(kept));
            }
        }
        Ok(None)
    }
}

/// A name as it was given, and without the spaces around it if it has some.
fn either(name: &str) -> impl Iterator<Item = &str> {
    let trimmed = name.trim();
    [name].into_iter().chain((trimmed != name).then_some(trimmed))
}

pub(super) fn tools(state: &ServerState) -> Vec<Tool> {
    let entity = object_schema(json!({
        "id": {"type": "string"}, "type": {"type": "string"}, "name": {"type": "string"},
        "properties": {"type": "object"}, "observations": {"type": "array", "items": {"type": "string"}},
    }));
    let related = object_schema(json!({
        "id": {"type": ["string", "null"]}, "name": {"type": "string"}, "type": {"type": ["string", "null"]},
        "from": {"type": "string"}, "to": {"type": "string"}, "relationType": {"type": "string"},
        "depth": {"type": "integer"},
    }));
    let mut output = object_schema(json!({
        "status": {"type": "string"},
        "found": {"type": "boolean"},
        "lookup_mode": {"enum": ["exact", "search"]},
        "entity": {"anyOf": [entity, {"type": "null"}]},
        "related": {"type": "array", "items": related},
        "nearest": {"type": "array", "items": {"type": "string"}},
    }));
    output["properties"]["message"] = json!({"type": "string"});
    vec![with_handler(
        state,
        lookup_entity,
        read_tool(
            "lookup_entity",
            "Look Up Entity",
            "Look up one entity by id or name, or by its type and words that describe it. Returns its properties and \
             observations, and with include_related the related entities",
        )
        .output_schema(output),
    )]
}

async fn lookup_entity(state: ServerState, args: LookupEntity, cx: Cx) -> Result<ToolResult, ToolError> {
    let wanted = args.wanted()?;
    let depth = args.depth.unwrap_or(1);
    if !(1..=MAX_DEPTH).contains(&depth) {
        return Err(Fault::input("depth", format!("must be between 1 and {MAX_DEPTH}")).into());
    }
    let with_related = args.include_related.or(args.include_relationships).unwrap_or(false);
    let memory = state.memory(&cx);
    let named = memory.view({
        let wanted = wanted.clone();
        move |view| wanted.named(view)
    });
    let named = named.await?;
    let mode = if named.is_some() || wanted.exactly { "exact" } else { "search" };
    let (found, nearest) = match named {
        Some(kept) => (Some(kept), Vec::new()),
        None => by_words(&state, &memory, &wanted).await?,
    };
    let Some(kept) = found else {
        memory.exists().await?;
        return nothing(&wanted, mode, &nearest);
    };
    let (entity, related) = memory
        .view(move |view| {
            let related = if with_related { related(view, &kept.name, depth)? } else { Vec::new() };
            let id = ids::of(view, kept.key)?;
            let known = entities::complete(view, kept)?;
            let entity = json!({
                "id": id, "type": known.entity_type, "name": known.name, "properties": known.properties,
                "observations": known.observations,
            });
            Ok((entity, related))
        })
        .await?;
    let structured = json!({
        "status": "success", "found": true, "lookup_mode": mode, "entity": entity, "related": related,
        "nearest": nearest,
    });
    json_result(structured)
}

/// What an entity is found by that people can read.
fn typed(kept: &EntityRow) -> String {
    format!("{}:{}", kept.entity_type, kept.name)
}

/// That there is none, and which names are near.
fn nothing(wanted: &EntityQuery, mode: &str, nearest: &[String]) -> Result<ToolResult, ToolError> {
    let kind = wanted.entity_type.as_ref().map_or(String::new(), |kind| format!(" of type {kind:?}"));
    let near = match nearest.is_empty() {
        true => String::new(),
        false => format!("; the closest are {}", nearest.join(", ")),
    };
    let message = format!("Entity {:?}{kind} not found{near}", abbreviated(&wanted.words));
    let structured = json!({
        "status": "not_found", "found": false, "lookup_mode": mode, "entity": null, "related": [],
        "nearest": nearest, "message": message,
    });
    json_result(structured)
}

/// The entity that is described best, unless only a name will do, and the names of others that are near.
async fn by_words(
    state: &ServerState,
    memory: &Memory,
    wanted: &EntityQuery,
) -> Stored<(Option<EntityRow>, Vec<String>)> {
    // The type of an id says nothing of the name.
    let words = match wanted.exactly {
        true => wanted.words.split_once(':').map_or(wanted.words.as_str(), |(_, name)| name),
        false => &wanted.words,
    };
    let hits = state.search.find(memory, words, &[pages::ENTITY], LOOKED_AT).await?.hits;
    let (wanted, words) = (wanted.clone(), words.to_owned());
    memory
        .view(move |view| {
            // Meaning finds something for every question. Only what has some of the words is taken for an answer.
            let said: HashSet<i64> = search::lexical(view, &words, &[pages::ENTITY], LOOKED_AT)?
                .into_iter()
                .chain(search::fuzzy(view, &words, &[pages::ENTITY], LOOKED_AT)?)
                .map(|hit| hit.owner)
                .collect();
            let (mut best, mut others) = (None, Vec::new());
            let mut seen = HashSet::new();
            for hit in hits {
                if others.len() == NEAREST || !seen.insert(hit.owner) {
                    continue;
                }
                let Some(kept) = entities::keyed(view, hit.owner)? else { continue };
                if best.is_none() && !wanted.exactly && wanted.fits(&kept) && said.contains(&kept.key) {
                    best = Some(kept);
                } else {
                    others.push(typed(&kept));
                }
            }
            if best.is_none() && others.is_empty() {
                others = of_type(view, wanted.entity_type.as_deref())?;
            }
            Ok((best, others))
        })
        .await
}

/// A few entities of a type, the newest first.
fn of_type(view: &mut View<'_>, entity_type: Option<&str>) -> Stored<Vec<String>> {
    let Some(entity_type) = entity_type else { return Ok(Vec::new()) };
    let known = view.all(
        "SELECT key, name, type FROM entities WHERE tenant = ?1 AND gone IS NULL AND type = ?2 ORDER BY id DESC LIMIT ?3",
        &[Sql::Text(entity_type.into()), Sql::Int(NEAREST as i64)],
        EntityRow::read,
    )?;
    Ok(known.iter().map(typed).collect())
}

/// What is connected with an entity, the nearest first.
fn related(view: &mut View<'_>, name: &str, depth: usize) -> Stored<Vec<Value>> {
    let mut found = Vec::new();
    let mut seen = HashSet::from([name.to_owned()]);
    let mut told = HashSet::new();
    let mut edge = vec![name.to_owned()];
    for depth in 1..=depth {
        for name in std::mem::take(&mut edge) {
            for kept in relations::some_of(view, &name, Direction::Both, &[], MAX_RELATED)?.0 {
                let relation = kept.relation;
                let other = if relation.from == name { &relation.to } else { &relation.from };
                let which = (relation.from.clone(), relation.relation_type.clone(), relation.to.clone());
                if found.len() == MAX_RELATED {
                    return Ok(found);
                }
                if !told.insert(which) {
                    continue;
                }
                // A relation may lead to what nothing is known of.
                let kept = entities::find(view, other)?;
                let id = kept.as_ref().map(|kept| ids::of(view, kept.key)).transpose()?;
                found.push(json!({
                    "id": id,
                    "name": other,
                    "type": kept.as_ref().map(|kept| kept.entity_type.as_str()),
                    "from": relation.from,
                    "to": relation.to,
                    "relationType": relation.relation_type,
                    "depth": depth,
                }));
                if seen.insert(other.clone()) {
                    edge.push(other.clone());
                }
            }
        }
    }
    Ok(found)
}
