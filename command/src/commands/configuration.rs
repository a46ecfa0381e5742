//! Which configuration a command is about, and what goes wrong with one.

use std::path::{Path, PathBuf};

use tidegate_config::edit::{self, EditError};
use tidegate_config::import::{ImportError, Program};
use tidegate_config::{Config, ConfigError, ServerEntry, Settings};

use super::failure::Failure;
use super::output;
use crate::builtins::registry;

/// The configuration to read: the one that was asked for, or the one that is found.
pub(crate) fn existing(explicit: Option<&Path>) -> Result<PathBuf, Failure> {
    Config::find(explicit).ok_or_else(|| {
        let place = Config::of_user().map_or(String::new(), |path| format!(" or at {}", path.display()));
        Failure::usage(format!("no tidegate.toml here{place}"))
            .advise("Create one with tidegate add or tidegate import, or name a file with --config.")
    })
}

/// What a configuration means, with the servers of this program and the variables of this process.
pub(crate) fn load(path: &Path) -> Result<Settings, ConfigError> {
    Config::load(path, &registry().builtins, &environment)
}

/// The same for whoever listens nowhere, or anywhere on purpose.
pub(crate) fn load_unserved(path: &Path) -> Result<Settings, ConfigError> {
    Config::load_unserved(path, &registry().builtins, &environment)
}

/// The configuration to change: the one that was asked for, the one that is found, or a new one of the user.
pub(crate) fn changeable(explicit: Option<&Path>) -> Result<PathBuf, Failure> {
    Config::find(explicit).or_else(Config::of_user).ok_or_else(|| {
        Failure::usage("the home directory is unknown; set HOME, or name a file with --config")
    })
}

/// Adds the memory to a configuration that was just created, because without a configuration it was served. `added` is
/// what else is in it.
pub(crate) fn keep_memory(path: &Path, added: &[(&str, &ServerEntry)]) -> Result<(), Failure> {
    if added.iter().any(|(_, entry)| entry.builtin.is_some()) {
        return Ok(());
    }
    if added.iter().any(|(name, _)| *name == MEMORY) {
        output::note(
            "note: Only the servers in the configuration are served, and its \"memory\" is another server. Add \
             Tidegate's own with tidegate add NAME --builtin memory.",
        );
        return Ok(());
    }
    let memory = ServerEntry {
        builtin: Some(MEMORY.to_owned()),
        prefix: Some(String::new()),
        ..ServerEntry::default()
    };
    edit::add(path, MEMORY, &memory, false)?;
    output::note(
        "note: Tidegate's memory was added too, so that it is still served. To do without it: tidegate remove memory",
    );
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
                Failure::usage(format!("{} has {count} errors", error.file().display()))
                    .advise(all.join("\n"))
            }
        }
    }
}

impl From<EditError> for Failure {
    fn from(error: EditError) -> Failure {
        match error {
            EditError::Config(error) => error.into(),
            EditError::Exists { .. } => Failure::usage(&error).advise("Replace it with --replace."),
            EditError::Unknown { .. } => Failure::usage(&error).advise("tidegate check lists the servers."),
            _ => Failure::usage(&error),
        }
    }
}

impl From<ImportError> for Failure {
    fn from(error: ImportError) -> Failure {
        match error {
            ImportError::Edit(error) => error.into(),
            ImportError::Nowhere(_) => Failure::usage(&error)
                .advise("Run tidegate import to list the programs that have servers, or name a file."),
            ImportError::Unknown { .. } => {
                let names: Vec<&str> = Program::ALL.iter().map(|program| program.name()).collect();
                Failure::usage(&error)
                    .advise(format!("Known programs: {}. Or name a file.", names.join(", ")))
            }
            _ => Failure::usage(&error),
        }
    }
}
