//! [`Schema`]: the tables, and how older files get them.
//!
//! Nothing is ever overwritten. A row has two spans of time: `since` to `until` is when what it says held, `made` to
//! `gone` are the changes by which it came to be known and ceased to be. What is known now has no `gone`.
//!
//! The store knows tenants and changes. Whatever else is kept belongs to parts that are above it, and comes with the schema.

use super::sql::{Dialect, Sql, Value};
use super::tenants;
use super::view::Change;
use crate::error::{Code, Fault, Result};

/// What is kept in a store, besides tenants and changes.
pub(crate) struct Schema {
    /// Each brings a file from one version to the next: their order never changes, and none is changed once released.
    pub(crate) steps: &'static [Step],
    /// A table that only the connection that writes has, and that is empty between its transactions.
    pub(crate) temporary: &'static str,
    /// A statement that makes the table that each tenant has of its own, unless it is there: what is found in it cannot be
    /// anybody else's.
    pub(crate) tenant_table: fn(tenant: i64, Dialect) -> String,
    /// What is seen to each time that a store is opened.
    pub(crate) prepare: fn(&mut dyn Sql) -> Result<()>,
    /// Asks for whose memory [`Schema::settle`] has something to do.
    pub(crate) unsettled: &'static str,
    /// What is left to do in the memory of a tenant before its changes are committed.
    pub(crate) settle: fn(&mut Change<'_>) -> Result<()>,
}

/// Statements of one or more parts.
pub(crate) type Step = &'static [&'static [&'static str]];

/// The tables of the store itself.
pub(crate) const TABLES: &[&str] = &[
    "CREATE TABLE tenants (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE)",
    "CREATE TABLE changes (
        id INTEGER PRIMARY KEY AUTOINCREMENT,
        tenant INTEGER NOT NULL, at INTEGER NOT NULL, who TEXT, what TEXT NOT NULL, undoes INTEGER)",
    "CREATE INDEX changes_at ON changes (tenant, at)",
];

/// Adds an extension of PostgreSQL, unless it is there, or cannot be had.
const NEARLY: &str =
    "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS pg_trgm; EXCEPTION WHEN OTHERS THEN NULL; END $$";

/// Brings the store up to date.
pub(super) fn migrate(sql: &mut dyn Sql, schema: &Schema) -> Result<()> {
    let version = version(sql)?;
    if version > schema.steps.len() {
        return Err(Fault::new(
            Code::Database,
            "The memory was written by a newer version of Tidegate; use that version, or another file or database",
        ));
    }
    apply_steps(sql, schema, version, schema.steps.len())?;
    tenants::make_table(sql, schema, tenants::NOBODY)?;
    (schema.prepare)(sql)
}

/// Makes the steps after the first `from`, up to `to` of them.
pub(super) fn apply_steps(sql: &mut dyn Sql, schema: &Schema, from: usize, to: usize) -> Result<()> {
    for (at, step) in schema.steps.iter().enumerate().take(to).skip(from) {
        for statement in step.iter().copied().flatten() {
            sql.run(statement, &[])?;
        }
        set_version(sql, at + 1)?;
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
