//! What the server refuses, as faults.

use std::error::Error as _;

use ::postgres::Error;
use ::postgres::error::{DbError, Severity, SqlState};

use super::Fault;
use crate::error::Code;

/// Whether the connection is of no more use, or does not come about just now: another one may do.
pub(super) fn is_lost(error: &Error) -> bool {
    let Some(said) = error.as_db_error() else {
        return error.is_closed() || error.source().is_some_and(|cause| cause.is::<std::io::Error>());
    };
    // Whom the server does not let in is told so with as much weight, and trying again does not help.
    let class = class(said);
    class == "08" || is_fatal(said) && !["28", "3D", "42"].contains(&class)
}

/// The first two signs of the code, which tell what kind of trouble it is.
fn class(said: &DbError) -> &str {
    said.code().code().get(..2).unwrap_or_default()
}

/// Whether what was prepared before is of no more use, because tables or the connection behind a pool have changed.
pub(super) fn is_outdated(error: &Error) -> bool {
    let code = error.code();
    code == Some(&SqlState::FEATURE_NOT_SUPPORTED) || code == Some(&SqlState::INVALID_SQL_STATEMENT_NAME)
}

fn is_fatal(said: &DbError) -> bool {
    matches!(said.parsed_severity(), Some(Severity::Fatal | Severity::Panic))
}

/// The connection went away in a transaction, of which nothing is kept then.
pub(super) fn lost() -> Fault {
    Fault::new(Code::Database, "The connection to the database was lost; nothing was stored. Try again")
}

/// The connection went away at the moment of keeping.
pub(super) fn uncertain() -> Fault {
    let what = "The connection to the database was lost while it stored this, so it is not known whether it did: \
                look whether it is there before you repeat it";
    Fault::new(Code::Uncertain, what)
}

/// What went wrong, as a fault.
pub(super) fn of(error: &Error) -> Fault {
    let Some(said) = error.as_db_error() else {
        let cause = error.source().map(|cause| format!(": {cause}")).unwrap_or_default();
        tracing::warn!("the database failed: {error}{cause}");
        if error.is_closed() {
            return lost();
        }
        return Fault::new(Code::Database, format!("The database cannot be used: {error}{cause}"));
    };
    tracing::warn!(code = said.code().code(), "the database refused: {}", said.message());
    let code = said.code();
    if [SqlState::UNIQUE_VIOLATION, SqlState::EXCLUSION_VIOLATION].contains(code) {
        return Fault::twice();
    }
    if [SqlState::T_R_SERIALIZATION_FAILURE, SqlState::T_R_DEADLOCK_DETECTED].contains(code) {
        return Fault::new(Code::Conflict, "Another client changed the same at the same time; try again");
    }
    let what = match class(said) {
        "28" | "3D" => format!("The database refused the connection: {}", said.message()),
        _ if *code == SqlState::DISK_FULL => {
            "The disk of the database is full; nothing was stored".to_owned()
        }
        _ if *code == SqlState::READ_ONLY_SQL_TRANSACTION => "The database is read-only".to_owned(),
        _ if *code == SqlState::INSUFFICIENT_PRIVILEGE => {
            format!("The database user lacks a permission: {}", said.message())
        }
        _ if [SqlState::LOCK_NOT_AVAILABLE, SqlState::QUERY_CANCELED].contains(code) => {
            "Another process has locked the database for too long; try again".to_owned()
        }
        _ if *code == SqlState::TOO_MANY_CONNECTIONS => {
            "The database has too many connections; try again later".to_owned()
        }
        _ if *code == SqlState::CANNOT_CONNECT_NOW => {
            format!("The database is temporarily unavailable: {}", said.message())
        }
        _ if is_lost(error) => return lost(),
        _ => "The memory could not be read or written; see the log for details".to_owned(),
    };
    Fault::new(Code::Database, what)
}
