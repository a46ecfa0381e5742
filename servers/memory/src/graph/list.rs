//! Lists of entities and of their types, in parts.

use schemars::JsonSchema;
use serde::Serialize;

use super::entities::{self, EntityRow};
use super::{history, ids};
use crate::error::Result;
use crate::pages;
use crate::store::{Value, View};

/// An entity in a list.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Listed {
    /// Its id, which never changes.
    pub(crate) id: String,
    /// Its name.
    pub(crate) name: String,
    /// Its type.
    pub(crate) entity_type: String,
    /// The number of its observations.
    pub(crate) observations: usize,
    /// When it last changed, in milliseconds since 1970.
    pub(crate) updated_at: i64,
    /// Its current version, for `expectedVersion`.
    pub(crate) version: usize,
}

/// A type, and how many entities have it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Counted {
    /// The type.
    pub(crate) entity_type: String,
    /// The number of entities of this type.
    pub(crate) count: i64,
}

/// Which entities to list.
#[derive(Debug, Default)]
pub(crate) struct ListQuery {
    pub(crate) entity_type: Option<String>,
    /// How their names begin, in capitals or not.
    pub(crate) prefix: Option<String>,
    pub(crate) limit: usize,
    /// The name after which to go on.
    pub(crate) after: Option<String>,
}

/// A part of the list.
pub(crate) struct Part {
    pub(crate) entities: Vec<Listed>,
    /// How many there are on the whole.
    pub(crate) total: i64,
    /// Whether more follow.
    pub(crate) more: bool,
}

/// Entities by name.
pub(crate) fn entities(view: &mut View<'_>, wanted: &ListQuery) -> Result<Part> {
    let text = |text: &str| Value::Text(text.to_owned().into());
    let mut filter = String::from("tenant = ?1 AND gone IS NULL");
    let mut values = Vec::new();
    let mut only = |condition: &str, value: Value<'static>| {
        values.push(value);
        filter.push_str(&format!(" AND {}", condition.replace('?', &format!("?{}", values.len() + 1))));
    };
    if let Some(kind) = &wanted.entity_type {
        only("type = ?", text(kind));
    }
    if let Some(prefix) = &wanted.prefix {
        only("LOWER(name) LIKE ? ESCAPE '\\'", Value::Text(entities::pattern(prefix).into()));
    }
    let count = format!("SELECT count(*) FROM entities WHERE {filter}");
    let total = view.one(&count, &values, |row| row.int(0))?.unwrap_or_default();
    if let Some(after) = &wanted.after {
        values.push(text(after));
        filter.push_str(&format!(" AND name > ?{}", values.len() + 1));
    }
    values.push(Value::Int(wanted.limit as i64 + 1));
    let sql = format!(
        "SELECT key, name, type FROM entities WHERE {filter} ORDER BY name LIMIT ?{}",
        values.len() + 1
    );
    let mut kept = view.all(&sql, &values, EntityRow::read)?;
    let more = kept.len() > wanted.limit;
    kept.truncate(wanted.limit);
    let mut entities = Vec::with_capacity(kept.len());
    for kept in kept {
        entities.push(listed(view, kept)?);
    }
    Ok(Part { entities, total, more })
}

/// The entity as it stands in a list.
pub(crate) fn listed(view: &mut View<'_>, kept: EntityRow) -> Result<Listed> {
    let (version, updated_at) = history::version(view, &kept.name)?;
    let observations = entities::count(view, kept.key)?;
    let id = ids::of(view, kept.key)?;
    Ok(Listed { id, name: kept.name, entity_type: kept.entity_type, observations, updated_at, version })
}

/// An entity in the list of the newest.
pub(crate) struct Newest {
    pub(crate) key: i64,
    pub(crate) name: String,
    pub(crate) entity_type: String,
    /// When it was made or renamed, or something was last learned of it, in milliseconds since 1970.
    pub(crate) updated_at: i64,
}

/// What is known of an entity may be very much, so only its last page is looked at: whatever is learned is put there. The
/// sums keep databases from looking for the greatest of all first, and then for one that belongs to the entity.
const NEWEST: &str = "SELECT e.key, e.name, e.type, e.since,
        (SELECT MAX(o.since + 0) FROM observations o WHERE o.tenant = ?1 AND o.gone IS NULL AND o.page =
            (SELECT MAX(p.id + 0) FROM pages p WHERE p.tenant = ?1 AND p.kind = ?2 AND p.owner = e.key))
    FROM entities e WHERE e.tenant = ?1 AND e.gone IS NULL AND e.key < ?3 ORDER BY e.key DESC LIMIT ?4";

/// Entities, the newest first, from those older than the one with the key `before`.
pub(crate) fn newest(view: &mut View<'_>, before: Option<i64>, limit: usize) -> Result<Vec<Newest>> {
    let values =
        [Value::Int(pages::ENTITY), Value::Int(before.unwrap_or(i64::MAX)), Value::Int(limit as i64)];
    view.all(NEWEST, &values, |row| {
        let learned = row.maybe_int(4)?.unwrap_or_default();
        Ok(Newest {
            key: row.int(0)?,
            name: row.text(1)?,
            entity_type: row.text(2)?,
            updated_at: row.int(3)?.max(learned),
        })
    })
}

/// The types, those that most entities have first, at most `limit`.
pub(crate) fn types(view: &mut View<'_>, limit: usize) -> Result<Vec<Counted>> {
    view.all(
        "SELECT type, count(*) AS many FROM entities WHERE tenant = ?1 AND gone IS NULL
         GROUP BY type ORDER BY many DESC, type LIMIT ?2",
        &[Value::Int(limit as i64)],
        |row| Ok(Counted { entity_type: row.text(0)?, count: row.int(1)? }),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn a_part_of_the_list_is_found_without_looking_at_the_rest() {
        let folder = tempfile::tempdir().unwrap();
        let memory = Store::open(folder.path().join("memory.db")).unwrap().of("one");
        let plan = memory.view(|view| {
            let values = [Value::Int(pages::ENTITY), Value::Int(9), Value::Int(9)];
            view.all(&format!("EXPLAIN QUERY PLAN {NEWEST}"), &values, |row| row.text(3))
        });
        let plan = plan.await.unwrap().join("\n");
        for step in [
            "e USING INDEX entities_listed (tenant=? AND key<?)",
            "o USING INDEX observations_paged (tenant=? AND page=?)",
            "p USING COVERING INDEX pages_of (tenant=? AND kind=? AND owner=?)",
        ] {
            assert!(plan.contains(step), "{step} is not in\n{plan}");
        }
        assert!(!plan.contains("SCAN") && !plan.contains("TEMP B-TREE"), "{plan}");
    }
}
