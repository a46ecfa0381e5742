//! An entity as it was once.

use std::collections::HashSet;

use super::entities::{self, EntityRow};
use super::history::{self, EntityVersion};
use super::properties;
use crate::error::{Code, Fault, Result};
use crate::store::Change;

/// Which of its versions.
#[derive(Debug, Clone, Copy)]
pub(crate) enum RestorePoint {
    Version(usize),
    /// The one that held at a moment, in milliseconds.
    At(i64),
}

/// Makes type, observations and properties of an entity what they were in a version, even if it was deleted since. Its name and its
/// relations stay as they are.
pub(crate) fn restore(
    change: &mut Change<'_>,
    name: &str,
    which: RestorePoint,
) -> Result<(EntityRow, usize)> {
    let version = find(change, name, which)?;
    let kept = match entities::find(change, name)? {
        Some(mut kept) => {
            if kept.entity_type != version.entity_type {
                kept.entity_type = version.entity_type.clone();
                entities::recast(change, &kept)?;
            }
            kept
        }
        None => {
            let lives = history::lives(change, name)?;
            let key = *lives.last().ok_or_else(|| Fault::no_entity(name))?;
            // It may live on under another name.
            if let Some(other) = entities::keyed(change, key)? {
                return Err(Fault::new(
                    Code::Conflict,
                    format!("name: {name:?} was renamed to {:?}; use that name", other.name),
                ));
            }
            let kept = EntityRow { key, name: name.to_owned(), entity_type: version.entity_type.clone() };
            entities::recast(change, &kept)?;
            kept
        }
    };
    let wanted: HashSet<&String> = version.observations.iter().collect();
    let mut unwanted = entities::observations(change, kept.key)?;
    unwanted.retain(|content| !wanted.contains(content));
    entities::unobserve(change, &kept, &unwanted)?;
    entities::observe(change, &kept, version.observations, false)?;
    properties::replace(change, &kept, version.properties)?;
    Ok((kept, version.version))
}

fn find(change: &mut Change<'_>, name: &str, which: RestorePoint) -> Result<EntityVersion> {
    let before = match which {
        RestorePoint::Version(version) => Some(version + 1),
        RestorePoint::At(at) => Some(begun_by(change, name, at)? + 1),
    };
    let found = history::of_entity(change, name, 1, before)?;
    let last = found.versions.into_iter().next_back();
    let fits = |version: &EntityVersion| match which {
        RestorePoint::Version(wanted) => version.version == wanted,
        RestorePoint::At(at) => version.valid_from <= at && version.valid_to.is_none_or(|until| until > at),
    };
    last.filter(fits).ok_or_else(|| match which {
        RestorePoint::Version(wanted) => Fault::new(
            Code::NotFound,
            format!("version: {name:?} has versions 1 to {}, not {wanted}", found.total),
        ),
        RestorePoint::At(at) => Fault::new(Code::NotFound, format!("at: {name:?} did not exist at {at}")),
    })
}

/// How many versions had begun at a moment.
fn begun_by(change: &mut Change<'_>, name: &str, at: i64) -> Result<usize> {
    let mut begun = 0;
    for key in history::lives(change, name)? {
        for beginning in history::beginnings(change, key)? {
            begun += usize::from(history::when(change, beginning)?.at <= at);
        }
    }
    Ok(begun)
}
