//! Agents that people made, as they are kept: every version of each, one of each name at a time.

use serde::Serialize;
use serde_json::Value as Json;

use super::agentlet::Agent;
use super::index;
use crate::error::{Code, Fault, Result};
use crate::store::{Change, Row, Value, View};

/// The tables of agents.
pub(crate) const TABLES: [&str; 3] = [
    // `key` stays the same from version to version.
    "CREATE TABLE agents (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, key INTEGER NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, document TEXT NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE UNIQUE INDEX agents_live ON agents (tenant, name) WHERE gone IS NULL",
    "CREATE INDEX agents_named ON agents (tenant, name, id)",
];

/// Most agents of one tenant.
pub(crate) const MOST: i64 = 1_000;

/// What came to the tables later: people of one tenant may each have an agent of the same name, and a turn of a session
/// is known by the run that it came from.
pub(crate) const OWNERS: [&str; 3] = [
    "DROP INDEX agents_live",
    "CREATE UNIQUE INDEX agents_live ON agents (tenant, owner, name) WHERE gone IS NULL",
    "ALTER TABLE messages ADD COLUMN run TEXT",
];

/// An agent as it is kept.
#[derive(Debug, Clone)]
pub(crate) struct AgentRow {
    key: i64,
    /// Who made it.
    pub(crate) owner: String,
    pub(crate) agent: Agent,
}

impl AgentRow {
    fn read(row: &dyn Row) -> Result<AgentRow> {
        let document: Json = serde_json::from_str(&row.text(2)?).unwrap_or_default();
        Ok(AgentRow { key: row.int(0)?, owner: row.text(1)?, agent: Agent::trusted(&document)? })
    }
}

/// Somebody's agent of this name, in capitals or not.
pub(crate) fn find(view: &mut View<'_>, owner: &str, name: &str) -> Result<Option<AgentRow>> {
    view.one(
        "SELECT key, owner, document FROM agents WHERE tenant = ?1 AND owner = ?2 AND name = ?3 AND gone IS NULL",
        &[Value::Text(owner.into()), Value::Text(name.to_lowercase().into())],
        AgentRow::read,
    )
}

/// Who has an agent of this name.
pub(crate) fn owners_of(view: &mut View<'_>, name: &str) -> Result<Vec<String>> {
    view.all(
        "SELECT owner FROM agents WHERE tenant = ?1 AND name = ?2 AND gone IS NULL ORDER BY owner LIMIT 10",
        &[Value::Text(name.to_lowercase().into())],
        |row| row.text(0),
    )
}

/// Whether somebody has, or had, an agent.
pub(crate) fn knows(view: &mut View<'_>, owner: &str) -> Result<bool> {
    let any = view.one(
        "SELECT id FROM agents WHERE tenant = ?1 AND owner = ?2 LIMIT 1",
        &[Value::Text(owner.into())],
        |row| row.int(0),
    )?;
    Ok(any.is_some())
}

/// The agent with this key, if it is there.
pub(crate) fn keyed(view: &mut View<'_>, key: i64) -> Result<Option<AgentRow>> {
    view.one(
        "SELECT key, owner, document FROM agents WHERE tenant = ?1 AND key = ?2 AND gone IS NULL",
        &[Value::Int(key)],
        AgentRow::read,
    )
}

/// All agents, by name.
pub(crate) fn all(view: &mut View<'_>) -> Result<Vec<AgentRow>> {
    view.all(
        "SELECT key, owner, document FROM agents WHERE tenant = ?1 AND gone IS NULL ORDER BY name, owner LIMIT ?2",
        &[Value::Int(MOST)],
        AgentRow::read,
    )
}

/// The agents of one user, by name, from those after one.
pub(crate) fn owned(view: &mut View<'_>, owner: &str, after: &str, limit: i64) -> Result<Vec<AgentRow>> {
    view.all(
        "SELECT key, owner, document FROM agents WHERE tenant = ?1 AND owner = ?2 AND name > ?3 AND gone IS NULL
         ORDER BY name LIMIT ?4",
        &[Value::Text(owner.into()), Value::Text(after.to_lowercase().into()), Value::Int(limit)],
        AgentRow::read,
    )
}

/// Keeps a new agent.
pub(crate) fn create(change: &mut Change<'_>, owner: &str, agent: &Agent) -> Result<()> {
    if find(change, owner, &agent.name)?.is_some() {
        let reason = format!("an agent {:?} already exists: change it with update_agent", agent.name);
        return Err(Fault::new(Code::Conflict, format!("agent_name: {reason}")));
    }
    check_capacity(change)?;
    insert(change, 0, owner, agent)
}

/// Refuses one more agent if there are as many as there may be.
pub(crate) fn check_capacity(change: &mut Change<'_>) -> Result<()> {
    let count = change
        .one("SELECT COUNT(*) FROM agents WHERE tenant = ?1 AND gone IS NULL", &[], |row| row.int(0))?;
    match count.unwrap_or_default() >= MOST {
        true => {
            Err(Fault::new(Code::Conflict, format!("There are already {MOST} agents: delete some first")))
        }
        false => Ok(()),
    }
}

fn insert(change: &mut Change<'_>, key: i64, owner: &str, agent: &Agent) -> Result<()> {
    let (now, id) = (Value::Int(change.now), Value::Int(change.id));
    let row = change.one(
        "INSERT INTO agents (tenant, key, name, owner, document, since, made)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) RETURNING id",
        &[
            Value::Int(key),
            Value::Text(agent.name.to_lowercase().into()),
            Value::Text(owner.into()),
            Value::Text(agent.document().to_string().into()),
            now,
            id,
        ],
        |row| row.int(0),
    )?;
    let row = row.ok_or_else(|| Fault::new(Code::Database, "The agent was not stored"))?;
    if key == 0 {
        change.run("UPDATE agents SET key = id WHERE tenant = ?1 AND id = ?2", &[Value::Int(row)])?;
    }
    index::touch(change, if key == 0 { row } else { key })
}

/// Ends the present version of an agent.
fn end(change: &mut Change<'_>, kept: &AgentRow) -> Result<()> {
    let (now, id) = (Value::Int(change.now), Value::Int(change.id));
    change.run(
        "UPDATE agents SET until = ?2, gone = ?3 WHERE tenant = ?1 AND key = ?4 AND gone IS NULL",
        &[now, id, Value::Int(kept.key)],
    )?;
    Ok(())
}

/// Puts another version of an agent in the place of the present one.
pub(crate) fn update(change: &mut Change<'_>, kept: &AgentRow, agent: &Agent) -> Result<()> {
    end(change, kept)?;
    insert(change, kept.key, &kept.owner, agent)
}

/// Forgets an agent. Its versions stay.
pub(crate) fn delete(change: &mut Change<'_>, kept: &AgentRow) -> Result<()> {
    end(change, kept)?;
    index::touch(change, kept.key)
}

/// An agent as it was from one change to the next.
#[derive(Debug, Serialize, schemars::JsonSchema)]
pub(crate) struct Version {
    /// The version that the agent said it had.
    version: String,
    /// The agent-let then.
    #[schemars(with = "Option<serde_json::Map<String, Json>>")]
    agentlet: Json,
    /// From when on it was so, in milliseconds.
    valid_from: i64,
    /// Until when; absent if it still is.
    #[serde(skip_serializing_if = "Option::is_none")]
    valid_to: Option<i64>,
    /// Who made it so.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_by: Option<String>,
}

/// The versions of somebody's agent, oldest first, whatever became of it.
pub(crate) fn history(view: &mut View<'_>, owner: &str, name: &str) -> Result<Vec<Version>> {
    view.all(
        "SELECT a.document, a.since, a.until, c.who FROM agents a
         LEFT JOIN changes c ON c.tenant = ?1 AND c.id = a.made
         WHERE a.tenant = ?1 AND a.owner = ?2 AND a.name = ?3 ORDER BY a.id DESC LIMIT 200",
        &[Value::Text(owner.into()), Value::Text(name.to_lowercase().into())],
        |row| {
            let agentlet: Json = serde_json::from_str(&row.text(0)?).unwrap_or_default();
            Ok(Version {
                version: agentlet["version"].as_str().unwrap_or_default().to_owned(),
                agentlet,
                valid_from: row.int(1)?,
                valid_to: row.maybe_int(2)?,
                changed_by: row.maybe_text(3)?,
            })
        },
    )
    .map(|mut versions| {
        versions.reverse();
        versions
    })
}

/// Who made the agents that ever had this name, and how many versions those have had.
pub(crate) fn owners(view: &mut View<'_>, name: &str) -> Result<Vec<(String, i64)>> {
    view.all(
        "SELECT owner, COUNT(*) FROM agents WHERE tenant = ?1 AND name = ?2 GROUP BY owner",
        &[Value::Text(name.to_lowercase().into())],
        |row| Ok((row.text(0)?, row.int(1)?)),
    )
}
