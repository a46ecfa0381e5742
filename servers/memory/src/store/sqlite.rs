//! SQLite behind [`Sql`].

use std::path::Path;
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, OpenFlags, ToSql, params_from_iter};

use super::error::{Fault, Result};
use super::sql::{Row, Sql, Value};

/// How long to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(10);
/// How many prepared statements to keep.
const STATEMENTS: usize = 128;

/// Opens the file. Only one connection of a process writes.
pub(super) fn open(path: &Path, writes: bool) -> Result<Connection> {
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    flags |= match writes {
        true => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        false => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    if writes {
        // What was acknowledged survives the end of the process, and with FULL that of the machine.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
    } else {
        connection.pragma_update(None, "query_only", true)?;
    }
    // 16 MiB of pages for the writer, 8 for each reader.
    connection.pragma_update(None, "cache_size", if writes { -16_384 } else { -8_192 })?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(*n),
            Value::Real(n) => ValueRef::Real(*n),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
        }))
    }
}

impl Sql for Connection {
    fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(values))?)
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        let mut statement = self.prepare_cached(sql)?;
        let mut rows = statement.query(params_from_iter(values))?;
        while let Some(row) = rows.next()? {
            each(row)?;
        }
        Ok(())
    }
}

impl Row for rusqlite::Row<'_> {
    fn int(&self, column: usize) -> Result<i64> {
        Ok(self.get(column)?)
    }

    fn maybe_int(&self, column: usize) -> Result<Option<i64>> {
        Ok(self.get(column)?)
    }

    fn maybe_real(&self, column: usize) -> Result<Option<f64>> {
        Ok(self.get(column)?)
    }

    fn text(&self, column: usize) -> Result<String> {
        Ok(self.get(column)?)
    }

    fn maybe_text(&self, column: usize) -> Result<Option<String>> {
        Ok(self.get(column)?)
    }
}

/// Everything that `work` does, or nothing of it.
pub(super) fn atomically<T>(
    connection: &mut Connection,
    work: impl FnOnce(&mut Connection) -> Result<T>,
) -> Result<T, Fault> {
    connection.execute_batch("SAVEPOINT work")?;
    match work(connection) {
        Ok(done) => {
            connection.execute_batch("RELEASE work")?;
            Ok(done)
        }
        Err(fault) => {
            connection.execute_batch("ROLLBACK TO work; RELEASE work")?;
            Err(fault)
        }
    }
}
