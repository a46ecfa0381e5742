//! SQLite behind [`Sql`].

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::ffi::{SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_UNIQUE};
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{Connection, ErrorCode, OpenFlags, ToSql, params_from_iter};

use super::sql::{self, Dialect, Row, Session, Sql, Value};
use crate::error::{Code, Fault, Result};

/// How long to wait for another process that writes.
pub(super) const BUSY: Duration = Duration::from_secs(10);
/// After how many pages of 4 KiB what was written goes to its place in the file. Many pages are written again and again,
/// and go there once; but after a crash all of them are read.
const CHECKPOINT: i64 = 4_000;
/// How long to wait for others at the end.
const LEAVING: Duration = Duration::from_secs(1);
/// How many prepared statements to keep.
const STATEMENTS: usize = 128;

/// How every SQLite file begins.
const BEGIN: &[u8] = b"SQLite format 3\0";
/// Tables that every memory has.
const TABLES: [&str; 4] = ["tenants", "changes", "observations", "pages"];

/// Refuses a file of anybody else's before anything in it is touched. An empty one can become a memory.
pub(super) fn check_ours(path: &Path) -> Result<()> {
    let refused = |what: &str| {
        Err(Fault::new(Code::Database, format!("{what}: name another file. It was not touched")))
    };
    if path.is_dir() {
        return refused("It is a directory, not a file");
    }
    let tables = match tables(path) {
        Err(error) if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) && !began_well(path) => {
            return refused("It is not a Tidegate memory; it is not a SQLite file at all");
        }
        tables => tables?,
    };
    match tables.is_empty() || TABLES.iter().all(|ours| tables.iter().any(|table| table == ours)) {
        true => Ok(()),
        false => refused("It is not a Tidegate memory; it is a SQLite file of another program"),
    }
}

/// Whether a file that SQLite cannot use begins like one that it could once. Nobody has it open.
fn began_well(path: &Path) -> bool {
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(BEGIN.len() as u64).read_to_end(&mut begin));
    read.is_ok() && begin == BEGIN
}

/// The names of the tables in a file. SQLite itself looks: nobody else may open a file that it may have open, see
/// [`super::location`].
fn tables(path: &Path) -> rusqlite::Result<Vec<String>> {
    let connection = Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
    connection.busy_timeout(BUSY)?;
    let mut statement = connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?;
    statement.query_map([], |row| row.get(0))?.collect()
}

/// Opens the file. Only one connection of a process writes: that one makes a temporary table.
pub(super) fn open(path: &Path, temporary: Option<&str>) -> Result<Connection> {
    let writes = temporary.is_some();
    if writes {
        check_ours(path)?;
    }
    let mut flags = OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
    flags |= match writes {
        true => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
        false => OpenFlags::SQLITE_OPEN_READ_ONLY,
    };
    let connection = Connection::open_with_flags(path, flags)?;
    connection.busy_timeout(BUSY)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS);
    // Otherwise some statements are prepared anew for each value that they get.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    if writes {
        // What was acknowledged survives the end of the process, and with FULL that of the machine.
        connection.pragma_update(None, "journal_mode", "WAL")?;
        connection.pragma_update(None, "synchronous", "FULL")?;
        connection.pragma_update(None, "foreign_keys", true)?;
        connection.pragma_update(None, "wal_autocheckpoint", CHECKPOINT)?;
    } else {
        connection.pragma_update(None, "query_only", true)?;
    }
    // 64 MiB of pages for the writer, 8 for each reader.
    connection.pragma_update(None, "cache_size", if writes { -65_536 } else { -8_192 })?;
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    if let Some(temporary) = temporary {
        connection.execute_batch(temporary)?;
    }
    Ok(connection)
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Fault {
        tracing::warn!(%error, "the database refused");
        if let rusqlite::Error::SqliteFailure(why, _) = &error
            && [SQLITE_CONSTRAINT_UNIQUE, SQLITE_CONSTRAINT_PRIMARYKEY].contains(&why.extended_code)
        {
            return Fault::twice();
        }
        let what = match error.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => "The disk is full; nothing was stored",
            Some(rusqlite::ErrorCode::ReadOnly) => "The memory file is read-only; check its permissions",
            Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
                "Another process has locked the memory file for too long; try again"
            }
            Some(rusqlite::ErrorCode::DatabaseCorrupt | rusqlite::ErrorCode::NotADatabase) => {
                "The memory file is corrupt; restore it from a backup"
            }
            _ => "The memory could not be read or written; see the log for details",
        };
        Fault::new(Code::Database, what)
    }
}

impl ToSql for Value<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Value::Null => ValueRef::Null,
            Value::Int(n) => ValueRef::Integer(*n),
            Value::Real(n) => ValueRef::Real(*n),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Blob(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl Sql for Connection {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        sql::keepable(values)?;
        Ok(self.prepare_cached(sql)?.execute(params_from_iter(values))?)
    }

    fn each(
        &mut self,
        sql: &str,
        values: &[Value<'_>],
        each: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<()> {
        if sql::finds_nothing(sql, values)? {
            return Ok(());
        }
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

    fn maybe_blob(&self, column: usize) -> Result<Option<Vec<u8>>> {
        Ok(self.get(column)?)
    }
}

impl Session for Connection {
    fn begin_write(&mut self) -> Result<()> {
        self.batch("BEGIN IMMEDIATE")
    }

    fn begin_read(&mut self) -> Result<()> {
        self.batch("BEGIN")
    }

    fn commit(&mut self) -> Result<()> {
        self.batch("COMMIT").inspect_err(|_| {
            let _ = self.execute_batch("ROLLBACK");
        })
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        Ok(self.execute_batch(statements)?)
    }

    fn checkpoint(&mut self) {
        let _ = self.busy_timeout(LEAVING);
        match self.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0)) {
            Ok(0) => {}
            Ok(_) => {
                tracing::debug!("another process uses the memory file: the newest changes stay beside it")
            }
            Err(error) => tracing::debug!(%error, "the newest changes stay beside the memory file"),
        }
    }
}
