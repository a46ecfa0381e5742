//! Reading the graph: all of it, parts of it, and what it was.

use std::collections::{HashMap, HashSet};

use super::entities::{self, EntityRow};
use super::model::{Entity, Graph, Properties, Relation};
use super::{properties, relations};
use crate::error::Result;
use crate::store::{Value, View};

/// Everything that is known, oldest first.
pub(crate) fn all(view: &mut View<'_>) -> Result<Graph> {
    at(view, None)
}

/// Everything that held at a time, as it is known today. `None` is now.
pub(crate) fn at(view: &mut View<'_>, time: Option<i64>) -> Result<Graph> {
    // What is known now has no `gone`; at a time in the past held what had begun and not ended.
    let (held, values) = match time {
        None => ("gone IS NULL", Vec::new()),
        Some(time) => ("since <= ?2 AND (until IS NULL OR until > ?2)", vec![Value::Int(time)]),
    };
    let sql = format!("SELECT key, name, type FROM entities WHERE tenant = ?1 AND {held} ORDER BY key");
    let kept = view.all(&sql, &values, EntityRow::read)?;
    let sql =
        format!("SELECT entity, content FROM observations WHERE tenant = ?1 AND {held} ORDER BY made, id");
    let mut observations: HashMap<i64, Vec<String>> = HashMap::new();
    view.each(&sql, &values, |row| {
        observations.entry(row.int(0)?).or_default().push(row.text(1)?);
        Ok(())
    })?;
    let sql =
        format!("SELECT entity, name, value FROM properties WHERE tenant = ?1 AND {held} ORDER BY name");
    let mut described: HashMap<i64, Properties> = HashMap::new();
    view.each(&sql, &values, |row| {
        described.entry(row.int(0)?).or_default().insert(row.text(1)?, properties::value(row, 2)?);
        Ok(())
    })?;
    let entities = kept
        .into_iter()
        .map(|kept| Entity {
            observations: observations.remove(&kept.key).unwrap_or_default(),
            properties: described.remove(&kept.key).unwrap_or_default(),
            name: kept.name,
            entity_type: kept.entity_type,
        })
        .collect();
    let sql = format!(
        "SELECT {} FROM relations WHERE tenant = ?1 AND {held} ORDER BY made, id",
        relations::COLUMNS
    );
    let relations = view.all(&sql, &values, relations::read)?;
    Ok(Graph { entities, relations: relations.into_iter().map(|kept| kept.relation).collect() })
}

/// The named entities, oldest first, and every relation from or to one of them.
pub(crate) fn open(view: &mut View<'_>, names: &[String]) -> Result<Graph> {
    let mut found = Vec::new();
    let mut seen = HashSet::new();
    for name in names {
        if seen.insert(name.as_str())
            && let Some(kept) = entities::find(view, name)?
        {
            found.push(kept);
        }
    }
    found.sort_by_key(|kept| kept.key);
    graph_of(view, found)
}

/// These entities with all that is known of them, and their relations.
pub(crate) fn graph_of(view: &mut View<'_>, found: Vec<EntityRow>) -> Result<Graph> {
    let relations = around(view, &found)?;
    let entities = found.into_iter().map(|kept| entities::complete(view, kept)).collect::<Result<_>>()?;
    Ok(Graph { entities, relations })
}

/// Every relation from or to one of these, oldest first.
fn around(view: &mut View<'_>, entities: &[EntityRow]) -> Result<Vec<Relation>> {
    let mut all = Vec::new();
    for entity in entities {
        for end in ["source", "target"] {
            let sql = format!(
                "SELECT {} FROM relations WHERE tenant = ?1 AND {end} = ?2 AND gone IS NULL",
                relations::COLUMNS
            );
            all.extend(view.all(&sql, &[Value::Text((&*entity.name).into())], relations::read)?);
        }
    }
    all.sort_by_key(|kept| kept.id);
    all.dedup_by_key(|kept| kept.id);
    Ok(all.into_iter().map(|kept| kept.relation).collect())
}
