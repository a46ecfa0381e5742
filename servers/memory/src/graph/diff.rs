//! What is different between two moments.

use std::collections::{BTreeSet, HashSet};

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Serialize;

use super::model::{Entity, Graph, Properties, Relation};
use super::{properties, relations};
use crate::error::Result;
use crate::store::{Value, View};

/// An entity that was there at both moments and is not the same.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangedEntity {
    /// Its name at the later moment.
    pub(crate) name: String,
    /// Its name at the earlier moment, if it was different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous_name: Option<String>,
    /// Its type at the later moment.
    pub(crate) entity_type: String,
    /// Its type at the earlier moment, if it was different.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) previous_type: Option<String>,
    /// Observations that were added.
    pub(crate) added_observations: Vec<String>,
    /// Observations that were deleted.
    pub(crate) removed_observations: Vec<String>,
    /// Properties that were set, changed or removed.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub(crate) changed_properties: Vec<ChangedProperty>,
}

/// A property that has another value at the later moment.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ChangedProperty {
    /// Its key.
    pub(crate) key: String,
    /// Its value at the earlier moment, if it had one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "property_value")]
    pub(crate) before: Option<serde_json::Value>,
    /// Its value at the later moment, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(default, schema_with = "property_value")]
    pub(crate) after: Option<serde_json::Value>,
}

/// What the value of a property can be.
fn property_value(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}]})
}

/// A relation that was there at both moments and says something else.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ChangedRelation {
    /// The relation at the earlier moment.
    pub(crate) before: Relation,
    /// The relation at the later moment.
    pub(crate) after: Relation,
}

/// What was there at both moments and is not the same.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Changed {
    /// The entities.
    pub(crate) entities: Vec<ChangedEntity>,
    /// The relations.
    pub(crate) relations: Vec<ChangedRelation>,
}

/// What is different between two moments.
#[derive(Debug, Default, Serialize, JsonSchema)]
pub(crate) struct Difference {
    /// What was added.
    pub(crate) added: Graph,
    /// What was removed.
    pub(crate) removed: Graph,
    /// What was changed.
    pub(crate) changed: Changed,
    /// Whether there are more differences than are listed.
    pub(crate) truncated: bool,
}

/// The differences between two moments in milliseconds: at most `limit` entities and as many relations.
pub(crate) fn between(view: &mut View<'_>, from: i64, to: i64, limit: usize) -> Result<Difference> {
    let mut difference = Difference::default();
    let touched = [("entities", "key"), ("observations", "entity"), ("properties", "entity")];
    let mut keys = BTreeSet::new();
    // From the changes to what they touched: a cross join is taken in the order in which it is written.
    for (table, key) in touched {
        for column in ["made", "gone"] {
            let sql = format!(
                "SELECT DISTINCT t.{key} FROM changes c CROSS JOIN {table} t
                 WHERE c.tenant = ?1 AND c.at > ?2 AND c.at <= ?3 AND t.tenant = ?1 AND t.{column} = c.id
                 ORDER BY t.{key} LIMIT ?4"
            );
            let values = [Value::Int(from), Value::Int(to), Value::Int(limit as i64 + 1)];
            keys.extend(view.all(&sql, &values, |row| row.int(0))?);
        }
    }
    difference.truncated = keys.len() > limit;
    for key in keys.into_iter().take(limit) {
        let (before, after) = (entity_at(view, key, from)?, entity_at(view, key, to)?);
        difference.entity(before, after);
    }
    let mut ends = BTreeSet::new();
    for column in ["made", "gone"] {
        let sql = format!(
            "SELECT DISTINCT t.source, t.target, t.type FROM changes c CROSS JOIN relations t
             WHERE c.tenant = ?1 AND c.at > ?2 AND c.at <= ?3 AND t.tenant = ?1 AND t.{column} = c.id
             ORDER BY t.source, t.target, t.type LIMIT ?4"
        );
        let values = [Value::Int(from), Value::Int(to), Value::Int(limit as i64 + 1)];
        ends.extend(view.all(&sql, &values, |row| Ok([row.text(0)?, row.text(1)?, row.text(2)?]))?);
    }
    difference.truncated |= ends.len() > limit;
    for ends in ends.into_iter().take(limit) {
        let (before, after) = (relation_at(view, &ends, from)?, relation_at(view, &ends, to)?);
        difference.relation(before, after);
    }
    Ok(difference)
}

/// What holds at a moment that is the last value.
const HELD: &str = "since <= ?3 AND (until IS NULL OR until > ?3)";

fn entity_at(view: &mut View<'_>, key: i64, time: i64) -> Result<Option<Entity>> {
    let values = [Value::Int(key), Value::Int(time)];
    let sql = format!("SELECT name, type FROM entities WHERE tenant = ?1 AND key = ?2 AND {HELD}");
    let Some((name, entity_type)) = view.one(&sql, &values, |row| Ok((row.text(0)?, row.text(1)?)))? else {
        return Ok(None);
    };
    let sql =
        format!("SELECT content FROM observations WHERE tenant = ?1 AND entity = ?2 AND {HELD} ORDER BY id");
    let observations = view.all(&sql, &values, |row| row.text(0))?;
    let properties = properties::held(view, key, HELD, time)?;
    Ok(Some(Entity { name, entity_type, observations, properties }))
}

fn relation_at(view: &mut View<'_>, ends: &[String; 3], time: i64) -> Result<Option<Relation>> {
    let sql = format!(
        "SELECT {} FROM relations WHERE tenant = ?1 AND source = ?2 AND {HELD} AND target = ?4 AND type = ?5",
        relations::COLUMNS
    );
    let [from, to, kind] = ends.each_ref().map(|text| Value::Text(text.as_str().into()));
    Ok(view.one(&sql, &[from, Value::Int(time), to, kind], relations::read)?.map(|kept| kept.relation))
}

/// The properties that are not the same, by key.
fn other_values(before: &Properties, after: &Properties) -> Vec<ChangedProperty> {
    let keys: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    keys.into_iter()
        .filter(|key| before.get(*key) != after.get(*key))
        .map(|key| ChangedProperty {
            key: key.clone(),
            before: before.get(key).cloned(),
            after: after.get(key).cloned(),
        })
        .collect()
}

impl Difference {
    fn entity(&mut self, before: Option<Entity>, after: Option<Entity>) {
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => self.added.entities.push(after),
            (Some(before), None) => self.removed.entities.push(before),
            (Some(before), Some(after)) => {
                let known: HashSet<&String> = before.observations.iter().collect();
                let left: HashSet<&String> = after.observations.iter().collect();
                let added = after.observations.iter().filter(|one| !known.contains(one)).cloned().collect();
                let removed = before.observations.iter().filter(|one| !left.contains(one)).cloned().collect();
                let changed = ChangedEntity {
                    previous_name: (before.name != after.name).then_some(before.name),
                    previous_type: (before.entity_type != after.entity_type).then_some(before.entity_type),
                    added_observations: added,
                    removed_observations: removed,
                    changed_properties: other_values(&before.properties, &after.properties),
                    name: after.name,
                    entity_type: after.entity_type,
                };
                let same = changed.previous_name.is_none()
                    && changed.previous_type.is_none()
                    && changed.added_observations.is_empty()
                    && changed.removed_observations.is_empty()
                    && changed.changed_properties.is_empty();
                if !same {
                    self.changed.entities.push(changed);
                }
            }
        }
    }

    fn relation(&mut self, before: Option<Relation>, after: Option<Relation>) {
        match (before, after) {
            (None, None) => {}
            (None, Some(after)) => self.added.relations.push(after),
            (Some(before), None) => self.removed.relations.push(before),
            (Some(before), Some(after)) if before != after => {
                self.changed.relations.push(ChangedRelation { before, after });
            }
            _ => {}
        }
    }
}
