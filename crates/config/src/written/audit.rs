//! What is recorded of calls: `[audit]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Size;

/// A record of every call and every refused login, each chained to the one before.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Audit {
    /// A file to append records to, one JSON object for each line. Default none.
    pub(crate) file: Option<String>,
    /// The size at which the file is put aside and a new one begun: bytes, or a string such as "100MiB". Default "100MiB".
    pub(crate) max_size: Option<Size>,
    /// How many files that were put aside are kept. Default 10.
    pub(crate) keep: Option<usize>,
    /// Whether records are written to standard output. Default false.
    pub(crate) stdout: Option<bool>,
    /// A syslog server that records are sent to (RFC 5424): "udp://127.0.0.1:514", "tcp://logs.example.com:601" or
    /// "unix:///dev/log". Default none.
    pub(crate) syslog: Option<String>,
    /// The syslog facility: "auth", "authpriv", "daemon", "user", "audit", or "local0" to "local7". Default "authpriv".
    pub(crate) facility: Option<String>,
    /// How many bytes of records may wait for each place that they are written to: bytes, or a string such as "8MiB".
    /// Default "8MiB".
    pub(crate) queue: Option<Size>,
    /// What happens when no more can wait: "drop" goes on with calls, counts the records that are missing and says so in
    /// the next one; "refuse" refuses calls until records can be written again. Default "drop".
    pub(crate) when_full: Option<WhenFull>,
}

/// What happens when no more records can wait.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum WhenFull {
    Drop,
    Refuse,
}
