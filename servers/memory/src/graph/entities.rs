//! Entities: making, observing, forgetting.

use std::collections::BTreeSet;

use super::model::{self, Entity};
use super::pages::{self, OpenPage};
use super::{ids, properties};
use crate::error::{Code, Fault, Result};
use crate::pages::{digest, touch};
use crate::store::{Change, Row, Value, View, prefix_range};

/// An entity as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct EntityRow {
    pub(crate) key: i64,
    pub(crate) name: String,
    pub(crate) entity_type: String,
}

impl EntityRow {
    pub(crate) fn read(row: &dyn Row) -> Result<EntityRow> {
        Ok(EntityRow { key: row.int(0)?, name: row.text(1)?, entity_type: row.text(2)? })
    }
}

/// The entity of this name, if it is known.
pub(crate) fn find(view: &mut View<'_>, name: &str) -> Result<Option<EntityRow>> {
    view.one(
        "SELECT key, name, type FROM entities WHERE tenant = ?1 AND name = ?2 AND gone IS NULL",
        &[Value::Text(name.into())],
        EntityRow::read,
    )
}

/// The entity with this key, if it is still known.
pub(crate) fn keyed(view: &mut View<'_>, key: i64) -> Result<Option<EntityRow>> {
    view.one(
        "SELECT key, name, type FROM entities WHERE tenant = ?1 AND key = ?2 AND gone IS NULL",
        &[Value::Int(key)],
        EntityRow::read,
    )
}

/// What LIKE finds everything by that begins so, among what LOWER has made small. What it takes for a pattern stands for
/// itself.
pub(crate) fn pattern(typed: &str) -> String {
    let mut pattern: String =
        typed.chars().flat_map(|c| ['\\', c].into_iter().skip(usize::from(!"\\%_".contains(c)))).collect();
    // The letters that LOWER knows in every database.
    pattern.make_ascii_lowercase();
    pattern.push('%');
    pattern
}

/// Names of entities that begin so, in capitals or not.
pub(crate) fn starting(view: &mut View<'_>, typed: &str, limit: usize) -> Result<Vec<String>> {
    let [from, to] = prefix_range(typed);
    view.all(
        "SELECT name FROM entities WHERE tenant = ?1 AND gone IS NULL AND LOWER(name) >= ?2 AND LOWER(name) < ?3
         ORDER BY LOWER(name), name LIMIT ?4",
        &[from, to, Value::Int(limit as i64)],
        |row| row.text(0),
    )
}

/// How many types are looked at for those that begin so.
const TYPES: usize = 1_000;

/// The types of entities that begin so, in capitals or not. One after the other, because a type may have very many.
pub(crate) fn types(view: &mut View<'_>, typed: &str, limit: usize) -> Result<Vec<String>> {
    let typed = typed.to_lowercase();
    let (mut found, mut last) = (Vec::new(), String::new());
    for _ in 0..TYPES {
        let next = view.one(
            "SELECT type FROM entities WHERE tenant = ?1 AND gone IS NULL AND type > ?2 ORDER BY type LIMIT 1",
            &[Value::Text((&*last).into())],
            |row| row.text(0),
        )?;
        let Some(next) = next.filter(|_| found.len() < limit) else { break };
        if next.to_lowercase().starts_with(&typed) {
            found.push(next.clone());
        }
        last = next;
    }
    Ok(found)
}

/// Makes those entities that are not known yet, and returns them.
pub(crate) fn create(change: &mut Change<'_>, entities: Vec<Entity>) -> Result<Vec<Entity>> {
    let mut made = Vec::new();
    for mut entity in entities {
        if find(change, &entity.name)?.is_some() {
            continue;
        }
        let key = insert(change, &entity)?;
        let kept = EntityRow { key, name: entity.name.clone(), entity_type: entity.entity_type.clone() };
        entity.observations = observe(change, &kept, std::mem::take(&mut entity.observations), true)?;
        entity.properties.retain(|_, value| !value.is_null());
        if !entity.properties.is_empty() {
            properties::set(change, &kept, entity.properties.clone())?;
        }
        made.push(entity);
    }
    Ok(made)
}

fn insert(change: &mut Change<'_>, entity: &Entity) -> Result<i64> {
    let (now, id) = (Value::Int(change.now), Value::Int(change.id));
    let uid = Value::Text(ids::new().into());
    let key = change.one(
        "INSERT INTO entities (tenant, key, name, type, since, made, uid)
         VALUES (?1, 0, ?2, ?3, ?4, ?5, ?6) RETURNING id",
        &[Value::Text((&*entity.name).into()), Value::Text((&*entity.entity_type).into()), now, id, uid],
        |row| row.int(0),
    )?;
    let key = key.ok_or_else(|| Fault::new(Code::Database, "The entity has no number"))?;
    change.run("UPDATE entities SET key = id WHERE tenant = ?1 AND id = ?2", &[Value::Int(key)])?;
    Ok(key)
}

/// Adds what is not known of the entity yet, and returns it.
pub(crate) fn observe(
    change: &mut Change<'_>,
    entity: &EntityRow,
    contents: Vec<String>,
    new: bool,
) -> Result<Vec<String>> {
    let mut added: Vec<String> = Vec::new();
    let mut open = match new {
        // What nothing is known of can still be found by its name.
        true => Some(OpenPage::add(change, entity.key)?),
        false => OpenPage::of(change, entity.key)?,
    };
    for content in contents {
        let digest = digest(&content);
        if known_since(change, entity.key, digest, &content)?.is_some() {
            continue;
        }
        let mut page = match open.take() {
            Some(page) if page.has_room() => page,
            full => {
                if let Some(full) = full {
                    full.close(change)?;
                }
                OpenPage::add(change, entity.key)?
            }
        };
        page.take(&content);
        let (now, id) = (Value::Int(change.now), Value::Int(change.id));
        change.run(
            "INSERT INTO observations (tenant, entity, page, content, digest, since, made)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            &[
                Value::Int(entity.key),
                Value::Int(page.page),
                Value::Text((&*content).into()),
                Value::Int(digest),
                now,
                id,
            ],
        )?;
        open = Some(page);
        added.push(content);
    }
    if let Some(page) = open {
        page.close(change)?;
    }
    Ok(added)
}

/// By which change this is known of the entity, if it is.
pub(crate) fn known_since(view: &mut View<'_>, key: i64, digest: i64, content: &str) -> Result<Option<i64>> {
    view.one(
        "SELECT made FROM observations
         WHERE tenant = ?1 AND entity = ?2 AND digest = ?3 AND gone IS NULL AND content = ?4",
        &[Value::Int(key), Value::Int(digest), Value::Text(content.into())],
        |row| row.int(0),
    )
}

/// Forgets entities, and the relations from and to them. Returns the names of those that were known.
pub(crate) fn delete(change: &mut Change<'_>, names: &[String]) -> Result<Vec<String>> {
    let mut gone = Vec::new();
    for name in names {
        for side in ["source", "target"] {
            let sql = format!(
                "UPDATE relations SET until = ?2, gone = ?3 WHERE tenant = ?1 AND {side} = ?4 AND gone IS NULL"
            );
            let at = [Value::Int(change.now), Value::Int(change.id), Value::Text((&**name).into())];
            change.run(&sql, &at)?;
        }
        let Some(entity) = find(change, name)? else { continue };
        end(change, entity.key)?;
        gone.push(entity.name);
    }
    Ok(gone)
}

/// Ends an entity and everything that is known of it. Its relations stay.
pub(crate) fn end(change: &mut Change<'_>, key: i64) -> Result<()> {
    let at = [Value::Int(change.now), Value::Int(change.id), Value::Int(key)];
    change.run(
        "UPDATE entities SET until = ?2, gone = ?3 WHERE tenant = ?1 AND key = ?4 AND gone IS NULL",
        &at,
    )?;
    for table in ["observations", "properties"] {
        let sql = format!(
            "UPDATE {table} SET until = ?2, gone = ?3 WHERE tenant = ?1 AND entity = ?4 AND gone IS NULL"
        );
        change.run(&sql, &at)?;
    }
    pages::touch_all(change, key)
}

/// Forgets observations of an entity. Returns how many were known.
pub(crate) fn unobserve(change: &mut Change<'_>, entity: &EntityRow, contents: &[String]) -> Result<usize> {
    let mut touched = BTreeSet::new();
    let mut count = 0;
    for content in contents {
        let (now, id) = (Value::Int(change.now), Value::Int(change.id));
        let pages = change.all(
            "UPDATE observations SET until = ?2, gone = ?3
             WHERE tenant = ?1 AND entity = ?4 AND digest = ?5 AND content = ?6 AND gone IS NULL RETURNING page",
            &[now, id, Value::Int(entity.key), Value::Int(digest(content)), Value::Text((&**content).into())],
            |row| row.int(0),
        )?;
        count += pages.len();
        touched.extend(pages);
    }
    for page in touched {
        touch(change, page)?;
    }
    Ok(count)
}

/// Puts another text in the place of an observation. If that one is known already, the old one only goes.
pub(crate) fn reword(change: &mut Change<'_>, entity: &EntityRow, old: &str, new: String) -> Result<()> {
    if unobserve(change, entity, &[old.to_owned()])? == 0 {
        let shown: String = old.chars().take(80).collect();
        let reason = format!("{:?} has no observation {shown:?} (any more)", entity.name);
        return Err(Fault::new(Code::NotFound, format!("observation: {reason}")));
    }
    observe(change, entity, vec![new], false).map(drop)
}

/// How many observations there are of an entity.
pub(crate) fn count(view: &mut View<'_>, key: i64) -> Result<usize> {
    let count = view.one(
        "SELECT count(*) FROM observations WHERE tenant = ?1 AND entity = ?2 AND gone IS NULL",
        &[Value::Int(key)],
        |row| row.int(0),
    )?;
    Ok(count.unwrap_or_default() as usize)
}

/// Gives an entity another name or type; it stays the same entity.
pub(crate) fn recast(change: &mut Change<'_>, entity: &EntityRow) -> Result<()> {
    let (now, id) = (Value::Int(change.now), Value::Int(change.id));
    change.run(
        "UPDATE entities SET until = ?2, gone = ?3 WHERE tenant = ?1 AND key = ?4 AND gone IS NULL",
        &[now.clone(), id.clone(), Value::Int(entity.key)],
    )?;
    change.run(
        "INSERT INTO entities (tenant, key, name, type, since, made) VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        &[
            Value::Int(entity.key),
            Value::Text((&*entity.name).into()),
            Value::Text((&*entity.entity_type).into()),
            now,
            id,
        ],
    )?;
    reindex(change, entity)
}

/// Indexes all pages of an entity anew.
pub(crate) fn reindex(change: &mut Change<'_>, entity: &EntityRow) -> Result<()> {
    if OpenPage::of(change, entity.key)?.is_none() {
        OpenPage::add(change, entity.key)?;
    }
    pages::touch_all(change, entity.key)
}

/// The live observations of an entity, oldest first.
pub(crate) fn observations(view: &mut View<'_>, key: i64) -> Result<Vec<String>> {
    view.all(
        "SELECT content FROM observations WHERE tenant = ?1 AND entity = ?2 AND gone IS NULL ORDER BY id",
        &[Value::Int(key)],
        |row| row.text(0),
    )
}

/// The entity with all that is known of it.
pub(crate) fn complete(view: &mut View<'_>, kept: EntityRow) -> Result<Entity> {
    let observations = observations(view, kept.key)?;
    let properties = properties::of(view, kept.key)?;
    Ok(Entity { name: kept.name, entity_type: kept.entity_type, observations, properties })
}

/// Checks names that are only looked for.
pub(crate) fn check_names(field: &str, names: &[String]) -> Result<()> {
    model::entries(field, names)
}
