//! Which log lines there are, how they look and where they go: `[log]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Size;

/// Log lines. The command line and the environment variables LOG_LEVEL and LOG_FORMAT count more.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Log {
    /// How lines look: "pretty" for people, "json" for one JSON object a line. Default "pretty".
    pub(crate) format: Option<LogFormat>,
    /// Which lines are logged: "error", "warn", "info", "debug", "trace" or "off", or a list with levels for parts of the
    /// program, such as "info,tidegate_edge=debug". Changes apply while running. Default "info".
    pub(crate) level: Option<String>,
    /// A file to append lines to; standard error then has them only if it is a terminal. Default none.
    pub(crate) file: Option<String>,
    /// The size at which the file is put aside and a new one begun: bytes, or a string such as "100MiB". Default "100MiB".
    pub(crate) max_size: Option<Size>,
    /// How many files that were put aside are kept. Default 10.
    pub(crate) keep: Option<usize>,
}

/// How log lines look.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum LogFormat {
    Pretty,
    Json,
}
