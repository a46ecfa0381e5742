//! Taking a change back, by another change: what it made ends, and what it ended comes back, in the graph and among
//! documents and agents.
//!
//! A row that comes back is a new one that names its `origin`. A change is undone by its rows or by those that stand for
//! them, so that changes can be undone one after the other, and an undoing itself, too.

use crate::changes::{self, ChangeCounts, ChangeRecord, TABLES, conflict};
use crate::error::{Code, Fault, Result};
use crate::graph::revert;
use crate::store::{Change, Value};
use crate::{agents, documents};

/// What was undone.
pub(crate) struct Undone {
    /// The change that was undone, as it was before.
    pub(crate) change: ChangeRecord,
    /// What has come back.
    pub(crate) restored: ChangeCounts,
    /// What has ended.
    pub(crate) removed: ChangeCounts,
}

/// Undoes a change, or the last one that is not undone.
pub(crate) fn undo(change: &mut Change<'_>, wanted: Option<i64>) -> Result<Undone> {
    let id = match wanted {
        Some(id) => id,
        None => latest(change)?,
    };
    let noted = changes::find(change, id)?;
    if let Some(by) = noted.undone_by {
        return Err(conflict(id, format!("change {by} already undid it")));
    }
    if noted.added == ChangeCounts::default() && noted.removed == ChangeCounts::default() {
        return Err(conflict(id, "it changed nothing".to_owned()));
    }
    let reverted = revert::revert(change, id)?;
    let documents = documents::undo(change, id)?;
    let agents = agents::undo(change, id)?;
    note(change, id)?;
    Ok(Undone {
        change: noted,
        restored: ChangeCounts {
            documents: documents.restored,
            agents: agents.restored,
            ..reverted.restored
        },
        removed: ChangeCounts { documents: documents.removed, agents: agents.removed, ..reverted.removed },
    })
}

/// The last change of anything that can be undone that is neither undone nor the undoing of another.
fn latest(change: &mut Change<'_>) -> Result<i64> {
    let touched: Vec<String> = TABLES
        .into_iter()
        .flat_map(|table| ["made", "gone"].map(|column| (table, column)))
        .map(|(table, column)| {
            format!("EXISTS (SELECT 1 FROM {table} t WHERE t.tenant = ?1 AND t.{column} = c.id)")
        })
        .collect();
    let sql = format!(
        "SELECT c.id FROM changes c WHERE c.tenant = ?1 AND c.id < ?2 AND c.undoes IS NULL AND c.undone IS NULL
         AND ({}) ORDER BY c.id DESC LIMIT 1",
        touched.join(" OR ")
    );
    let this = Value::Int(change.id);
    let found = change.one(&sql, &[this], |row| row.int(0))?;
    found.ok_or_else(|| Fault::new(Code::NotFound, "There is nothing to undo"))
}

/// Notes that this change undoes another: if that one was an undoing itself, what it undid holds again, and so on.
fn note(change: &mut Change<'_>, id: i64) -> Result<()> {
    change.run(
        "UPDATE changes SET undoes = ?2 WHERE tenant = ?1 AND id = ?3",
        &[Value::Int(id), Value::Int(change.id)],
    )?;
    let (mut next, mut by) = (Some(id), Some(change.id));
    while let Some(at) = next {
        change.run(
            "UPDATE changes SET undone = ?2 WHERE tenant = ?1 AND id = ?3",
            &[by.map_or(Value::Null, Value::Int), Value::Int(at)],
        )?;
        // What is undone undoes nothing; what holds does.
        by = if by.is_some() { None } else { Some(at) };
        let found = change.one(
            "SELECT undoes FROM changes WHERE tenant = ?1 AND id = ?2",
            &[Value::Int(at)],
            |row| row.maybe_int(0),
        )?;
        next = found.flatten();
    }
    Ok(())
}
