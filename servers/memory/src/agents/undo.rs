//! Taking back what a change did to agents: what it made ends, and the version before it comes back.

use super::{index, repository};
use crate::changes::blocked;
use crate::changes::versioned::{self, Table, UndoCounts};
use crate::error::{Code, Fault, Result};
use crate::store::{Change, Value};

const AGENTS: Table = Table { name: "agents", called: "name" };

/// Takes back what a change did to agents. Refused if later changes are about the same.
pub(crate) fn undo(change: &mut Change<'_>, undoing: i64) -> Result<UndoCounts> {
    let mut undone = UndoCounts::default();
    for ended in versioned::end(change, &AGENTS, undoing)? {
        undone.removed += i64::from(ended.called.is_some());
        if let Some(before) = ended.before {
            bring(change, undoing, before)?;
            undone.restored += 1;
        }
        index::touch(change, ended.key)?;
    }
    Ok(undone)
}

/// Makes a version of an agent the present one again.
fn bring(change: &mut Change<'_>, undoing: i64, row: i64) -> Result<()> {
    let known = change.one(
        "SELECT owner, name FROM agents WHERE tenant = ?1 AND id = ?2",
        &[Value::Int(row)],
        |row| Ok((row.text(0)?, row.text(1)?)),
    )?;
    let (owner, name) = known.ok_or_else(|| Fault::new(Code::Database, "The agent is not there any more"))?;
    let other = change.one(
        "SELECT made FROM agents WHERE tenant = ?1 AND owner = ?2 AND name = ?3 AND gone IS NULL",
        &[Value::Text(owner.into()), Value::Text((&*name).into())],
        |row| row.int(0),
    )?;
    if let Some(by) = other {
        return Err(blocked(change, undoing, by, &name)?);
    }
    repository::check_capacity(change)?;
    change.run(
        "INSERT INTO agents (tenant, key, name, owner, document, since, made, root)
         SELECT tenant, key, name, owner, document, ?2, ?3, COALESCE(root, id) FROM agents
         WHERE tenant = ?1 AND id = ?4",
        &[Value::Int(change.now), Value::Int(change.id), Value::Int(row)],
    )?;
    Ok(())
}
