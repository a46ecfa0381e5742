//! The thread that writes: changes that wait at the same moment are committed together.

use std::panic::{AssertUnwindSafe, catch_unwind};

use tokio::sync::{mpsc, watch};

use super::location::Location;
use super::schema::{self, Schema};
use super::sql::{Session, Sql};
use super::view::Change;
use crate::error::{Fault, Result};

/// How many are committed together at most.
const TOGETHER: usize = 256;

/// Makes a change, if there is a transaction for it, and returns what to do once that is on the disk, or is not.
pub(super) type Job = Box<dyn FnOnce(Option<&mut dyn Session>) -> Completion + Send>;
pub(super) type Completion = Box<dyn FnOnce(Result<()>) + Send>;

/// Starts the thread, which opens the location and brings it up to date first. What it returns has no sender any more once
/// the thread has closed its connection and ended.
pub(super) fn start(location: Location, jobs: mpsc::Receiver<Job>) -> Result<watch::Receiver<()>> {
    let (ready, opened) = std::sync::mpsc::channel();
    let (alive, writer) = watch::channel(());
    let life = move || {
        let _alive = alive;
        match open(&location) {
            Ok(session) => {
                let _ = ready.send(Ok(()));
                write(session, location.schema(), jobs);
            }
            Err(fault) => {
                let _ = ready.send(Err(fault));
            }
        }
    };
    std::thread::Builder::new().name("memory-writer".to_owned()).spawn(life).map_err(|error| {
        Fault::new(crate::error::Code::Database, format!("No thread can be started: {error}"))
    })?;
    opened.recv().unwrap_or_else(|_| Err(Fault::panicked()))?;
    Ok(writer)
}

fn open(location: &Location) -> Result<Box<dyn Session>> {
    let mut session = location.open(true)?;
    // Another process may be doing the same.
    session.begin_write()?;
    // A step may have left something to settle.
    let schema = location.schema();
    match schema::migrate(&mut *session, schema).and_then(|()| settle(&mut *session, schema)) {
        Ok(()) => session.commit()?,
        Err(fault) => {
            let _ = session.batch("ROLLBACK");
            return Err(fault);
        }
    }
    Ok(session)
}

/// The life of the thread: it ends when nobody can send jobs any more.
fn write(mut session: Box<dyn Session>, schema: &Schema, mut jobs: mpsc::Receiver<Job>) {
    while let Some(first) = jobs.blocking_recv() {
        let mut answers = Vec::new();
        if let Err(fault) = session.begin_write() {
            // Whoever else waits by now has waited long enough: each would be told the same, one after the other.
            answers.push(first(None));
            while let Ok(next) = jobs.try_recv() {
                answers.push(next(None));
            }
            finish(answers, &Err(fault));
            continue;
        }
        answers.push(first(Some(&mut *session)));
        while answers.len() < TOGETHER
            && let Ok(next) = jobs.try_recv()
        {
            answers.push(next(Some(&mut *session)));
        }
        let committed = match settle(&mut *session, schema) {
            Ok(()) => session.commit(),
            Err(fault) => {
                let _ = session.batch("ROLLBACK");
                Err(fault)
            }
        };
        finish(answers, &committed);
    }
    session.checkpoint();
}

/// Does what is left to do, in the same transaction.
fn settle(sql: &mut dyn Sql, schema: &Schema) -> Result<()> {
    let mut tenants = Vec::new();
    sql.each(schema.unsettled, &[], &mut |row| {
        tenants.push(row.int(0)?);
        Ok(())
    })?;
    let now = tidegate_service::epoch_ms() as i64;
    tenants.into_iter().try_for_each(|tenant| (schema.settle)(&mut Change::rest(sql, tenant, now)))
}

fn finish(answers: Vec<Completion>, committed: &Result<()>) {
    for answer in answers {
        answer(committed.clone());
    }
}

/// Everything that `work` does, or nothing of it. If it panics, that is a fault like others: the thread lives on.
pub(super) fn atomically<T>(
    session: &mut dyn Session,
    work: impl FnOnce(&mut dyn Sql) -> Result<T>,
) -> Result<T> {
    session.batch("SAVEPOINT work")?;
    // What is left half done is in the database only, and is undone there.
    let worked =
        catch_unwind(AssertUnwindSafe(|| work(&mut *session))).unwrap_or_else(|_| Err(Fault::panicked()));
    let worked = worked.and_then(|done| session.batch("RELEASE work").map(|()| done));
    if worked.is_err() {
        session.batch("ROLLBACK TO work; RELEASE work")?;
    }
    worked
}
