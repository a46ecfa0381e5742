//! [`part`]: the graph as lines, in parts of bounded size.
//!
//! Entities come first, in the order in which they were made, then relations. A cursor names the last thing that was
//! told: what is added between two parts is told in a later one, and nothing is told in place of something else.

use super::{GraphLine, cost};
use crate::error::{Fault, Result};
use crate::graph::entities::EntityRow;
use crate::graph::model::{Entity, MAX_ENTRIES, MAX_PROPERTIES_AT_ONCE, Properties};
use crate::graph::{properties, relations};
use crate::store::{Value, View};

/// How many rows are read at once.
const ROWS: usize = 1_000;

/// A part of the graph.
#[derive(Debug, Default)]
pub(crate) struct ExportPage {
    /// Its lines.
    pub(crate) text: String,
    pub(crate) entities: usize,
    pub(crate) observations: usize,
    pub(crate) properties: usize,
    pub(crate) relations: usize,
    /// Where the next part begins, if there is one.
    pub(crate) next: Option<ExportCursor>,
    used: usize,
}

/// Where a part begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExportCursor {
    /// After this entity; `told` is the last of its observations that was told if some are left.
    Entities { after: i64, told: Option<i64> },
    /// After this relation.
    Relations { after: i64 },
}

impl ExportCursor {
    /// The beginning.
    pub(crate) const FIRST: ExportCursor = ExportCursor::Entities { after: 0, told: None };

    /// The place that a cursor names.
    pub(crate) fn parse(cursor: &str) -> Result<ExportCursor> {
        let read = |cursor: &str| {
            if let Some(after) = cursor.strip_prefix('r') {
                return Some(ExportCursor::Relations { after: number(after)? });
            }
            let rest = cursor.strip_prefix('e')?;
            let (after, told) = match rest.split_once('.') {
                Some((after, told)) => (after, Some(number(told)?)),
                None => (rest, None),
            };
            Some(ExportCursor::Entities { after: number(after)?, told })
        };
        read(cursor).ok_or_else(|| Fault::input("cursor", "is not a cursor that this tool returned"))
    }

    /// The cursor that names it.
    pub(crate) fn cursor(self) -> String {
        match self {
            ExportCursor::Entities { after, told: None } => format!("e{after}"),
            ExportCursor::Entities { after, told: Some(told) } => format!("e{after}.{told}"),
            ExportCursor::Relations { after } => format!("r{after}"),
        }
    }
}

fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number >= 0)
}

/// The part that begins at a place and takes about `most` bytes in an answer, and has no more in it than one import may
/// bring. With `split`, an entity of which more is known than a part can tell is told in several, each with its name.
pub(crate) fn export_page(
    view: &mut View<'_>,
    from: ExportCursor,
    most: usize,
    split: bool,
) -> Result<ExportPage> {
    let mut part = ExportPage::default();
    let after = match from {
        ExportCursor::Relations { after } => after,
        ExportCursor::Entities { after, told } => {
            part.entities(view, (after, told), most, split)?;
            if part.next.is_some() {
                return Ok(part);
            }
            0
        }
    };
    part.relations(view, after, most)?;
    Ok(part)
}

impl ExportPage {
    fn entities(
        &mut self,
        view: &mut View<'_>,
        (mut after, mut told): (i64, Option<i64>),
        most: usize,
        split: bool,
    ) -> Result<()> {
        loop {
            // The rest of an entity, if it is still known, and then those after it.
            let from = if told.is_some() { after } else { after + 1 };
            let kept = view.all(
                "SELECT key, name, type FROM entities WHERE tenant = ?1 AND key >= ?2 AND gone IS NULL
                 ORDER BY key LIMIT ?3",
                &[Value::Int(from), Value::Int(ROWS as i64)],
                EntityRow::read,
            )?;
            let last = kept.len() < ROWS;
            for kept in kept {
                let key = kept.key;
                let begun = told.take().filter(|_| key == after);
                let (observations, left) = said(view, key, begun, if split { most } else { usize::MAX })?;
                // They are told once, with the first observations.
                let properties = match begun {
                    None => properties::of(view, key)?,
                    Some(_) => Properties::new(),
                };
                let entity =
                    Entity { name: kept.name, entity_type: kept.entity_type, observations, properties };
                let fits = self.entities < MAX_ENTRIES
                    && self.properties + entity.properties.len() <= MAX_PROPERTIES_AT_ONCE;
                if !fits || !self.push(&GraphLine::Entity(&entity).written()?, most) {
                    self.next = Some(ExportCursor::Entities { after, told: None });
                    return Ok(());
                }
                self.entities += usize::from(begun.is_none());
                self.observations += entity.observations.len();
                self.properties += entity.properties.len();
                after = key;
                if left.is_some() {
                    self.next = Some(ExportCursor::Entities { after, told: left });
                    return Ok(());
                }
            }
            if last {
                return Ok(());
            }
        }
    }

    fn relations(&mut self, view: &mut View<'_>, mut after: i64, most: usize) -> Result<()> {
        let sql = format!(
            "SELECT {} FROM relations WHERE tenant = ?1 AND id > ?2 AND gone IS NULL ORDER BY id LIMIT ?3",
            relations::COLUMNS
        );
        loop {
            let found = view.all(&sql, &[Value::Int(after), Value::Int(ROWS as i64)], relations::read)?;
            let last = found.len() < ROWS;
            for kept in found {
                if self.relations == MAX_ENTRIES
                    || !self.push(&GraphLine::Relation(&kept.relation).written()?, most)
                {
                    self.next = Some(ExportCursor::Relations { after });
                    return Ok(());
                }
                self.relations += 1;
                after = kept.id;
            }
            if last {
                return Ok(());
            }
        }
    }

    /// Adds a line if there is room for it, or nothing else.
    fn push(&mut self, line: &str, most: usize) -> bool {
        let cost = cost(line);
        if self.used > 0 && self.used + cost > most {
            return false;
        }
        if self.used > 0 {
            self.text.push('\n');
        }
        self.text.push_str(line);
        self.used += cost;
        true
    }
}

/// What is known of an entity after one of its observations, up to about `most` bytes; and the last that is told, if some
/// are left.
fn said(
    view: &mut View<'_>,
    key: i64,
    begun: Option<i64>,
    most: usize,
) -> Result<(Vec<String>, Option<i64>)> {
    let (mut texts, mut used, mut last) = (Vec::new(), 0, begun.unwrap_or_default());
    loop {
        let rows = view.all(
            "SELECT id, content FROM observations WHERE tenant = ?1 AND entity = ?2 AND gone IS NULL AND id > ?3
             ORDER BY id LIMIT ?4",
            &[Value::Int(key), Value::Int(last), Value::Int(ROWS as i64)],
            |row| Ok((row.int(0)?, row.text(1)?)),
        )?;
        let all = rows.len() < ROWS;
        for (id, text) in rows {
            // What is written as JSON twice takes up to four times as much.
            used += 2 * cost(&text);
            if used > most && !texts.is_empty() {
                return Ok((texts, Some(last)));
            }
            texts.push(text);
            last = id;
        }
        if all {
            return Ok((texts, None));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursors_are_read_as_they_are_written() {
        for place in [
            ExportCursor::FIRST,
            ExportCursor::Entities { after: 7, told: Some(12) },
            ExportCursor::Relations { after: 3 },
        ] {
            assert_eq!(ExportCursor::parse(&place.cursor()).unwrap(), place);
        }
        for other in ["", "bad", "e", "r", "e1.", "e-1", "r1.2", "x1", "e1.2.3", "r99999999999999999999"] {
            assert!(ExportCursor::parse(other).is_err(), "{other:?}");
        }
    }
}
