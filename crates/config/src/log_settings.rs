//! Log lines: [`LogSettings`], what `[log]` means.

use std::path::PathBuf;

/// Which log lines there are, how they look and where they go. What the command line or the environment says counts more.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LogSettings {
    /// How lines look; `None` if that is not said.
    pub format: Option<LogFormat>,
    /// Which lines are logged, such as `info,tidegate_edge=debug`; `None` if that is not said.
    pub level: Option<String>,
    /// A file that lines go to; `None` for standard error.
    pub file: Option<LogFile>,
}

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Pretty,
    /// One JSON object a line.
    Json,
}

/// A file that log lines go to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFile {
    /// Its path.
    pub path: PathBuf,
    /// The size at which it is put aside. Default 100 MiB.
    pub max_size: u64,
    /// How many that were put aside are kept. Default 10.
    pub keep: usize,
}
