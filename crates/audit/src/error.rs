//! Why an audit trail cannot be written.

use std::io;
use std::path::PathBuf;

/// Why an audit trail cannot be begun.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AuditError {
    /// The file cannot be opened or read.
    #[error("The audit trail {} cannot be opened: {error}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// It is something else.
    #[error("The audit trail {} is not a file: name a file in [audit]", .0.display())]
    NoFile(PathBuf),
    /// Another process writes it.
    #[error("The audit trail {} is written by another process: stop it, or name another file in [audit]", .0.display())]
    InUse(PathBuf),
    /// It does not end with a record.
    #[error(
        "The audit trail {} cannot be continued: {error}. Keep it as evidence: look at it with tidegate audit verify, then \
         move it and its .head away, so that a new one is begun",
        path.display()
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The head is none.
    #[error("The head of the audit trail {} cannot be read: {error}. Move it away to go on without it", path.display())]
    Head {
        /// The file of the head.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// Standard output cannot be used.
    #[error("The audit trail cannot be written to standard output: {0}")]
    Stdout(io::Error),
    /// A thread could not be started.
    #[error("The audit trail cannot be written: {0}")]
    Thread(io::Error),
}
