//! What entities and relations were, version by version.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Serialize;

use crate::store::{Fault, Result, Value, View};

use super::model::Relation;
use super::relations;

/// An entity as it was from one change to the next.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityVersion {
    /// Which version it is, from 1.
    pub version: usize,
    /// Its name then.
    pub name: String,
    /// Its type then.
    pub entity_type: String,
    /// What was known of it then.
    pub observations: Vec<String>,
    /// From when on it was so, in milliseconds.
    pub valid_from: i64,
    /// Until when; absent if it still is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<i64>,
    /// Who made it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

/// A relation as it was from one change to the next.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelationVersion {
    /// Which version it is, from 1.
    pub version: usize,
    /// What it said.
    #[serde(flatten)]
    pub relation: Relation,
    /// From when on it was so, in milliseconds.
    pub valid_from: i64,
    /// Until when; absent if it still is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<i64>,
    /// Who made it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

/// When a change was made, and by whom.
struct When {
    at: i64,
    who: Option<String>,
}

fn when(view: &mut View<'_>, change: i64) -> Result<When> {
    let found = view.one(
        "SELECT at, who FROM changes WHERE tenant = ?1 AND id = ?2",
        &[Value::Int(change)],
        |row| Ok(When { at: row.int(0)?, who: row.maybe_text(1)? }),
    )?;
    Ok(found.unwrap_or(When { at: 0, who: None }))
}

/// A row with the changes that made it and ended it.
struct Span<T> {
    what: T,
    id: i64,
    made: i64,
    gone: Option<i64>,
}

impl<T> Span<T> {
    fn holds(&self, change: i64) -> bool {
        self.made <= change && self.gone.is_none_or(|gone| gone > change)
    }
}

/// The versions of an entity, oldest first, whatever became of it.
pub(crate) fn of_entity(view: &mut View<'_>, name: &str) -> Result<Vec<EntityVersion>> {
    let rows = view.all(
        "SELECT name, type, key, id, made, gone FROM entities WHERE tenant = ?1 AND key IN
             (SELECT key FROM entities WHERE tenant = ?1 AND name = ?2) ORDER BY id",
        &[Value::Text(name.into())],
        |row| {
            let what = (row.text(0)?, row.text(1)?, row.int(2)?);
            Ok(Span { what, id: row.int(3)?, made: row.int(4)?, gone: row.maybe_int(5)? })
        },
    )?;
    if rows.is_empty() {
        return Err(Fault::no_entity(name));
    }
    let mut keys: Vec<i64> = rows.iter().map(|row| row.what.2).collect();
    keys.sort_unstable();
    keys.dedup();
    let mut known: BTreeMap<i64, Vec<Span<String>>> = BTreeMap::new();
    for key in keys {
        let spans = view.all(
            "SELECT content, id, made, gone FROM observations WHERE tenant = ?1 AND entity = ?2 ORDER BY id",
            &[Value::Int(key)],
            |row| {
                Ok(Span { what: row.text(0)?, id: row.int(1)?, made: row.int(2)?, gone: row.maybe_int(3)? })
            },
        )?;
        known.insert(key, spans);
    }
    // Every change that touched it began a version, or ended the last.
    let mut changes: Vec<i64> = rows.iter().flat_map(|row| [Some(row.made), row.gone]).flatten().collect();
    changes.extend(known.values().flatten().flat_map(|span| [Some(span.made), span.gone]).flatten());
    changes.sort_unstable();
    changes.dedup();
    let mut versions: Vec<EntityVersion> = Vec::new();
    for change in changes {
        let When { at, who } = when(view, change)?;
        if let Some(last) = versions.last_mut().filter(|last| last.valid_to.is_none()) {
            last.valid_to = Some(at);
        }
        let Some(row) = rows.iter().filter(|row| row.holds(change)).max_by_key(|row| row.id) else {
            continue;
        };
        let (name, entity_type, key) = &row.what;
        let observations = known[key].iter().filter(|span| span.holds(change)).map(|span| span.what.clone());
        versions.push(EntityVersion {
            version: versions.len() + 1,
            name: name.clone(),
            entity_type: entity_type.clone(),
            observations: observations.collect(),
            valid_from: at,
            valid_to: None,
            changed_by: who,
        });
    }
    Ok(versions)
}

/// The versions of a relation, oldest first, whatever became of it.
pub(crate) fn of_relation(
    view: &mut View<'_>,
    from: &str,
    to: &str,
    relation_type: &str,
) -> Result<Vec<RelationVersion>> {
    let sql = format!(
        "SELECT {}, until FROM relations
         WHERE tenant = ?1 AND source = ?2 AND target = ?3 AND type = ?4 ORDER BY id",
        relations::COLUMNS
    );
    let values = [Value::Text(from.into()), Value::Text(to.into()), Value::Text(relation_type.into())];
    let rows = view.all(&sql, &values, |row| Ok((relations::read(row)?, row.maybe_int(10)?)))?;
    if rows.is_empty() {
        return Err(Fault::no_relation(from, relation_type, to));
    }
    let mut versions = Vec::new();
    for (kept, until) in rows {
        versions.push(RelationVersion {
            version: versions.len() + 1,
            relation: kept.relation,
            valid_from: kept.since,
            valid_to: until,
            changed_by: when(view, kept.made)?.who,
        });
    }
    Ok(versions)
}
