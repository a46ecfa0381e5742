//! [`Postgres`]: PostgreSQL behind [`Sql`], for more than one machine.
//!
//! Whoever writes holds one lock of the database for the time of a transaction, so that what is read in it holds until it
//! is committed, whichever machine asks. A connection that was lost is made anew when the next transaction begins, and
//! only then: nothing that was begun is ever repeated.

mod ddl;
mod fault;
mod numeric;
mod server;
mod text;
mod tls;
mod values;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ::postgres::fallible_iterator::FallibleIterator;
use ::postgres::{Client, Error, Statement};

use super::sql::{self, Dialect, Row, Session, Sql, Value};
use crate::error::{Fault, Result};
pub(super) use server::Server;
use values::Param;

/// How many prepared statements to keep.
const STATEMENTS: usize = 256;
/// How long to try for a connection that was lost.
const PATIENCE: Duration = Duration::from_secs(10);
/// The pause before the second try; each later one is twice as long.
const PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// The lock that whoever writes holds. Every version of this program takes the same.
const LOCK: i64 = 0x7469_6465_6d65_6d6f;

/// A connection to a server.
pub(super) struct Postgres {
    server: Arc<Server>,
    writes: bool,
    client: Option<Client>,
    /// By the query and the types of its values, a letter each.
    statements: HashMap<(String, String), Statement>,
}

impl Postgres {
    /// A connection. One that writes is there at once; one that reads comes about when it is needed.
    pub(super) fn open(server: Arc<Server>, writes: bool) -> Result<Postgres> {
        let mut session = Postgres { server, writes, client: None, statements: HashMap::new() };
        if writes {
            let mut client = session.server.connect(writes).map_err(|error| fault::of(&error))?;
            server::check(&mut client)?;
            session.client = Some(client);
        }
        Ok(session)
    }

    /// The connection, as long as it is there: a transaction does not go on in another one.
    fn client(&mut self) -> Result<&mut Client> {
        self.client.as_mut().filter(|client| !client.is_closed()).ok_or_else(fault::lost)
    }

    /// What the server said, as a fault. A connection that is of no more use is given up.
    fn refused(&mut self, error: &Error) -> Fault {
        if fault::is_lost(error) {
            self.hang_up();
        } else if fault::is_outdated(error) {
            self.statements.clear();
        }
        fault::of(error)
    }

    fn hang_up(&mut self) {
        self.statements.clear();
        if let Some(client) = self.client.take() {
            // It waits for its own end, which a thread that runs other tasks must not do.
            match tokio::runtime::Handle::try_current() {
                Ok(_) => drop(std::thread::spawn(move || drop(client))),
                Err(_) => drop(client),
            }
        }
    }

    /// Begins a transaction, on a new connection if the last one was lost.
    fn begin(&mut self, how: &str) -> Result<()> {
        let until = Instant::now() + PATIENCE;
        let mut pause = PAUSE;
        loop {
            match self.try_begin(how) {
                Ok(()) => return Ok(()),
                Err(error) if fault::is_lost(&error) && Instant::now() + pause < until => {
                    tracing::info!(%error, "the connection to the database was lost: trying again");
                    self.hang_up();
                    std::thread::sleep(pause);
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
                Err(error) => {
                    let fault = self.refused(&error);
                    let _ = self.batch("ROLLBACK");
                    return Err(fault);
                }
            }
        }
    }

    fn try_begin(&mut self, how: &str) -> Result<(), Error> {
        if self.client().is_err() {
            self.hang_up();
        }
        match &mut self.client {
            Some(client) => client.batch_execute(how),
            none => none.insert(self.server.connect(self.writes)?).batch_execute(how),
        }
    }

    /// The statement for these values, prepared once.
    fn prepare(&mut self, sql: &str, values: &[Value<'_>]) -> Result<Statement> {
        let known = (sql.to_owned(), values.iter().map(values::letter).collect());
        if let Some(statement) = self.statements.get(&known) {
            return Ok(statement.clone());
        }
        let query = text::numbered(sql, values)?;
        let types: Vec<_> = values.iter().map(values::type_of).collect();
        let prepared = self.client()?.prepare_typed(&query, &types);
        let statement = prepared.map_err(|error| self.refused(&error))?;
        if self.statements.len() >= STATEMENTS {
            self.statements.clear();
        }
        self.statements.insert(known, statement.clone());
        Ok(statement)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Sql for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn run(&mut self, sql: &str, values: &[Value<'_>]) -> Result<usize> {
        if ddl::defines(sql) {
            return self.batch(&ddl::translated(sql)).map(|()| 0);
        }
        sql::keepable(values)?;
        let statement = self.prepare(sql, values)?;
        let params = values::params(values);
        let params: Vec<_> = params.iter().map(Param::as_dyn).collect();
        let ran = self.client()?.execute(&statement, &params);
        ran.map(|rows| rows as usize).map_err(|error| self.refused(&error))
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
        let statement = self.prepare(sql, values)?;
        let params = values::params(values);
        let found = (|| {
            let mut rows = self.client()?.query_raw(&statement, params).map_err(QueryFailure::Server)?;
            while let Some(row) = rows.next().map_err(QueryFailure::Server)? {
                each(&row)?;
            }
            Ok(())
        })();
        found.map_err(|trouble| match trouble {
            QueryFailure::Server(error) => self.refused(&error),
            QueryFailure::Reader(fault) => fault,
        })
    }
}

/// Why reading rows ended early.
enum QueryFailure {
    Server(Error),
    Reader(Fault),
}

impl From<Fault> for QueryFailure {
    fn from(fault: Fault) -> QueryFailure {
        QueryFailure::Reader(fault)
    }
}

impl Session for Postgres {
    fn begin_write(&mut self) -> Result<()> {
        // Each statement sees what was committed before it, and nobody else commits while the lock is held.
        self.begin(&format!("BEGIN ISOLATION LEVEL READ COMMITTED; SELECT pg_advisory_xact_lock({LOCK})"))
    }

    fn begin_read(&mut self) -> Result<()> {
        self.begin("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
    }

    fn commit(&mut self) -> Result<()> {
        // A transaction in which a statement failed would be given up without a word: the first statement tells.
        let Err(error) = self.client()?.batch_execute("SELECT 1; COMMIT") else { return Ok(()) };
        if error.as_db_error().is_some() && !fault::is_lost(&error) {
            let _ = self.batch("ROLLBACK");
            return Err(fault::of(&error));
        }
        tracing::warn!(%error, "the connection to the database was lost at a commit");
        self.hang_up();
        Err(fault::uncertain())
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        let ran = self.client()?.batch_execute(statements);
        ran.map_err(|error| self.refused(&error))
    }
}
