//! [`Sql`]: what the queries of this crate need of a database, so that they are written once.
//!
//! Queries are plain SQL with `?1`, `?2` for values.

use std::borrow::Cow;

use super::error::Result;

/// A value that goes into a query or comes out of it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value<'a> {
    Null,
    Int(i64),
    Real(f64),
    Text(Cow<'a, str>),
}

/// A row that was found.
pub(crate) trait Row {
    fn int(&self, column: usize) -> Result<i64>;
    fn maybe_int(&self, column: usize) -> Result<Option<i64>>;
    fn maybe_real(&self, column: usize) -> Result<Option<f64>>;
    fn text(&self, column: usize) -> Result<String>;
    fn maybe_text(&self, column: usize) -> Result<Option<String>>;
}

/// A connection, or a transaction on one.
pub(crate) trait Sql {
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
