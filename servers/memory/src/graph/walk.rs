//! Walking from entity to entity, nearest first.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::Serialize;

use super::entities::{self, EntityRow};
use super::ids;
use super::model::{Entity, Relation};
use super::relations::{self, Direction};
use crate::error::{Fault, Result};
use crate::store::View;

/// How many relations are looked at in one walk.
const LOOKED_AT: usize = 20_000;
/// How many bytes of observations one walk brings home.
const CARRIED: usize = 1_000_000;

/// Where to walk.
#[derive(Debug)]
pub(crate) struct Walk {
    pub(crate) from: Vec<String>,
    pub(crate) depth: usize,
    pub(crate) direction: Direction,
    /// Only along relations of these types, or of any.
    pub(crate) relation_types: Vec<String>,
    /// Only to entities of these types, or of any.
    pub(crate) entity_types: Vec<String>,
    pub(crate) limit: usize,
}

/// An entity that was reached.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub(crate) struct Reached {
    /// Its id, which never changes.
    pub(crate) id: String,
    /// The entity.
    #[serde(flatten)]
    pub(crate) entity: Entity,
    /// The number of steps from the nearest start.
    pub(crate) depth: usize,
}

/// What was reached.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Walked {
    /// The entities, nearest first.
    pub(crate) entities: Vec<Reached>,
    /// The relations between them that were walked along.
    pub(crate) relations: Vec<Relation>,
    /// Whether there was more than a walk may bring.
    pub(crate) truncated: bool,
}

/// Walks as far as is wanted.
pub(crate) fn walk(view: &mut View<'_>, walk: &Walk) -> Result<Walked> {
    let mut reached: Vec<(EntityRow, usize)> = Vec::new();
    // Also those that are not wanted, so that they are looked up once.
    let mut seen: HashMap<String, bool> = HashMap::new();
    let mut along: BTreeMap<i64, Relation> = BTreeMap::new();
    let (mut truncated, mut room) = (false, LOOKED_AT);
    for name in &walk.from {
        let kept = entities::find(view, name)?.ok_or_else(|| Fault::no_entity(name))?;
        if seen.insert(name.clone(), true).is_some() {
            continue;
        }
        match reached.len() < walk.limit {
            true => reached.push((kept, 0)),
            false => truncated = true,
        }
    }
    let mut at = 0;
    while at < reached.len() && reached[at].1 < walk.depth && room > 0 {
        let (name, depth) = (reached[at].0.name.clone(), reached[at].1);
        at += 1;
        let (found, more) = relations::some_of(view, &name, walk.direction, &walk.relation_types, room)?;
        truncated |= more;
        room -= found.len();
        for kept in found {
            let other = if kept.relation.from == name { &kept.relation.to } else { &kept.relation.from };
            let wanted = match seen.get(other) {
                Some(wanted) => *wanted,
                None => {
                    let entity = entities::find(view, other)?.filter(|entity| {
                        walk.entity_types.is_empty() || walk.entity_types.contains(&entity.entity_type)
                    });
                    let full = reached.len() >= walk.limit;
                    truncated |= full && entity.is_some();
                    let entity = entity.filter(|_| !full);
                    seen.insert(other.clone(), entity.is_some());
                    let wanted = entity.is_some();
                    reached.extend(entity.map(|entity| (entity, depth + 1)));
                    wanted
                }
            };
            if wanted {
                along.insert(kept.id, kept.relation);
            }
        }
    }
    truncated |= reached.get(at).is_some_and(|(_, depth)| *depth < walk.depth);
    carry(view, reached, along, truncated)
}

/// What was reached, with what is known of it, as far as it can be carried.
fn carry(
    view: &mut View<'_>,
    reached: Vec<(EntityRow, usize)>,
    along: BTreeMap<i64, Relation>,
    truncated: bool,
) -> Result<Walked> {
    let mut walked = Walked { truncated, ..Walked::default() };
    let mut carried = 0;
    for (kept, depth) in reached {
        let id = ids::of(view, kept.key)?;
        let entity = entities::complete(view, kept)?;
        carried += entity.observations.iter().map(String::len).sum::<usize>();
        if carried > CARRIED && !walked.entities.is_empty() {
            walked.truncated = true;
            break;
        }
        walked.entities.push(Reached { id, entity, depth });
    }
    let there: std::collections::HashSet<&str> =
        walked.entities.iter().map(|reached| reached.entity.name.as_str()).collect();
    walked.relations = along
        .into_values()
        .filter(|relation| there.contains(&*relation.from) && there.contains(&*relation.to))
        .collect();
    Ok(walked)
}
