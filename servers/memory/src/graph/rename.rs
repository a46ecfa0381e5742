//! Another name or type for an entity, which stays the same.

use super::entities::{self, EntityRow};
use super::{history, relations};
use crate::error::{Code, Fault, Result};
use crate::store::{Change, View};

/// What is to be another.
#[derive(Debug, Default)]
pub(crate) struct Update {
    pub(crate) name: String,
    pub(crate) new_name: Option<String>,
    pub(crate) entity_type: Option<String>,
    /// The version that the caller knows.
    pub(crate) expected: Option<i64>,
}

/// Gives the entity its new name and type. Its history and its relations come along.
pub(crate) fn update(change: &mut Change<'_>, update: Update) -> Result<EntityRow> {
    let known = entities::find(change, &update.name)?.ok_or_else(|| Fault::no_entity(&update.name))?;
    expect(change, &update.name, update.expected)?;
    let new = EntityRow {
        key: known.key,
        name: update.new_name.unwrap_or_else(|| known.name.clone()),
        entity_type: update.entity_type.unwrap_or_else(|| known.entity_type.clone()),
    };
    if new.name == known.name && new.entity_type == known.entity_type {
        return Ok(known);
    }
    if new.name != known.name {
        if entities::find(change, &new.name)?.is_some() {
            let what =
                format!("newName: an entity {:?} already exists; merge_entities merges the two", new.name);
            return Err(Fault::new(Code::Conflict, what));
        }
        relations::follow(change, &known.name, &new.name, false)?;
    }
    entities::recast(change, &new)?;
    Ok(new)
}

/// Refuses to go on if the entity is not in the version that the caller knows.
pub(crate) fn expect(view: &mut View<'_>, name: &str, expected: Option<i64>) -> Result<()> {
    let Some(expected) = expected else { return Ok(()) };
    let (version, _) = history::version(view, name)?;
    match i64::try_from(version) == Ok(expected) {
        true => Ok(()),
        false => Err(Fault::new(
            Code::Conflict,
            format!("expectedVersion: {name:?} is at version {version}, not {expected}; read it again"),
        )),
    }
}
