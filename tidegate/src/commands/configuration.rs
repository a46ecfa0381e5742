//! Which configuration a command is about, and what goes wrong with one.

use std::path::{Path, PathBuf};

use tidegate_config::edit::EditError;
use tidegate_config::import::ImportError;
use tidegate_config::{Config, ConfigError};

use super::failure::Failure;

/// The configuration to read: the one that was asked for, or the one that is found.
pub(crate) fn existing(explicit: Option<&Path>) -> Result<PathBuf, Failure> {
    Config::find(explicit).ok_or_else(|| {
        let place = Config::of_user().map_or(String::new(), |path| format!(", and no {}", path.display()));
        Failure::usage(format!("there is no tidegate.toml here{place}"))
            .next("Make one with tidegate add NAME URL or tidegate import claude, or name a file.")
    })
}

/// The configuration to change: the one that was asked for, the one that is found, or a new one of the user.
pub(crate) fn changeable(explicit: Option<&Path>) -> Result<PathBuf, Failure> {
    Config::find(explicit).or_else(Config::of_user).ok_or_else(|| {
        Failure::usage("the home directory of this user is not known: set HOME, or name a file with --config")
    })
}

/// Variables of this process.
pub(crate) fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

impl From<ConfigError> for Failure {
    fn from(error: ConfigError) -> Failure {
        match error.problems() {
            [_] => Failure::usage(&error),
            problems => {
                let all: Vec<String> = error.to_string().lines().map(str::to_owned).collect();
                let count = problems.len();
                Failure::usage(format!("{} cannot be used: {count} things are wrong", error.file().display()))
                    .next(all.join("\n"))
            }
        }
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Failure {
        match error {
            EditError::Config(error) => error.into(),
            EditError::Exists { .. } => {
                Failure::usage(&error).next("Put it in place of that one with --replace.")
            }
            EditError::Unknown { .. } => {
                Failure::usage(&error).next("To see what there is, run tidegate check.")
            }
            _ => Failure::usage(&error),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        match error {
            ImportError::Edit(error) => error.into(),
            ImportError::Nowhere(_) => Failure::usage(&error).next("Name a file instead."),
            _ => Failure::usage(&error),
        }
    }
}
