//! What entities and relations were, version by version.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use super::model::{Properties, Relation};
use super::{ids, properties, relations};
use crate::error::{Fault, Result};
use crate::store::{Value, View};

/// An entity as it was from one change to the next.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EntityVersion {
    /// Which version it is, from 1.
    pub version: usize,
    /// The id of the entity. It stays when the name changes; an entity that was deleted and created again has another.
    pub id: String,
    /// Its name in this version.
    pub name: String,
    /// Its type in this version.
    pub entity_type: String,
    /// Its observations in this version.
    pub observations: Vec<String>,
    /// Its properties in this version.
    #[serde(skip_serializing_if = "Properties::is_empty")]
    #[schemars(default)]
    pub properties: Properties,
    /// Since when, in milliseconds since 1970.
    pub valid_from: i64,
    /// Until when. Missing if it is the current version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<i64>,
    /// Who made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

/// A relation as it was from one change to the next.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct RelationVersion {
    /// Which version it is, from 1.
    pub version: usize,
    /// The relation in this version.
    #[serde(flatten)]
    pub relation: Relation,
    /// Since when, in milliseconds since 1970.
    pub valid_from: i64,
    /// Until when. Missing if it is the current version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub valid_to: Option<i64>,
    /// Who made the change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changed_by: Option<String>,
}

/// When a change was made, and by whom.
pub(super) struct When {
    pub(super) at: i64,
    who: Option<String>,
}

pub(super) fn when(view: &mut View<'_>, change: i64) -> Result<When> {
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
    made: i64,
    gone: Option<i64>,
}

impl<T> Span<T> {
    fn holds(&self, change: i64) -> bool {
        self.made <= change && self.gone.is_none_or(|gone| gone > change)
    }
}

/// The keys of those that bore the name last: those that were deleted first, in that order, then the one that bears it
/// now. If nobody bore it last, those that ever did and are called otherwise now.
pub(crate) fn lives(view: &mut View<'_>, name: &str) -> Result<Vec<i64>> {
    let mut named = |last: &str| {
        let sql = format!(
            "SELECT e.key FROM entities e WHERE e.tenant = ?1 AND e.name = ?2 {last}
             ORDER BY CASE WHEN e.gone IS NULL THEN 1 ELSE 0 END, e.gone, e.id"
        );
        view.all(&sql, &[Value::Text(name.into())], |row| row.int(0))
    };
    let last = named(
        "AND NOT EXISTS (SELECT 1 FROM entities n WHERE n.tenant = ?1 AND n.key = e.key AND n.id > e.id)",
    )?;
    let mut keys = if last.is_empty() { named("")? } else { last };
    let mut seen = HashSet::new();
    keys.retain(|key| seen.insert(*key));
    Ok(keys)
}

/// The changes that began a version of the entity with a key. What ended it began none.
///
/// Plain queries, because one that joins both lists may be answered by looking at everything that is known.
pub(crate) fn beginnings(view: &mut View<'_>, key: i64) -> Result<BTreeSet<i64>> {
    let (mut begun, mut ended) = (BTreeSet::new(), Vec::new());
    view.each("SELECT made, gone FROM entities WHERE tenant = ?1 AND key = ?2", &[Value::Int(key)], |row| {
        begun.insert(row.int(0)?);
        ended.extend(row.maybe_int(1)?);
        Ok(())
    })?;
    // A change that ended one row and made the next has changed its name or type.
    ended.retain(|change| !begun.contains(change));
    for table in ["observations", "properties"] {
        let known = format!("SELECT made, gone FROM {table} WHERE tenant = ?1 AND entity = ?2");
        view.each(&known, &[Value::Int(key)], |row| {
            begun.insert(row.int(0)?);
            begun.extend(row.maybe_int(1)?);
            Ok(())
        })?;
    }
    ended.iter().for_each(|change| _ = begun.remove(change));
    Ok(begun)
}

/// Which version the entity of this name is in, and when it came to be.
pub(crate) fn version(view: &mut View<'_>, name: &str) -> Result<(usize, i64)> {
    let (mut versions, mut last) = (0, 0);
    for key in lives(view, name)? {
        let begun = beginnings(view, key)?;
        versions += begun.len();
        last = begun.last().copied().unwrap_or_default();
    }
    Ok((versions, when(view, last)?.at))
}

/// A part of the versions of an entity, and how many there are.
pub(crate) struct Versions {
    pub(crate) versions: Vec<EntityVersion>,
    pub(crate) total: usize,
}

/// How many observations and properties the versions that are told have together, at most, unless one alone has more.
const TOLD: usize = 20_000;

/// The last versions of an entity that are before one, at most `limit`, oldest first, whatever became of it.
pub(crate) fn of_entity(
    view: &mut View<'_>,
    name: &str,
    limit: usize,
    before: Option<usize>,
) -> Result<Versions> {
    let mut begun = Vec::new();
    for key in lives(view, name)? {
        begun.extend(beginnings(view, key)?.into_iter().map(|change| (key, change)));
    }
    if begun.is_empty() {
        return Err(Fault::no_entity(name));
    }
    // Several may have lived at the same time, before one took the name of another.
    begun.sort_unstable_by_key(|(_, change)| *change);
    let total = begun.len();
    let end = before.map_or(total, |before| before.saturating_sub(1).min(total));
    let mut lives: BTreeMap<i64, Life> = BTreeMap::new();
    let mut versions = Vec::new();
    let mut told = 0;
    for (at, (key, change)) in begun.iter().enumerate().take(end).skip(end.saturating_sub(limit)).rev() {
        if !lives.contains_key(key) {
            lives.insert(*key, Life::read(view, *key)?);
        }
        let life = &lives[key];
        let Some(row) = life.rows.iter().rfind(|row| row.holds(*change)) else { continue };
        let observations: Vec<String> =
            life.known.iter().filter(|span| span.holds(*change)).map(|span| span.what.clone()).collect();
        let properties: Properties =
            life.described.iter().filter(|span| span.holds(*change)).map(|span| span.what.clone()).collect();
        told += observations.len() + properties.len();
        if told > TOLD && !versions.is_empty() {
            break;
        }
        let (name, entity_type) = row.what.clone();
        let ended = life.rows.iter().filter_map(|row| row.gone).filter(|gone| gone > change).min();
        let next = begun[at + 1..].iter().find(|(other, _)| other == key).map(|(_, change)| *change);
        let until = match (next, ended) {
            (Some(next), Some(ended)) => Some(next.min(ended)),
            (next, ended) => next.or(ended),
        };
        let When { at: valid_from, who } = when(view, *change)?;
        let valid_to = until.map(|until| when(view, until)).transpose()?.map(|when| when.at);
        let version = at + 1;
        versions.push(EntityVersion {
            version,
            id: life.id.clone(),
            name,
            entity_type,
            observations,
            properties,
            valid_from,
            valid_to,
            changed_by: who,
        });
    }
    versions.reverse();
    Ok(Versions { versions, total })
}

/// All rows of one entity.
struct Life {
    id: String,
    rows: Vec<Span<(String, String)>>,
    known: Vec<Span<String>>,
    described: Vec<Span<(String, serde_json::Value)>>,
}

impl Life {
    fn read(view: &mut View<'_>, key: i64) -> Result<Life> {
        let rows = view.all(
            "SELECT name, type, made, gone FROM entities WHERE tenant = ?1 AND key = ?2 ORDER BY id",
            &[Value::Int(key)],
            |row| {
                let what = (row.text(0)?, row.text(1)?);
                Ok(Span { what, made: row.int(2)?, gone: row.maybe_int(3)? })
            },
        )?;
        let known = view.all(
            "SELECT content, made, gone FROM observations WHERE tenant = ?1 AND entity = ?2 ORDER BY id",
            &[Value::Int(key)],
            |row| Ok(Span { what: row.text(0)?, made: row.int(1)?, gone: row.maybe_int(2)? }),
        )?;
        let described = view.all(
            "SELECT name, value, made, gone FROM properties WHERE tenant = ?1 AND entity = ?2 ORDER BY name, id",
            &[Value::Int(key)],
            |row| {
                let what = (row.text(0)?, properties::value(row, 1)?);
                Ok(Span { what, made: row.int(2)?, gone: row.maybe_int(3)? })
            },
        )?;
        Ok(Life { id: ids::of(view, key)?, rows, known, described })
    }
}

/// How many names of an entity are looked up, the last ones.
const NAMES: i64 = 20;

/// A name that an entity bears or bore, and the changes from and until which it did.
struct Called {
    name: String,
    since: i64,
    until: Option<i64>,
}

impl Called {
    /// All names of the entity that bears this one now, which itself counts for all times: others may have borne it, or
    /// nobody at all.
    fn ever(view: &mut View<'_>, name: &str) -> Result<Vec<Called>> {
        let mut all = view.all(
            "SELECT o.name, o.made, o.gone FROM entities e
             JOIN entities o ON o.tenant = ?1 AND o.key = e.key AND o.name <> e.name
             WHERE e.tenant = ?1 AND e.name = ?2 AND e.gone IS NULL ORDER BY o.id DESC LIMIT ?3",
            &[Value::Text(name.into()), Value::Int(NAMES)],
            |row| Ok(Called { name: row.text(0)?, since: row.int(1)?, until: row.maybe_int(2)? }),
        )?;
        all.push(Called { name: name.to_owned(), since: 0, until: None });
        Ok(all)
    }

    fn held(&self, change: i64) -> bool {
        self.since <= change && self.until.is_none_or(|until| until > change)
    }
}

/// The last versions of a relation that are before one, at most `limit`, oldest first, whatever became of it; and how
/// many there are on the whole.
pub(crate) fn of_relation(
    view: &mut View<'_>,
    from: &str,
    to: &str,
    relation_type: &str,
    limit: usize,
    before: Option<usize>,
) -> Result<(Vec<RelationVersion>, usize)> {
    let mut rows = Vec::new();
    let (sources, targets) = (Called::ever(view, from)?, Called::ever(view, to)?);
    for (source, target) in
        sources.iter().flat_map(|source| targets.iter().map(move |target| (source, target)))
    {
        let sql = format!(
            "SELECT {}, until FROM relations
             WHERE tenant = ?1 AND source = ?2 AND target = ?3 AND type = ?4 ORDER BY id",
            relations::COLUMNS
        );
        let names = [&source.name, &target.name, relation_type].map(|name| Value::Text(name.into()));
        view.each(&sql, &names, |row| {
            let kept = relations::read(row)?;
            if source.held(kept.made) && target.held(kept.made) {
                rows.push((kept, row.maybe_int(relations::WIDTH)?));
            }
            Ok(())
        })?;
    }
    rows.sort_by_key(|(kept, _)| kept.id);
    if rows.is_empty() {
        return Err(Fault::no_relation(from, relation_type, to));
    }
    let total = rows.len();
    let end = before.map_or(total, |before| before.saturating_sub(1).min(total));
    let mut versions = Vec::new();
    for (at, (kept, until)) in rows.into_iter().enumerate().take(end).skip(end.saturating_sub(limit)) {
        versions.push(RelationVersion {
            version: at + 1,
            relation: kept.relation,
            valid_from: kept.since,
            valid_to: until,
            changed_by: when(view, kept.made)?.who,
        });
    }
    Ok((versions, total))
}
