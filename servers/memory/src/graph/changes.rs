//! The changes that were about one entity.

use std::collections::BTreeSet;

use super::history;
use crate::changes::{ChangeRecord, find};
use crate::error::{Fault, Result};
use crate::store::{Value, View};

/// The last changes before one that were about an entity or its relations, newest first, at most `limit`.
pub(crate) fn last_of(
    view: &mut View<'_>,
    name: &str,
    limit: usize,
    before: Option<i64>,
) -> Result<Vec<ChangeRecord>> {
    let keys = history::lives(view, name)?;
    if keys.is_empty() {
        return Err(Fault::no_entity(name));
    }
    let mut ids = BTreeSet::new();
    let (before, most) = (Value::Int(before.unwrap_or(i64::MAX)), Value::Int(limit as i64));
    let mut add = |view: &mut View<'_>, table: &str, column: &str, of: Value<'_>| {
        let sql = format!(
            "SELECT id FROM (
                 SELECT made AS id FROM {table} WHERE tenant = ?1 AND {column} = ?2
                 UNION SELECT gone FROM {table} WHERE tenant = ?1 AND {column} = ?2) AS touched
             WHERE id < ?3 ORDER BY id DESC LIMIT ?4"
        );
        ids.extend(view.all(&sql, &[of, before.clone(), most.clone()], |row| row.int(0))?);
        Ok::<(), Fault>(())
    };
    for key in keys {
        add(view, "entities", "key", Value::Int(key))?;
        add(view, "observations", "entity", Value::Int(key))?;
        add(view, "properties", "entity", Value::Int(key))?;
    }
    for end in ["source", "target"] {
        add(view, "relations", end, Value::Text(name.into()))?;
    }
    ids.into_iter().rev().take(limit).map(|id| find(view, id)).collect()
}
