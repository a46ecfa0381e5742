//! The tables, and how older files get them.
//!
//! Nothing is ever overwritten. A row has two spans of time: `since` to `until` is when what it says held, `made` to
//! `gone` are the changes by which it came to be known and ceased to be. What is known now has no `gone`.

use super::error::{Code, Fault, Result};
use super::sql::{Sql, Value};

/// Each step brings a file from one version to the next.
const STEPS: &[&[&str]] = &[&[
    "CREATE TABLE tenants (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant INTEGER NOT NULL, at INTEGER NOT NULL, who TEXT, what TEXT NOT NULL, undoes INTEGER)",
    "CREATE INDEX changes_at ON changes (tenant, at)",
    // `key` stays the same when an entity changes its name or type.
    "CREATE TABLE entities (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, key INTEGER NOT NULL, name TEXT NOT NULL, type TEXT NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE UNIQUE INDEX entities_live ON entities (tenant, name) WHERE gone IS NULL",
    "CREATE INDEX entities_named ON entities (tenant, name, id)",
    "CREATE INDEX entities_keyed ON entities (tenant, key)",
    "CREATE TABLE observations (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, entity INTEGER NOT NULL, page INTEGER NOT NULL, content TEXT NOT NULL,
        digest INTEGER NOT NULL, since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE INDEX observations_of ON observations (tenant, entity, digest)",
    "CREATE TABLE relations (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, source TEXT NOT NULL, target TEXT NOT NULL, type TEXT NOT NULL,
        strength REAL, confidence REAL, metadata TEXT, version INTEGER NOT NULL,
        since INTEGER NOT NULL, until INTEGER, made INTEGER NOT NULL, gone INTEGER)",
    "CREATE UNIQUE INDEX relations_live ON relations (tenant, source, target, type) WHERE gone IS NULL",
    "CREATE INDEX relations_to ON relations (tenant, target) WHERE gone IS NULL",
    "CREATE INDEX relations_all ON relations (tenant, source, target, type, id)",
    // What is searched: a page is a text of bounded size that belongs to an entity, a document or an agent.
    "CREATE TABLE pages (
        id INTEGER PRIMARY KEY,
        tenant INTEGER NOT NULL, kind INTEGER NOT NULL, owner INTEGER NOT NULL, entries INTEGER NOT NULL)",
    "CREATE INDEX pages_of ON pages (tenant, kind, owner)",
]];

/// Brings the store up to date.
pub(super) fn migrate(sql: &mut dyn Sql) -> Result<()> {
    let mut version = 0;
    sql.each("PRAGMA user_version", &[], &mut |row| {
        version = row.int(0)? as usize;
        Ok(())
    })?;
    if version > STEPS.len() {
        return Err(Fault::new(
            Code::Database,
            "The memory file was written by a newer version of Tidegate: use that one, or another file",
        ));
    }
    for (at, step) in STEPS.iter().enumerate().skip(version) {
        for statement in *step {
            sql.run(statement, &[])?;
        }
        // A pragma takes no values.
        sql.run(&format!("PRAGMA user_version = {}", at + 1), &[])?;
    }
    Ok(())
}

/// The number of a tenant, who is made if need be.
pub(super) fn tenant(sql: &mut dyn Sql, name: &str) -> Result<i64> {
    let known = find_tenant(sql, name)?;
    if let Some(id) = known {
        return Ok(id);
    }
    sql.run("INSERT INTO tenants (name) VALUES (?1) ON CONFLICT DO NOTHING", &[Value::Text(name.into())])?;
    let id =
        find_tenant(sql, name)?.ok_or_else(|| Fault::new(Code::Database, "The tenant cannot be made"))?;
    // The index of words is each tenant's own: what is found in it cannot be anybody else's.
    sql.run(
        &format!(
            "CREATE VIRTUAL TABLE IF NOT EXISTS words_{id} USING fts5(title, body, content='', \
             contentless_delete=1, tokenize=\"unicode61 remove_diacritics 2\")"
        ),
        &[],
    )?;
    Ok(id)
}

/// The number of a tenant who is known.
pub(super) fn find_tenant(sql: &mut dyn Sql, name: &str) -> Result<Option<i64>> {
    let mut found = None;
    sql.each("SELECT id FROM tenants WHERE name = ?1", &[Value::Text(name.into())], &mut |row| {
        found = Some(row.int(0)?);
        Ok(())
    })?;
    Ok(found)
}
