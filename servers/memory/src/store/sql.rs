//! [`Sql`]: what the queries of this crate need of a database, so that they are written once.
//!
//! Queries are plain SQL with `?1`, `?2` for values.

use std::borrow::Cow;

use crate::error::{Fault, Result};

/// A value that goes into a query or comes out of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
    Blob(Cow<'a, [u8]>),
}

/// Refuses a text with the character U+0000: PostgreSQL cannot keep it, and so nothing does.
pub(super) fn keepable(values: &[Value<'_>]) -> Result<()> {
    match values.iter().any(has_nul) {
        true => Err(Fault::nul("text")),
        false => Ok(()),
    }
}

/// Whether the query asks for a text with the character U+0000, which is nowhere. If it would keep it, it is refused.
pub(super) fn finds_nothing(sql: &str, values: &[Value<'_>]) -> Result<bool> {
    match sql.trim_start().starts_with("SELECT") {
        true => Ok(values.iter().any(has_nul)),
        false => keepable(values).map(|()| false),
    }
}

fn has_nul(value: &Value<'_>) -> bool {
    matches!(value, Value::Text(text) if text.contains('\0'))
}

/// From where to where texts begin so, in capitals or not, where `LOWER` of them is compared.
pub(crate) fn prefix_range(typed: &str) -> [Value<'static>; 2] {
    // The letters that LOWER knows in every database.
    let from = typed.to_ascii_lowercase();
    // No character comes after this one.
    let to = format!("{from}\u{10FFFF}");
    [Value::Text(from.into()), Value::Text(to.into())]
}

/// A row that was found.
pub(crate) trait Row {
    fn int(&self, column: usize) -> Result<i64>;
    fn maybe_int(&self, column: usize) -> Result<Option<i64>>;
    fn maybe_real(&self, column: usize) -> Result<Option<f64>>;
    fn text(&self, column: usize) -> Result<String>;
    fn maybe_text(&self, column: usize) -> Result<Option<String>>;
    fn maybe_blob(&self, column: usize) -> Result<Option<Vec<u8>>>;
}

/// The kinds of databases. What both understand is written once; the index of words is each one's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    Sqlite,
    Postgres,
}

/// A connection, or a transaction on one.
pub(crate) trait Sql {
    /// Which kind of database it is.
    fn dialect(&self) -> Dialect;

    /// Runs a statement. Returns how many rows it changed.
    fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<usize>;

    /// Hands each row of a query to `each`.
    fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()>;
}

/// A connection on which transactions begin and end.
pub(super) trait Session: Sql + Send {
    /// Begins a transaction that writes, once no other process is in one. What a lost connection needs is done first.
    fn begin_write(&mut self) -> Result<()>;

    /// Begins a transaction in which all queries see the same moment.
    fn begin_read(&mut self) -> Result<()>;

    /// Keeps what the transaction wrote. If that fails, the fault says whether it is certain that nothing was kept.
    fn commit(&mut self) -> Result<()>;

    /// Runs statements that take no values and give no rows, one after the other.
    fn batch(&mut self, statements: &str) -> Result<()>;

    /// Brings what was written to where it is looked for when nothing is running, before the connection is closed.
    fn checkpoint(&mut self) {}
}
