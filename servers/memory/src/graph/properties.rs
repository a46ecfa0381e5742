//! Properties of entities: facts by key, each with when it held and by which changes.

use super::entities::EntityRow;
use super::model::{MAX_PROPERTIES, Properties};
use super::pages;
use crate::error::{Fault, Result};
use crate::store::{Change, Row, Value, View};

/// How much was changed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PropertyChanges {
    /// How many properties have another value now, or a first one.
    pub(crate) set: usize,
    /// How many there are no more.
    pub(crate) removed: usize,
}

/// A value as it is stored, and as JSON.
pub(crate) fn value(row: &dyn Row, column: usize) -> Result<serde_json::Value> {
    let text = row.text(column)?;
    // Whatever is not JSON was not written by this program.
    Ok(serde_json::from_str(&text).unwrap_or(serde_json::Value::String(text)))
}

/// A property as a line of text.
pub(crate) fn line(name: &str, value: &serde_json::Value) -> String {
    match value.as_str() {
        Some(text) => format!("{name}: {text}"),
        None => format!("{name}: {value}"),
    }
}

/// What holds of an entity. `held` says what holds, with `time` as its third value.
pub(crate) fn held(view: &mut View<'_>, key: i64, held: &str, time: i64) -> Result<Properties> {
    let sql = format!(
        "SELECT name, value FROM properties WHERE tenant = ?1 AND entity = ?2 AND {held} ORDER BY name"
    );
    let mut found = Properties::new();
    view.each(&sql, &[Value::Int(key), Value::Int(time)], |row| {
        found.insert(row.text(0)?, value(row, 1)?);
        Ok(())
    })?;
    Ok(found)
}

/// The properties that an entity has now.
pub(crate) fn of(view: &mut View<'_>, key: i64) -> Result<Properties> {
    held(view, key, "?3 = 0 AND gone IS NULL", 0)
}

/// Sets properties; a `null` removes one. Those that are not named stay as they are.
pub(crate) fn set(change: &mut Change<'_>, entity: &EntityRow, given: Properties) -> Result<PropertyChanges> {
    let known = of(change, entity.key)?;
    let (mut done, mut count) = (PropertyChanges::default(), known.len());
    for (name, value) in given {
        let old = known.get(&name);
        let now = if value.is_null() { None } else { Some(&value) };
        if old == now {
            continue;
        }
        if old.is_some() {
            count -= 1;
            change.run(
                "UPDATE properties SET until = ?2, gone = ?3
                 WHERE tenant = ?1 AND entity = ?4 AND name = ?5 AND gone IS NULL",
                &[
                    Value::Int(change.now),
                    Value::Int(change.id),
                    Value::Int(entity.key),
                    Value::Text((&*name).into()),
                ],
            )?;
        }
        match now {
            None => done.removed += 1,
            Some(value) => {
                done.set += 1;
                count += 1;
                let (now, id) = (Value::Int(change.now), Value::Int(change.id));
                change.run(
                    "INSERT INTO properties (tenant, entity, name, value, since, made)
                     VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
                    &[
                        Value::Int(entity.key),
                        Value::Text((&*name).into()),
                        Value::Text(value.to_string().into()),
                        now,
                        id,
                    ],
                )?;
            }
        }
    }
    if count > MAX_PROPERTIES {
        let reason = format!("{:?} can have at most {MAX_PROPERTIES} properties, not {count}", entity.name);
        return Err(Fault::input("properties", reason));
    }
    if done.set + done.removed > 0 {
        pages::touch_first(change, entity.key)?;
    }
    Ok(done)
}

/// Adds those that the entity does not have yet.
pub(crate) fn add(change: &mut Change<'_>, entity: &EntityRow, given: Properties) -> Result<PropertyChanges> {
    if given.is_empty() {
        return Ok(PropertyChanges::default());
    }
    let known = of(change, entity.key)?;
    set(change, entity, given.into_iter().filter(|(name, _)| !known.contains_key(name)).collect())
}

/// Makes the properties of an entity these and no others.
pub(crate) fn replace(
    change: &mut Change<'_>,
    entity: &EntityRow,
    wanted: Properties,
) -> Result<PropertyChanges> {
    let mut all: Properties =
        of(change, entity.key)?.into_iter().map(|(name, _)| (name, serde_json::Value::Null)).collect();
    all.extend(wanted);
    set(change, entity, all)
}
