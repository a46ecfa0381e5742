//! [`KeyFileError`]: what can be wrong with the file of API keys.

use std::path::PathBuf;
use std::{fmt, io};

/// Why the file of API keys cannot be read or changed. `Display` says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum KeyFileError {
    /// The operating system says no.
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried, as in "cannot be …".
        what: &'static str,
        /// What it said.
        error: io::Error,
    },
    /// There is something in it that is no key.
    Invalid {
        /// The file.
        path: PathBuf,
        /// A sentence for each mistake.
        mistakes: Vec<String>,
    },
    /// Others could give themselves a key.
    Writable {
        /// The file.
        path: PathBuf,
        /// Its mode.
        mode: u32,
    },
    /// Others could put a file of their own in its place.
    Replaceable {
        /// The file.
        path: PathBuf,
        /// The directory.
        folder: PathBuf,
        /// The mode of the directory.
        mode: u32,
    },
    /// Another process changes it and does not come to an end.
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// There is no key with this name or id.
    NoSuchKey(String),
    /// The name is somebody's.
    NameTaken(String),
    /// The keys of this name were revoked.
    Revoked(String),
    /// Something of a new key is not possible.
    Rejected(String),
}

impl KeyFileError {
    /// Whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, KeyFileError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl fmt::Display for KeyFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            KeyFileError::Io { path, .. } if self.is_missing() => {
                write!(
                    f,
                    "There is no file of API keys at {}: make one with tidegate keys add",
                    path.display()
                )
            }
            KeyFileError::Io { path, what, error } => {
                write!(f, "The file of API keys {} cannot be {what}: {error}", path.display())
            }
            KeyFileError::Invalid { path, mistakes } => {
                write!(f, "The file of API keys {} is not valid: ", path.display())?;
                f.write_str(&mistakes.join("; "))
            }
            KeyFileError::Writable { path, mode } => write!(
                f,
                "The file of API keys {0} can be changed by other users of this machine (mode {mode:o}), who could give \
                 themselves a key: run chmod 600 {0}",
                path.display()
            ),
            KeyFileError::Replaceable { path, folder, mode } => write!(
                f,
                "The file of API keys {} can be replaced by other users of this machine, who could give themselves a key, \
                 because they can write to its directory (mode {mode:o}): run chmod go-w {}",
                path.display(),
                folder.display()
            ),
            KeyFileError::Locked { path } => {
                write!(
                    f,
                    "The file of API keys {} is being changed by another process: try again",
                    path.display()
                )
            }
            KeyFileError::NoSuchKey(name) => {
                write!(f, "There is no API key with the name or id {name:?}: see tidegate keys list")
            }
            KeyFileError::NameTaken(name) => write!(
                f,
                "There is an API key with the name {name:?} already: choose another name, or give its holder a new key with \
                 tidegate keys rotate"
            ),
            KeyFileError::Revoked(name) => write!(
                f,
                "The API keys of {name:?} are revoked, and a revoked name is not used again: make a key under another name \
                 with tidegate keys add"
            ),
            KeyFileError::Rejected(why) => f.write_str(why),
        }
    }
}

impl std::error::Error for KeyFileError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            KeyFileError::Io { error, .. } => Some(error),
            _ => None,
        }
    }
}
