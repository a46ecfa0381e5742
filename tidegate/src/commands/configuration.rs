//! Which configuration a command is about, and what goes wrong with one.

use std::path::{Path, PathBuf};

use tidegate_config::edit::{self, EditError};
use tidegate_config::import::ImportError;
use tidegate_config::{Config, ConfigError, ServerEntry};

use super::failure::Failure;
use super::output;

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

/// Names the memory in a configuration that was just made, because without a configuration it was served. `added` is
/// what else is in it.
pub(crate) fn keep_memory(path: &Path, added: &[(&str, &ServerEntry)]) -> Result<(), Failure> {
    if added.iter().any(|(_, entry)| entry.builtin.is_some()) {
        return Ok(());
    }
    if added.iter().any(|(name, _)| *name == MEMORY) {
        output::note(
            "note: only what the configuration names is served, and its \"memory\" is another server: \
             tidegate add NAME --builtin memory adds Tidegate's own",
        );
        return Ok(());
    }
    let memory = ServerEntry {
        builtin: Some(MEMORY.to_owned()),
        prefix: Some(String::new()),
        ..ServerEntry::default()
    };
    edit::add(path, MEMORY, &memory, false)?;
    output::note("note: the memory, which is served without a configuration, is in the new one, too");
    Ok(())
}

/// The name of the memory among the servers of the program, and in a new configuration.
const MEMORY: &str = "memory";

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
