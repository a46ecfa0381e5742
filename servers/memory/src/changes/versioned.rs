//! Taking back what a change did to things of which one row holds at a time: documents and agents.

use std::collections::BTreeMap;

use super::blocked;
use crate::error::Result;
use crate::store::{Change, Value};

/// A table of such things, and how one of them is called.
pub(crate) struct Table {
    pub(crate) name: &'static str,
    pub(crate) called: &'static str,
}

/// A row of such a table.
struct VersionRow {
    id: i64,
    /// The first of those that stand for each other.
    root: i64,
    called: String,
    made: i64,
}

/// What was ended of one thing, and what is to come back.
#[derive(Default)]
pub(crate) struct EndedVersion {
    pub(crate) key: i64,
    /// How the thing was called until now, if it was there.
    pub(crate) called: Option<String>,
    /// The row that held before the change, if there was one.
    pub(crate) before: Option<i64>,
}

/// How much was undone.
#[derive(Default)]
pub(crate) struct UndoCounts {
    /// How many things have come back, in the version that they had.
    pub(crate) restored: i64,
    /// How many have ended, in the version that they had until now.
    pub(crate) removed: i64,
}

/// Ends what a change made of each thing that it was about. Refused if later changes are about the same.
pub(crate) fn end(change: &mut Change<'_>, table: &Table, undoing: i64) -> Result<Vec<EndedVersion>> {
    let after = rows(change, table, "made", undoing)?;
    let before = rows(change, table, "gone", undoing)?;
    let mut about: BTreeMap<i64, [Option<VersionRow>; 2]> = BTreeMap::new();
    for (side, lines) in [before, after].into_iter().enumerate() {
        for (key, line) in lines {
            about.entry(key).or_default()[side] = Some(line);
        }
    }
    let mut ended = Vec::new();
    for (key, [before, after]) in about {
        let now = present(change, table, key)?;
        if now.as_ref().map(|line| line.root) != after.as_ref().map(|line| line.root) {
            let by = match &now {
                Some(line) => line.made,
                None => last(change, table, key)?,
            };
            let called = after.or(before).map(|line| line.called).unwrap_or_default();
            return Err(blocked(change, undoing, by, &called)?);
        }
        let sql = format!(
            "UPDATE {} SET until = ?2, gone = ?3 WHERE tenant = ?1 AND key = ?4 AND gone IS NULL",
            table.name
        );
        change.run(&sql, &[Value::Int(change.now), Value::Int(change.id), Value::Int(key)])?;
        let (called, before) = (now.map(|line| line.called), before.map(|line| line.id));
        ended.push(EndedVersion { key, called, before });
    }
    Ok(ended)
}

/// The rows that a change made or ended, and that it did not both make and end, with their keys.
fn rows(
    change: &mut Change<'_>,
    table: &Table,
    column: &str,
    undoing: i64,
) -> Result<Vec<(i64, VersionRow)>> {
    let sql = format!(
        "SELECT key, id, COALESCE(root, id), {}, made FROM {} WHERE tenant = ?1 AND {column} = ?2
         AND (gone IS NULL OR made <> gone) ORDER BY id",
        table.called, table.name
    );
    change.all(&sql, &[Value::Int(undoing)], |row| {
        let line = VersionRow { id: row.int(1)?, root: row.int(2)?, called: row.text(3)?, made: row.int(4)? };
        Ok((row.int(0)?, line))
    })
}

/// The row that holds now.
fn present(change: &mut Change<'_>, table: &Table, key: i64) -> Result<Option<VersionRow>> {
    let sql = format!(
        "SELECT id, COALESCE(root, id), {}, made FROM {} WHERE tenant = ?1 AND key = ?2 AND gone IS NULL",
        table.called, table.name
    );
    change.one(&sql, &[Value::Int(key)], |row| {
        Ok(VersionRow { id: row.int(0)?, root: row.int(1)?, called: row.text(2)?, made: row.int(3)? })
    })
}

/// The change that ended the last row.
fn last(change: &mut Change<'_>, table: &Table, key: i64) -> Result<i64> {
    let sql = format!("SELECT max(gone) FROM {} WHERE tenant = ?1 AND key = ?2", table.name);
    let gone = change.one(&sql, &[Value::Int(key)], |row| row.maybe_int(0))?;
    Ok(gone.flatten().unwrap_or_default())
}
