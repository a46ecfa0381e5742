//! The tables, and how older files get them.
//!
//! Nothing is ever overwritten. A row has two spans of time: `since` to `until` is when what it says held, `made` to
//! `gone` are the changes by which it came to be known and ceased to be. What is known now has no `gone`.

use super::error::{Code, Fault, Result};
use super::sql::{Dialect, Sql, Value};
use crate::embed::pgvector;

/// Each step brings a file from one version to the next: their order never changes, and none is changed once released.
pub(super) const STEPS: &[&[&str]] = &[
    GRAPH,
    crate::documents::TABLES,
    crate::agents::TABLES,
    crate::embed::TABLES,
    crate::search::TABLES,
    crate::graph::TABLES,
    crate::documents::LATER,
    crate::agents::LATER,
    crate::resources::TABLES,
    crate::search::LATER,
    crate::agents::USERS,
    crate::graph::LATER,
    super::across::TABLES,
];

const GRAPH: &[&str] = &[
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
];

/// Adds an extension of PostgreSQL, unless it is there, or cannot be had.
const NEARLY: &str =
    "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS pg_trgm; EXCEPTION WHEN OTHERS THEN NULL; END $$";

/// Brings the store up to date.
pub(super) fn migrate(sql: &mut dyn Sql) -> Result<()> {
    let version = version(sql)?;
    if version > STEPS.len() {
        return Err(Fault::new(
            Code::Database,
            "The memory was written by a newer version of Tidegate; use that version, or another file or database",
        ));
    }
    go(sql, version, STEPS.len())?;
    own_tables(sql, NOBODY)?;
    match sql.dialect() {
        Dialect::Sqlite => Ok(()),
        Dialect::Postgres => compare(sql),
    }
}

/// Makes the steps after the first `from`, up to `to` of them.
pub(super) fn go(sql: &mut dyn Sql, from: usize, to: usize) -> Result<()> {
    for (at, step) in STEPS.iter().enumerate().take(to).skip(from) {
        for statement in *step {
            sql.run(statement, &[])?;
        }
        set_version(sql, at + 1)?;
    }
    Ok(())
}

/// Has the database compare vectors, where it can.
fn compare(sql: &mut dyn Sql) -> Result<()> {
    sql.run(pgvector::ADD, &[])?;
    sql.run(pgvector::LIST, &[])?;
    let mut version = None;
    sql.each(pgvector::VERSION, &[], &mut |row| {
        version = Some(row.text(0)?);
        Ok(())
    })?;
    match version.filter(|version| pgvector::will_do(version)) {
        Some(version) => tracing::info!(version, "the database compares vectors, with pgvector"),
        None => {
            tracing::info!(
                "the database has no pgvector: vectors are compared in the memory of each process"
            );
            // If it comes back, everything is brought in anew.
            sql.run("DELETE FROM near_tables", &[])?;
        }
    }
    Ok(())
}

/// How many steps were made. SQLite keeps that in the head of the file, PostgreSQL in a table.
pub(super) fn version(sql: &mut dyn Sql) -> Result<usize> {
    let query = match sql.dialect() {
        Dialect::Sqlite => "PRAGMA user_version",
        Dialect::Postgres => {
            sql.run("CREATE TABLE IF NOT EXISTS tidegate_memory (version INTEGER NOT NULL)", &[])?;
            // Finds words that are nearly those of a query, where it can be had.
            sql.run(NEARLY, &[])?;
            "SELECT version FROM tidegate_memory"
        }
    };
    let mut version = 0;
    sql.each(query, &[], &mut |row| {
        version = row.int(0)? as usize;
        Ok(())
    })?;
    Ok(version)
}

fn set_version(sql: &mut dyn Sql, version: usize) -> Result<()> {
    match sql.dialect() {
        // A pragma takes no values.
        Dialect::Sqlite => sql.run(&format!("PRAGMA user_version = {version}"), &[])?,
        Dialect::Postgres => {
            sql.run("DELETE FROM tidegate_memory", &[])?;
            sql.run("INSERT INTO tidegate_memory (version) VALUES (?1)", &[Value::Int(version as i64)])?
        }
    };
    Ok(())
}

/// The tenant whom a memory that nobody has written to belongs to. Nothing is ever kept for it.
pub(super) const NOBODY: i64 = 0;

/// The number of a tenant, who is made if need be and if there are fewer than `most`. The usual one always is.
pub(super) fn tenant(sql: &mut dyn Sql, name: &str, most: usize) -> Result<i64> {
    let known = find_tenant(sql, name)?;
    if let Some(id) = known {
        return Ok(id);
    }
    if name != crate::DEFAULT_TENANT {
        let mut count = 0;
        let others = "SELECT COUNT(*) FROM tenants WHERE name <> ?1";
        sql.each(others, &[Value::Text(crate::DEFAULT_TENANT.into())], &mut |row| {
            count = row.int(0)?;
            Ok(())
        })?;
        if count >= i64::try_from(most).unwrap_or(i64::MAX) {
            return Err(Fault::too_many_tenants(most));
        }
    }
    sql.run("INSERT INTO tenants (name) VALUES (?1) ON CONFLICT DO NOTHING", &[Value::Text(name.into())])?;
    let id =
        find_tenant(sql, name)?.ok_or_else(|| Fault::new(Code::Database, "The tenant cannot be created"))?;
    own_tables(sql, id)?;
    Ok(id)
}

/// The index of words is each tenant's own: what is found in it cannot be anybody else's.
fn own_tables(sql: &mut dyn Sql, tenant: i64) -> Result<()> {
    let words = crate::search::own_table(tenant, sql.dialect());
    sql.run(&words, &[]).map(drop)
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
