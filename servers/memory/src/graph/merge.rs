//! Two entities that turn out to be one.

use crate::store::{Change, Fault, Result};

use super::entities::{self, Kept};
use super::relations::{self, Moved};

/// What came over.
pub(crate) struct Merged {
    pub(crate) into: Kept,
    /// How many observations are new there.
    pub(crate) observations: usize,
    pub(crate) relations: Moved,
}

/// Brings what is known of one entity to another, and its relations; then there is only that one. The history of both
/// stays.
pub(crate) fn merge(change: &mut Change<'_>, from: &str, into: &str) -> Result<Merged> {
    if from == into {
        return Err(Fault::input("into", "must be another entity than \"from\""));
    }
    let old = entities::find(change, from)?.ok_or_else(|| Fault::no_entity(from))?;
    let kept = entities::find(change, into)?.ok_or_else(|| Fault::no_entity(into))?;
    let known = entities::observations(change, old.key)?;
    let added = entities::observe(change, &kept, known, false)?;
    let relations = relations::follow(change, from, into, true)?;
    entities::end(change, old.key)?;
    Ok(Merged { into: kept, observations: added.len(), relations })
}
