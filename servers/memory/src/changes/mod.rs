//! The changes that were made: when, by whom, and how much; and why one cannot be undone.

pub(crate) mod versioned;

use schemars::JsonSchema;
use serde::Serialize;

use crate::error::{Code, Fault, Result};
use crate::store::{Change, Row, Value, View};

/// How many of what.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, JsonSchema)]
pub(crate) struct ChangeCounts {
    /// Entities.
    pub(crate) entities: i64,
    /// Observations.
    pub(crate) observations: i64,
    /// Relations.
    pub(crate) relations: i64,
    /// Properties of entities.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub(crate) properties: i64,
    /// Documents: each in one of its versions.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub(crate) documents: i64,
    /// Agents: each in one of its versions.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub(crate) agents: i64,
}

fn is_zero(count: &i64) -> bool {
    *count == 0
}

/// The tables with what can be undone.
pub(crate) const TABLES: [&str; 6] =
    ["entities", "observations", "properties", "relations", "documents", "agents"];

/// How many names say what a change was about.
const NAMES: usize = 10;
/// At how many rows of each kind they are looked for.
const LOOKED_AT: i64 = 200;

/// A change.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ChangeRecord {
    /// Its number.
    pub(crate) id: i64,
    /// When it was made, in milliseconds since 1970.
    pub(crate) at: i64,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) who: Option<String>,
    /// The tool that made it.
    pub(crate) what: String,
    /// The change that it undoes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undoes: Option<i64>,
    /// The change that undid it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) undone_by: Option<i64>,
    /// How much it added.
    pub(crate) added: ChangeCounts,
    /// How much it removed.
    pub(crate) removed: ChangeCounts,
    /// The names of the entities and agents and the titles of the documents that it changed, at most ten.
    pub(crate) about: Vec<String>,
}

const COLUMNS: &str = "id, at, who, what, undoes, undone";

fn read(row: &dyn Row) -> Result<ChangeRecord> {
    Ok(ChangeRecord {
        id: row.int(0)?,
        at: row.int(1)?,
        who: row.maybe_text(2)?,
        what: row.text(3)?,
        undoes: row.maybe_int(4)?,
        undone_by: row.maybe_int(5)?,
        added: ChangeCounts::default(),
        removed: ChangeCounts::default(),
        about: Vec::new(),
    })
}

/// One change.
pub(crate) fn find(view: &mut View<'_>, id: i64) -> Result<ChangeRecord> {
    let sql = format!("SELECT {COLUMNS} FROM changes WHERE tenant = ?1 AND id = ?2");
    let noted = view.one(&sql, &[Value::Int(id)], read)?;
    let noted = noted.ok_or_else(|| {
        Fault::new(Code::NotFound, format!("Change {id} not found; list_changes shows the changes"))
    })?;
    counted(view, noted)
}

/// The last changes that are before one, newest first, at most `limit`.
pub(crate) fn last(view: &mut View<'_>, limit: usize, before: Option<i64>) -> Result<Vec<ChangeRecord>> {
    let sql =
        format!("SELECT {COLUMNS} FROM changes WHERE tenant = ?1 AND id < ?2 ORDER BY id DESC LIMIT ?3");
    let values = [Value::Int(before.unwrap_or(i64::MAX)), Value::Int(limit as i64)];
    let noted = view.all(&sql, &values, read)?;
    noted.into_iter().map(|noted| counted(view, noted)).collect()
}

/// A change that cannot be undone, and why.
pub(crate) fn conflict(id: i64, reason: String) -> Fault {
    Fault::new(Code::Conflict, format!("Change {id} cannot be undone: {reason}"))
}

/// Why a change cannot be undone: another one has to be undone first.
pub(crate) fn blocked(change: &mut Change<'_>, undoing: i64, by: i64, what: &str) -> Result<Fault> {
    let other = find(change, by)?;
    let what: String = what.chars().take(80).collect();
    let reason = format!("change {by} ({}) also changed {what:?}; undo change {by} first", other.what);
    Ok(conflict(undoing, reason))
}

/// The change with what it touched, and how much.
fn counted(view: &mut View<'_>, mut noted: ChangeRecord) -> Result<ChangeRecord> {
    let id = noted.id;
    let mut count = |table: &str, column: &str| {
        let sql = format!("SELECT count(*) FROM {table} WHERE tenant = ?1 AND {column} = ?2");
        Ok::<i64, Fault>(view.one(&sql, &[Value::Int(id)], |row| row.int(0))?.unwrap_or_default())
    };
    for (counts, column) in [(&mut noted.added, "made"), (&mut noted.removed, "gone")] {
        *counts = ChangeCounts {
            entities: count("entities", column)?,
            observations: count("observations", column)?,
            relations: count("relations", column)?,
            properties: count("properties", column)?,
            documents: count("documents", column)?,
            agents: count("agents", column)?,
        };
    }
    noted.about = about(view, &noted)?;
    Ok(noted)
}

/// What a change was about.
fn about(view: &mut View<'_>, noted: &ChangeRecord) -> Result<Vec<String>> {
    const ENTITIES: &str = "SELECT name FROM entities t WHERE";
    const OBSERVED: &str = "SELECT e.name FROM observations t
         JOIN entities e ON e.tenant = ?1 AND e.key = t.entity AND e.made <= ?2 AND (e.gone IS NULL OR e.gone >= ?2)
         WHERE";
    const DESCRIBED: &str = "SELECT e.name FROM properties t
         JOIN entities e ON e.tenant = ?1 AND e.key = t.entity AND e.made <= ?2 AND (e.gone IS NULL OR e.gone >= ?2)
         WHERE";
    const CONNECTED: &str = "SELECT source FROM relations t WHERE";
    const DOCUMENTS: &str = "SELECT title FROM documents t WHERE";
    const AGENTS: &str = "SELECT name FROM agents t WHERE";
    let mut names: Vec<String> = Vec::new();
    for (counts, column) in [(&noted.added, "made"), (&noted.removed, "gone")] {
        for (count, select) in [
            (counts.entities, ENTITIES),
            (counts.observations, OBSERVED),
            (counts.properties, DESCRIBED),
            (counts.relations, CONNECTED),
            (counts.documents, DOCUMENTS),
            (counts.agents, AGENTS),
        ] {
            if count == 0 || names.len() >= NAMES {
                continue;
            }
            // Most rows of a change are about few things, and those of a large one are not all looked at.
            let sql = format!("{select} t.tenant = ?1 AND t.{column} = ?2 ORDER BY t.id LIMIT ?3");
            let found = view.all(&sql, &[Value::Int(noted.id), Value::Int(LOOKED_AT)], |row| row.text(0))?;
            for name in found {
                if names.len() < NAMES && !names.contains(&name) {
                    names.push(name);
                }
            }
        }
    }
    Ok(names)
}
