//! What `[log]` of the configuration says about log lines, as far as neither the command line nor the environment says otherwise.

use std::sync::{PoisonError, RwLock};

use tidegate::logging::{self, FileSettings, Format};
use tidegate_config::{LogFormat, LogSettings};

use crate::commands::failure::Failure;

/// What the command line or the environment says, which the configuration does not change.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Said {
    /// Whether it says how lines look.
    pub(crate) format: bool,
    /// Whether it says which lines there are.
    pub(crate) level: bool,
}

/// Which lines there are according to the configuration, the command line or the environment.
static CONFIGURED: RwLock<Option<String>> = RwLock::new(None);

/// Which lines there would be if nobody had asked for others meanwhile.
pub(super) fn configured_level() -> String {
    let configured = CONFIGURED.read().unwrap_or_else(PoisonError::into_inner);
    configured.clone().unwrap_or_else(logging::filter)
}

fn remember_level() {
    *CONFIGURED.write().unwrap_or_else(PoisonError::into_inner) = Some(logging::filter());
}

/// How log lines follow the configuration.
pub(super) struct Logs {
    said: Said,
    /// The filter where the configuration has none.
    usual: String,
}

impl Logs {
    /// Puts a configuration in force. What was logged before is on standard error.
    pub(super) fn start(settings: &LogSettings, said: Said) -> Result<Logs, Failure> {
        logging::keep_recent(logging::RECENT_BYTES);
        let logs = Logs { said, usual: logging::filter() };
        if let Some(format) = settings.format.filter(|_| !said.format) {
            logging::set_format(match format {
                LogFormat::Pretty => Format::Pretty,
                LogFormat::Json => Format::Json,
            });
        }
        if let Some(level) = settings.level.as_deref().filter(|_| !said.level) {
            set_level(level);
        }
        remember_level();
        if let Some(file) = &settings.file {
            let path = file.path.clone();
            let shown = path.display().to_string();
            tracing::info!("Log lines go to {shown}");
            let file = FileSettings { path, max_size: file.max_size, keep: file.keep };
            logging::write_to(file).map_err(|error| {
                Failure::usage(format!("log lines cannot be written to {shown}: {error}"))
                    .advise("See file in [log]: it must be in a directory that the gateway may write to.")
            })?;
        }
        Ok(logs)
    }

    /// Has the level follow a configuration that has changed. If it says the same as before, a level that somebody has set meanwhile
    /// stays. What needs a restart stays as it is.
    pub(super) fn follow(&self, settings: &mut LogSettings, before: &LogSettings) {
        if (settings.format, &settings.file) != (before.format, &before.file) {
            tracing::warn!(
                "How log lines look, or where they go, has changed ([log] format, file): restart to apply that"
            );
            (settings.format, settings.file) = (before.format, before.file.clone());
        }
        if settings.level == before.level {
            return;
        }
        match self.said.level {
            true => tracing::warn!(
                "The log level has changed ([log] level), which has no effect: the command line or LOG_LEVEL says another"
            ),
            false => {
                set_level(settings.level.as_deref().unwrap_or(&self.usual));
                remember_level();
            }
        }
    }
}

fn set_level(level: &str) {
    if let Err(error) = logging::set_filter(level) {
        tracing::warn!("{level:?} is not a log level, so it stays as it was: {error}");
    }
}
