//! Agents with their history, row by row: out of the table, and back into it.

use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use super::history::{ArchiveLine, ArchiveWriter};
use super::numbers::{COLUMNS, RowKind, RowNumbers, VersionedRow};
use crate::agents::agentlet::Agent;
use crate::agents::{check, index, repository};
use crate::error::Result;
use crate::store::{Change, Value, View};

/// An agent from one change to the next.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct AgentVersion {
    #[serde(flatten)]
    pub(crate) row: VersionedRow,
    /// The first row of the agent.
    key: i64,
    owner: String,
    agentlet: Json,
}

/// Writes agents.
pub(crate) fn write(view: &mut View<'_>, to: &mut ArchiveWriter) -> Result<()> {
    let sql =
        format!("SELECT {COLUMNS}, root, key, owner, document FROM agents WHERE tenant = ?1 ORDER BY id");
    view.each(&sql, &[], |row| {
        to.line(&ArchiveLine::AgentVersion(AgentVersion {
            row: VersionedRow::read(row, Some(5))?,
            key: row.int(6)?,
            owner: row.text(7)?,
            agentlet: serde_json::from_str(&row.text(8)?).unwrap_or_default(),
        }))
    })
}

impl AgentVersion {
    pub(crate) fn put(self, change: &mut Change<'_>, numbers: &mut RowNumbers) -> Result<()> {
        let agent = Agent::read(&self.agentlet)?;
        check::owner("owner", &self.owner)?;
        let name = agent.name.to_lowercase();
        numbers.require_unique(&self.row, || format!("the agent {name:?} of {:?}", self.owner))?;
        numbers.require_unique(&self.row, || format!("the agent with the key {}", self.key))?;
        if self.row.is_live() {
            repository::check_capacity(change)?;
        }
        let known = match self.key == self.row.id {
            true => 0,
            false => numbers.new_number(RowKind::Agent, "key", self.key)?,
        };
        let [since, until, made, gone, root] = numbers.span(&self.row, RowKind::Agent)?;
        let document = Value::Text(agent.document().to_string().into());
        let new = change.one(
            "INSERT INTO agents (tenant, key, name, owner, document, since, until, made, gone, root)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10) RETURNING id",
            &[
                Value::Int(known),
                Value::Text(name.into()),
                Value::Text(self.owner.into()),
                document,
                since,
                until,
                made,
                gone,
                root,
            ],
            |row| row.int(0),
        )?;
        let new = numbers.add(RowKind::Agent, self.row.id, new)?;
        if known == 0 {
            change.run("UPDATE agents SET key = id WHERE tenant = ?1 AND id = ?2", &[Value::Int(new)])?;
        }
        match self.row.is_live() {
            true => index::touch(change, if known == 0 { new } else { known }),
            false => Ok(()),
        }
    }
}
