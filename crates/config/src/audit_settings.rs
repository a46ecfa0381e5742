//! What is recorded of calls: [`AuditSettings`], what `[audit]` means.

use std::fmt;
use std::path::PathBuf;

/// Where the audit trail goes. There is at least one place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditSettings {
    /// A file, if there is one.
    pub file: Option<AuditFile>,
    /// Whether records go to standard output.
    pub stdout: bool,
    /// A syslog server, if there is one.
    pub syslog: Option<SyslogSettings>,
    /// How many bytes may wait for each of these places. Default 8 MiB.
    pub queue: usize,
    /// What happens when no more can wait.
    pub when_full: WhenFull,
}

/// The file of an audit trail.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditFile {
    /// Its path.
    pub path: PathBuf,
    /// The size at which it is put aside. Default 100 MiB.
    pub max_size: u64,
    /// How many that were put aside are kept. Default 10.
    pub keep: usize,
}

/// A syslog server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyslogSettings {
    /// Where it is.
    pub server: SyslogServer,
    /// The facility, by its number in RFC 5424. Default 10, `authpriv`.
    pub facility: u8,
}

/// Where a syslog server is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SyslogServer {
    /// Host and port, a datagram for each record (RFC 5426).
    Udp(String),
    /// Host and port, records with their length before them (RFC 6587).
    Tcp(String),
    /// A socket of this machine, a datagram for each record.
    Unix(PathBuf),
}

/// What happens when no more records can wait to be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WhenFull {
    /// Calls go on; a record says how many are missing.
    #[default]
    Drop,
    /// Calls are refused.
    Refuse,
}

impl WhenFull {
    /// The word for it.
    pub const fn as_str(self) -> &'static str {
        match self {
            WhenFull::Drop => "drop",
            WhenFull::Refuse => "refuse",
        }
    }
}

impl fmt::Display for SyslogServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyslogServer::Udp(address) => write!(f, "udp://{address}"),
            SyslogServer::Tcp(address) => write!(f, "tcp://{address}"),
            SyslogServer::Unix(path) => write!(f, "unix://{}", path.display()),
        }
    }
}
