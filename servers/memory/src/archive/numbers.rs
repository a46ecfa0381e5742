//! [`VersionedRow`]: what every row of a file with history has. [`RowNumbers`]: which numbers rows get where they are brought to.

use std::collections::HashSet;
use std::collections::hash_map::{Entry, HashMap};

use serde::{Deserialize, Serialize};

use crate::error::{Fault, Result};
use crate::graph::pages::OpenPage;
use crate::store::{Change, Value};

/// The number of a row, when it held, and by which changes.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct VersionedRow {
    pub(crate) id: i64,
    pub(crate) since: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) until: Option<i64>,
    pub(crate) made: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gone: Option<i64>,
    /// The row that it brings back: the first of its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) origin: Option<i64>,
}

/// The columns of [`VersionedRow::read`].
pub(crate) const COLUMNS: &str = "id, since, until, made, gone";

impl VersionedRow {
    /// Reads [`COLUMNS`], the first five, and the column of the origin.
    pub(crate) fn read(row: &dyn crate::store::Row, origin: Option<usize>) -> Result<VersionedRow> {
        Ok(VersionedRow {
            id: row.int(0)?,
            since: row.int(1)?,
            until: row.maybe_int(2)?,
            made: row.int(3)?,
            gone: row.maybe_int(4)?,
            origin: origin.map(|column| row.maybe_int(column)).transpose()?.flatten(),
        })
    }

    pub(crate) fn is_live(&self) -> bool {
        self.gone.is_none()
    }
}

/// What a number is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum RowKind {
    Change,
    Entity,
    Observation,
    Property,
    Relation,
    Document,
    Text,
    Piece,
    Agent,
}

/// The largest number that every reader of JSON understands.
const LARGEST: i64 = 1 << 53;

/// The numbers that rows got, by those that they had.
#[derive(Default)]
pub(crate) struct RowNumbers {
    known: HashMap<(RowKind, i64), i64>,
    /// The number that the last change had.
    last: i64,
    /// Changes that undo others, or are undone: both as they were numbered.
    pub(crate) undone: Vec<(i64, Option<i64>, Option<i64>)>,
    /// What holds, of which there may be only one.
    live: HashSet<String>,
    /// The pages of entities that take more observations.
    pages: HashMap<i64, OpenPage>,
}

/// A number that can be one.
pub(crate) fn number(field: &str, given: i64) -> Result<Value<'static>> {
    match (0..=LARGEST).contains(&given) {
        true => Ok(Value::Int(given)),
        false => Err(Fault::input(field, format!("must be between 0 and {LARGEST}, not {given}"))),
    }
}

impl RowNumbers {
    /// Remembers which number a row got.
    pub(crate) fn add(&mut self, of: RowKind, old: i64, new: Option<i64>) -> Result<i64> {
        let new = new.ok_or_else(|| Fault::new(crate::error::Code::Database, "The row has no number"))?;
        match self.known.insert((of, old), new) {
            Some(_) => Err(Fault::input("id", format!("{old} is not unique"))),
            None => Ok(new),
        }
    }

    /// Changes stand in the order in which they were made.
    pub(crate) fn next_change(&mut self, id: i64) -> Result<()> {
        if id <= self.last {
            return Err(Fault::input("id", "must be greater than the id of the previous change"));
        }
        self.last = id;
        Ok(())
    }

    /// The number of a row that is there.
    pub(crate) fn new_number(&self, of: RowKind, field: &str, old: i64) -> Result<i64> {
        let known = self.known.get(&(of, old)).copied();
        known.ok_or_else(|| Fault::input(field, format!("no earlier line has the id {old}")))
    }

    /// The values of `since`, `until`, `made`, `gone` and `origin`.
    pub(crate) fn span(&self, row: &VersionedRow, of: RowKind) -> Result<[Value<'static>; 5]> {
        if row.until.is_some() != row.gone.is_some() {
            return Err(Fault::input("until", "must be present if and only if \"gone\" is"));
        }
        let made = self.new_number(RowKind::Change, "made", row.made)?;
        let gone = row.gone.map(|gone| self.new_number(RowKind::Change, "gone", gone)).transpose()?;
        if gone.is_some_and(|gone| gone < made) {
            return Err(Fault::input("gone", "must not be before \"made\""));
        }
        let origin = row.origin.map(|origin| self.new_number(of, "origin", origin)).transpose()?;
        let maybe = |number: Option<i64>| number.map_or(Value::Null, Value::Int);
        let until = row.until.map_or(Ok(Value::Null), |until| number("until", until))?;
        Ok([number("since", row.since)?, until, Value::Int(made), maybe(gone), maybe(origin)])
    }

    /// Refuses a second one of what there may be only one of, if the row holds.
    pub(crate) fn require_unique(&mut self, row: &VersionedRow, what: impl FnOnce() -> String) -> Result<()> {
        if !row.is_live() {
            return Ok(());
        }
        let what = what();
        match self.live.contains(&what) {
            true => Err(Fault::input("gone", format!("is missing: {what} already exists"))),
            false => {
                self.live.insert(what);
                Ok(())
            }
        }
    }

    /// Refuses a second one of what there may be only one of.
    pub(crate) fn unique(&mut self, what: String) -> Result<()> {
        match self.live.insert(what) {
            true => Ok(()),
            false => Err(Fault::input("uid", "already belongs to another entity")),
        }
    }

    /// A page for an entity that holds.
    pub(crate) fn open_page(&mut self, change: &mut Change<'_>, entity: i64) -> Result<()> {
        if let Entry::Vacant(none) = self.pages.entry(entity) {
            none.insert(OpenPage::add(change, entity)?);
        }
        Ok(())
    }

    /// The page of an entity for one more observation.
    pub(crate) fn page_for(&mut self, change: &mut Change<'_>, entity: i64, content: &str) -> Result<i64> {
        let mut open = match self.pages.remove(&entity) {
            Some(page) if page.has_room() => page,
            full => {
                full.map_or(Ok(()), |full| full.close(change))?;
                OpenPage::add(change, entity)?
            }
        };
        let page = open.page;
        open.take(content);
        self.pages.insert(entity, open);
        Ok(page)
    }

    /// Counts what was put on pages.
    pub(crate) fn close(self, change: &mut Change<'_>) -> Result<()> {
        self.pages.into_values().try_for_each(|page| page.close(change))
    }
}
