//! [`Tables`]: vectors that PostgreSQL compares by itself, with its extension pgvector, so that all machines share one
//! index and no process holds all vectors.
//!
//! A model has tables of its own for each tenant, one for each kind of pages, with its number of dimensions: what is found
//! in one is never anybody else's, and nothing has to be left out of what is found. What [`super::vectors`] keeps is the truth, and
//! the tables follow it by its stamps, in the transactions that write it. What was kept before the extension came is
//! brought in by the worker, some rows at a time; until then each process compares vectors in its own memory.

mod search;
mod tables;
#[cfg(test)]
mod tests;

use crate::error::Result;
use crate::pages;
use crate::store::{Change, Dialect, Sql, Value, View};
use tables::Tables;

/// The list of these tables. It can be made anew at any time, and so has no part in the versions of the store. `stamp` and
/// `page` are how far the tables are, and `whole` is 1 once everything came in that was there before them.
const LIST: &str = "CREATE TABLE IF NOT EXISTS near_tables (
    id INTEGER PRIMARY KEY, tenant INTEGER NOT NULL, model TEXT NOT NULL, dimensions INTEGER NOT NULL,
    form TEXT NOT NULL, stamp INTEGER NOT NULL, page INTEGER NOT NULL, whole INTEGER NOT NULL, UNIQUE (tenant, model))";
/// Adds the extension, unless it is there, or cannot be had.
const ADD: &str =
    "DO $$ BEGIN CREATE EXTENSION IF NOT EXISTS vector; EXCEPTION WHEN OTHERS THEN NULL; END $$";
/// The version of the extension, if it is there.
const VERSION: &str =
    "SELECT extversion FROM pg_extension WHERE extname = 'vector' AND to_regtype('vector') IS NOT NULL";

/// The kinds of pages that have vectors.
const KINDS: [i64; 2] = [pages::ENTITY, pages::DOCUMENT];
/// The oldest version that will do: the first with an index of this kind.
const OLDEST: (u32, u32) = (0, 5);

/// Has the database compare vectors, where it can.
pub(crate) fn prepare(sql: &mut dyn Sql) -> Result<()> {
    if sql.dialect() != Dialect::Postgres {
        return Ok(());
    }
    sql.run(ADD, &[])?;
    sql.run(LIST, &[])?;
    let mut version = None;
    sql.each(VERSION, &[], &mut |row| {
        version = Some(row.text(0)?);
        Ok(())
    })?;
    match version.filter(|version| will_do(version)) {
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

/// The version of the extension, if the database has one that will do.
pub(crate) fn version(view: &mut View<'_>) -> Result<Option<String>> {
    if view.dialect() != Dialect::Postgres {
        return Ok(None);
    }
    // Whoever asks: a tenant that nothing is kept of yet has no row.
    let sql = format!("SELECT v.extversion FROM ({VERSION}) v LEFT JOIN tenants t ON t.id = ?1");
    let found = view.one(&sql, &[], |row| row.text(0))?;
    Ok(found.filter(|version| will_do(version)))
}

/// Whether a version of the extension has what is needed.
fn will_do(version: &str) -> bool {
    numbers(version) >= OLDEST
}

fn numbers(version: &str) -> (u32, u32) {
    let mut parts = version.split('.').map(|part| part.parse().unwrap_or_default());
    (parts.next().unwrap_or_default(), parts.next().unwrap_or_default())
}

/// How it stands with the tables of a model.
pub(crate) struct State {
    /// Of the extension.
    pub(crate) version: String,
    /// How many vectors came in.
    pub(crate) vectors: i64,
    /// Whether a table is so large that it has an index.
    pub(crate) indexed: bool,
    /// Whether all came in, so that the tables are searched.
    pub(crate) complete: bool,
}

/// How it stands with the tables of a model, if there is the extension.
pub(crate) fn state(view: &mut View<'_>, model: &str) -> Result<Option<State>> {
    let Some(version) = version(view)? else { return Ok(None) };
    let mut state = State { version, vectors: 0, indexed: false, complete: false };
    if let Some(tables) = Tables::find(view, model)? {
        state.complete = tables.whole;
        for kind in KINDS {
            state.vectors += tables.count(view, kind)?;
            state.indexed |= tables.is_indexed(view, kind)?;
        }
    }
    Ok(Some(state))
}

/// The tables of a model, if they are there and whole, so that they can be searched.
pub(in crate::embeddings) fn ready(view: &mut View<'_>, model: &str) -> Result<Option<Tables>> {
    match view.dialect() {
        Dialect::Sqlite => Ok(None),
        Dialect::Postgres => Ok(Tables::find(view, model)?.filter(|tables| tables.whole)),
    }
}

/// Whether there is something that has not come in yet.
pub(crate) fn is_behind(view: &mut View<'_>, model: &str) -> Result<bool> {
    if version(view)?.is_none() {
        return Ok(false);
    }
    match Tables::find(view, model)? {
        Some(tables) => tables.is_behind(view, model),
        None => Ok(tables::dimensions(view, model)?.is_some()),
    }
}

/// Brings in what is new, as much as comes in at a time.
pub(crate) fn follow(change: &mut Change<'_>, model: &str) -> Result<()> {
    let Some(version) = version(change)? else { return Ok(()) };
    let mut tables = match Tables::find(change, model)? {
        Some(tables) => tables,
        None => match tables::dimensions(change, model)? {
            Some(dimensions) => Tables::make(change, model, dimensions, &version)?,
            None => return Ok(()),
        },
    };
    tables.bring_in(change, model)
}

/// Takes a page out of the tables of all models.
pub(crate) fn forget(change: &mut Change<'_>, page: i64) -> Result<()> {
    if change.dialect() != Dialect::Postgres {
        return Ok(());
    }
    for tables in Tables::all(change)? {
        tables.take_out(change, page)?;
    }
    Ok(())
}

/// Removes the tables of a model, or with `others` those of all other models.
pub(crate) fn remove(change: &mut Change<'_>, model: &str, others: bool) -> Result<()> {
    if change.dialect() != Dialect::Postgres {
        return Ok(());
    }
    let which = if others { "<>" } else { "=" };
    let sql = format!("DELETE FROM near_tables WHERE tenant = ?1 AND model {which} ?2 RETURNING id");
    for id in change.all(&sql, &[Value::Text(model.into())], |row| row.int(0))? {
        tables::remove(change, id)?;
    }
    Ok(())
}
