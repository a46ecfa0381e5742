//! Logs: lines for people or JSON for machines, on stderr or in a file. Stdout belongs to the protocol. People at a terminal get short lines
//! (`logging/terminal.rs`).
//!
//! Every line of a call carries its correlation id: `{"timestamp":"2026-07-28 12:00:00","level":"info","message":…,
//! "correlationId":…,"tool":…}`.
//!
//! Which lines there are can be changed while the program runs ([`set_filter`]), and the latest ones can be kept for whoever
//! asks ([`keep_recent`], [`recent`], [`follow`]).
//!
//! Much of what is logged was written by others: names, errors, what programs print. All of it goes through here, so here
//! it is made harmless: no field can end its line or drive a terminal, and no secret of the configuration is shown.

mod access;
mod clock;
mod filter;
mod json;
mod lines;
mod log_file;
mod outputs;
mod plain;
mod recent;
mod terminal;
mod writer;

#[cfg(test)]
mod tests;

use std::io;
use std::str::FromStr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

use access::AccessLines;
pub use filter::{Filter, FilterError};
use lines::Lines;
pub use lines::hush;
pub use log_file::FileSettings;
use outputs::Outputs;
pub use recent::{Followed, Following, LogLine, RECENT_BYTES};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Format {
    /// For people.
    #[default]
    Pretty,
    /// One JSON object a line.
    Json,
}

impl FromStr for Format {
    type Err = String;

    fn from_str(text: &str) -> Result<Format, String> {
        match text {
            "pretty" | "simple" => Ok(Format::Pretty),
            "json" => Ok(Format::Json),
            other => Err(format!("unknown log format {other:?}: use pretty or json")),
        }
    }
}

/// What [`init`] has begun.
struct Logging {
    outputs: Arc<Outputs>,
    filter: reload::Handle<EnvFilter, Registry>,
    /// The filter in force, as it was written. Whoever changes it holds this.
    written: Mutex<String>,
}

static LOGGING: OnceLock<Logging> = OnceLock::new();

/// Starts logging to stderr. `level` is a [`Filter`]: a level, or a list such as `info,tidegate_edge=debug`; without it the
/// environment variable `LOG_LEVEL` decides, and without that `info`. What is no filter counts as `info`, and a line says so.
/// Later calls do nothing.
pub fn init(format: Format, level: Option<&str>) {
    let from_environment = std::env::var("LOG_LEVEL").ok();
    let wanted = level.or(from_environment.as_deref()).unwrap_or("info");
    let (wanted, refused) = match wanted.parse::<Filter>() {
        Ok(_) => (wanted, None),
        Err(error) => ("info", Some((wanted, error))),
    };
    let (layer, filter) = reload::Layer::new(EnvFilter::new(wanted));
    let outputs = Arc::new(Outputs::stderr(format));
    let ours = tracing_subscriber::registry().with(layer).with(Lines(outputs.clone())).try_init();
    // Which events are of interest depends on the level.
    tidegate_service::events::refresh();
    // A second subscriber is the application's business, not ours.
    if ours.is_err() {
        return;
    }
    if outputs.start() {
        tidegate_service::events::write_access_log_with(AccessLines(outputs.clone()));
    }
    outputs.follow(wanted);
    let _ = LOGGING.set(Logging { outputs, filter, written: Mutex::new(wanted.to_owned()) });
    if let Some((said, error)) = refused {
        tracing::warn!("{said:?} is not a log level, so info is used: {error}");
    }
}

/// The filter in force, as it was written; empty if the log lines of this program are not written here.
pub fn filter() -> String {
    let written = LOGGING.get().map(|logging| logging.written.lock().unwrap_or_else(PoisonError::into_inner));
    written.map(|written| written.clone()).unwrap_or_default()
}

/// Has another filter decide which lines are logged from now on: the lines about calls (`tidegate::access`), too.
pub fn set_filter(text: &str) -> Result<(), FilterError> {
    let filter: Filter = text.parse()?;
    let logging = LOGGING.get().ok_or(FilterError::NotOurs)?;
    let mut written = logging.written.lock().unwrap_or_else(PoisonError::into_inner);
    logging.filter.reload(EnvFilter::new(filter.as_str())).map_err(|_| FilterError::NotOurs)?;
    logging.outputs.follow(filter.as_str());
    tidegate_service::events::refresh();
    filter.as_str().clone_into(&mut written);
    Ok(())
}

/// Keeps the latest lines from now on, as many as this number of bytes holds ([`RECENT_BYTES`] is enough for some thousand). Later calls do
/// nothing.
pub fn keep_recent(bytes: usize) {
    if let Some(logging) = LOGGING.get() {
        logging.outputs.keep_recent(bytes);
    }
}

/// The lines after the one with this number, the oldest first, but no more than so many; without a number, or with one that no line of
/// this process has, the latest lines. Empty unless lines [are kept](keep_recent).
pub fn recent(after: Option<u64>, most: usize) -> Vec<LogLine> {
    let recent = LOGGING.get().and_then(|logging| logging.outputs.recent());
    recent.map(|recent| recent.after(after, most)).unwrap_or_default()
}

/// Follows what is logged after the line with this number; without a number, or with one that no line of this process has, from now on.
/// Unless lines [are kept](keep_recent), there is nothing to follow.
pub fn follow(after: Option<u64>) -> Following {
    let recent = LOGGING.get().and_then(|logging| logging.outputs.recent());
    recent.map_or_else(Following::nothing, |recent| recent.follow(after))
}

/// Has lines look otherwise from now on.
pub fn set_format(format: Format) {
    if let Some(logging) = LOGGING.get() {
        logging.outputs.set_format(format);
    }
}

/// Has lines go to a file from now on, and to stderr only if that is a terminal. A thread writes them, and nobody waits for it; what goes
/// wrong with the file is said on stderr. There can be one file.
pub fn write_to(file: FileSettings) -> io::Result<()> {
    match LOGGING.get() {
        Some(logging) => logging.outputs.write_to(file),
        None => Err(io::Error::other(FilterError::NotOurs)),
    }
}

/// Has what was logged written, as far as that can be done within a second. For the end of a program: lines about calls are up to 20 ms late.
pub fn flush() {
    if let Some(logging) = LOGGING.get() {
        logging.outputs.flush(Duration::from_secs(1));
    }
}

/// Whether lines are JSON.
pub fn is_json() -> bool {
    LOGGING.get().is_some_and(|logging| logging.outputs.is_json())
}
