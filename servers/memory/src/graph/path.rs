//! The shortest way from one entity to another.

use std::collections::HashMap;

use super::entities;
use super::model::Relation;
use super::relations::{self, Direction};
use crate::error::{Fault, Result};
use crate::store::View;

/// How many relations are looked at for one path.
const LOOKED_AT: usize = 50_000;

/// Which path is wanted.
#[derive(Debug)]
pub(crate) struct PathQuery {
    pub(crate) from: String,
    pub(crate) to: String,
    pub(crate) most: usize,
    pub(crate) direction: Direction,
    /// Only along relations of these types, or of any.
    pub(crate) relation_types: Vec<String>,
}

/// The names on the way, from one end to the other, and the relations between them.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Path {
    pub(crate) names: Vec<String>,
    pub(crate) relations: Vec<Relation>,
}

/// What the search came to.
#[derive(Debug, PartialEq)]
pub(crate) enum PathSearch {
    Found(Path),
    /// There is no path of that length.
    None,
    /// There may be one: too many relations would have to be looked at.
    GaveUp,
}

/// One end of the search: who was reached from there, and over whom.
struct Side {
    direction: Direction,
    over: HashMap<String, Option<(String, Relation)>>,
    /// Those that were reached last.
    edge: Vec<String>,
}

impl Side {
    fn new(name: &str, direction: Direction) -> Side {
        let over = HashMap::from([(name.to_owned(), None)]);
        Side { direction, over, edge: vec![name.to_owned()] }
    }

    /// The way back from a name to this end.
    fn back(&self, from: &str) -> Path {
        let mut path = Path { names: vec![from.to_owned()], relations: Vec::new() };
        let mut at = from;
        while let Some(Some((before, relation))) = self.over.get(at) {
            path.names.push(before.clone());
            path.relations.push(relation.clone());
            at = before;
        }
        path
    }
}

/// The shortest path, searched for from both ends at once: that looks at far fewer relations than from one.
pub(crate) fn find(view: &mut View<'_>, wanted: &PathQuery) -> Result<PathSearch> {
    for name in [&wanted.from, &wanted.to] {
        entities::find(view, name)?.ok_or_else(|| Fault::no_entity(name))?;
    }
    if wanted.from == wanted.to {
        let path = Path { names: vec![wanted.from.clone()], relations: Vec::new() };
        return Ok(PathSearch::Found(path));
    }
    let mut here = Side::new(&wanted.from, wanted.direction);
    let mut there = Side::new(&wanted.to, wanted.direction.back());
    let mut room = LOOKED_AT;
    let mut gave_up = false;
    for _ in 0..wanted.most {
        if here.edge.is_empty() || there.edge.is_empty() {
            break;
        }
        // The smaller edge goes on; every step makes the path one longer.
        let near = here.edge.len() <= there.edge.len();
        let (side, other) = if near { (&mut here, &there) } else { (&mut there, &here) };
        if let Some(name) = step(view, side, other, &wanted.relation_types, &mut room)? {
            let (mut path, end) = (here.back(&name), there.back(&name));
            path.names.reverse();
            path.relations.reverse();
            path.names.extend(end.names.into_iter().skip(1));
            path.relations.extend(end.relations);
            return Ok(PathSearch::Found(path));
        }
        gave_up = room == 0;
        if gave_up {
            break;
        }
    }
    Ok(if gave_up { PathSearch::GaveUp } else { PathSearch::None })
}

/// Goes one step on from one end. Returns a name that the other end has reached, too.
fn step(
    view: &mut View<'_>,
    side: &mut Side,
    other: &Side,
    types: &[String],
    room: &mut usize,
) -> Result<Option<String>> {
    let edge = std::mem::take(&mut side.edge);
    for name in edge {
        let (found, more) = relations::some_of(view, &name, side.direction, types, *room)?;
        *room = if more { 0 } else { *room - found.len() };
        for kept in found {
            let relation = kept.relation;
            let next = if relation.from == name { relation.to.clone() } else { relation.from.clone() };
            if side.over.contains_key(&next) {
                continue;
            }
            let met = other.over.contains_key(&next);
            // A relation may lead to a name that nobody bears: no way goes on from there.
            if !met && entities::find(view, &next)?.is_none() {
                continue;
            }
            side.over.insert(next.clone(), Some((name.clone(), relation)));
            if met {
                return Ok(Some(next));
            }
            side.edge.push(next);
        }
        if *room == 0 {
            return Ok(None);
        }
    }
    Ok(None)
}
