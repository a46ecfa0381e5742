//! The audit trail of a gateway: who called what, on which server, under which rule, with what outcome.
//!
//! [`Audit`] writes it. Its [`AuditRecorder`] is called where things happen and puts a few hundred bytes into a bounded queue; a thread
//! gives each record its number and a hash over itself and the record before (`chain.rs`), and each place that
//! records go to (a file, standard output, a syslog server) has a bounded backlog and a thread of its own, so that none waits for
//! another and no call waits for any.
//!
//! [`verify`] says whether a trail is as it was written and, if not, which records are not; [`search`] finds records in it.
//! docs/audit.md has the form of records, and what is promised.

mod audit;
mod backlog;
mod batch;
mod chain;
mod clock;
mod error;
mod file;
mod kind;
mod lines;
mod queue;
mod record;
mod recorder;
pub mod search;
mod stdout;
mod syslog;
#[cfg(test)]
mod tests;
mod text;
pub mod verify;
mod writer;

pub use audit::Audit;
pub use error::AuditError;
pub use record::arguments_digest;
pub use recorder::AuditRecorder;

/// The files of a trail that are there, oldest first; the last one is the one that is written.
pub fn files(trail: &std::path::Path) -> std::io::Result<Vec<std::path::PathBuf>> {
    file::names::trail(trail)
}
