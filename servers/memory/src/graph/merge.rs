//! Two entities that turn out to be one.

use super::entities::{self, EntityRow};
use super::properties;
use super::relations::{self, Moved};
use crate::error::{Fault, Result};
use crate::store::Change;

/// What came over.
pub(crate) struct Merged {
    pub(crate) into: EntityRow,
    /// How many observations are new there.
    pub(crate) observations: usize,
    /// How many properties are new there.
    pub(crate) properties: usize,
    pub(crate) relations: Moved,
}

/// Brings what is known of one entity to another, and its relations; then there is only that one. Where both have a
/// property, the other's stays. The history of both
/// stays.
pub(crate) fn merge(change: &mut Change<'_>, from: &str, into: &str) -> Result<Merged> {
    if from == into {
        return Err(Fault::input("into", "must be a different entity than \"from\""));
    }
    let old = entities::find(change, from)?.ok_or_else(|| Fault::no_entity(from))?;
    let kept = entities::find(change, into)?.ok_or_else(|| Fault::no_entity(into))?;
    let known = entities::observations(change, old.key)?;
    let added = entities::observe(change, &kept, known, false)?;
    let described = properties::of(change, old.key)?;
    let properties = properties::add(change, &kept, described)?.set;
    let relations = relations::follow(change, from, into, true)?;
    entities::end(change, old.key)?;
    Ok(Merged { into: kept, observations: added.len(), properties, relations })
}
