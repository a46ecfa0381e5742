//! The graph in parts: entities first, then relations, each of them once.

use super::decay::Decay;
use super::entities::EntityRow;
use super::model::{Entity, Graph};
use super::{properties, relations};
use crate::error::{Fault, Result};
use crate::store::{Value, View};

/// How many entities and relations one part has at most.
pub(crate) const MOST: usize = 1_000;

/// A part of the graph, and where the next begins.
#[derive(Debug)]
pub(crate) struct Slice {
    pub(crate) graph: Graph,
    pub(crate) next: Option<String>,
}

/// After what a part begins.
#[derive(Debug, Clone, Copy, PartialEq)]
enum SliceCursor {
    /// An entity with this key.
    Entity(i64),
    /// A relation that was made by this change, with this number.
    Relation(i64, i64),
}

impl SliceCursor {
    fn read(cursor: Option<&str>) -> Result<SliceCursor> {
        let Some(cursor) = cursor else { return Ok(SliceCursor::Entity(0)) };
        let wrong = || Fault::input("cursor", "is not a cursor that this tool returned");
        let number = |text: &str| text.parse::<i64>().map_err(|_| wrong());
        if let Some(key) = cursor.strip_prefix('e') {
            return Ok(SliceCursor::Entity(number(key)?));
        }
        let (made, id) = cursor.strip_prefix('r').and_then(|rest| rest.split_once('.')).ok_or_else(wrong)?;
        Ok(SliceCursor::Relation(number(made)?, number(id)?))
    }

    fn written(self) -> String {
        match self {
            SliceCursor::Entity(key) => format!("e{key}"),
            SliceCursor::Relation(made, id) => format!("r{made}.{id}"),
        }
    }
}

/// Which part of the graph.
#[derive(Debug, Default)]
pub(crate) struct SliceRequest {
    /// How many entities and relations together.
    pub(crate) limit: usize,
    /// After what, as the part before said.
    pub(crate) cursor: Option<String>,
    /// As it was at a moment, or as it is now.
    pub(crate) at: Option<i64>,
    /// How confidence fades, if it does.
    pub(crate) decay: Option<Decay>,
}

/// The next entities and relations.
pub(crate) fn slice(view: &mut View<'_>, part: &SliceRequest) -> Result<Slice> {
    let mut place = SliceCursor::read(part.cursor.as_deref())?;
    // What is known now has no `gone`; the moment is compared with nothing then.
    let (held, time) = match part.at {
        None => ("?2 = 0 AND gone IS NULL", 0),
        Some(time) => ("since <= ?2 AND (until IS NULL OR until > ?2)", time),
    };
    let mut graph = Graph::default();
    if let SliceCursor::Entity(after) = place {
        let sql = format!(
            "SELECT key, name, type FROM entities WHERE tenant = ?1 AND {held} AND key > ?3 ORDER BY key LIMIT ?4"
        );
        let values = [Value::Int(time), Value::Int(after), Value::Int(part.limit as i64)];
        let kept = view.all(&sql, &values, EntityRow::read)?;
        place = match kept.last() {
            Some(last) if kept.len() == part.limit => SliceCursor::Entity(last.key),
            _ => SliceCursor::Relation(0, 0),
        };
        let sql = format!(
            "SELECT content FROM observations WHERE tenant = ?1 AND {held} AND entity = ?3 ORDER BY id"
        );
        // The same for properties, whose third value is the moment.
        let described = held.replace("?2", "?3");
        for EntityRow { key, name, entity_type } in kept {
            let observations = view.all(&sql, &[Value::Int(time), Value::Int(key)], |row| row.text(0))?;
            let properties = properties::held(view, key, &described, time)?;
            graph.entities.push(Entity { name, entity_type, observations, properties });
        }
    }
    let SliceCursor::Relation(made, id) = place else {
        return Ok(Slice { graph, next: Some(place.written()) });
    };
    let room = part.limit - graph.entities.len();
    // One more than there is room for says whether there is another part.
    let sql = format!(
        "SELECT {} FROM relations WHERE tenant = ?1 AND {held} AND (made, id) > (?3, ?4)
         ORDER BY made, id LIMIT ?5",
        relations::COLUMNS
    );
    let values = [Value::Int(time), Value::Int(made), Value::Int(id), Value::Int(room as i64 + 1)];
    let mut kept = view.all(&sql, &values, relations::read)?;
    let more = kept.len() > room;
    kept.truncate(room);
    let last = kept.last().map_or(place, |kept| SliceCursor::Relation(kept.made, kept.id));
    let faded = |kept: relations::RelationRow| match part.decay {
        Some(decay) => decay.faded(kept),
        None => kept.relation,
    };
    graph.relations = kept.into_iter().map(faded).collect();
    Ok(Slice { graph, next: more.then(|| last.written()) })
}
