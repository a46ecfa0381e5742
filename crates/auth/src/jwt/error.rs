//! [`SetupError`]: why tokens of an issuer cannot be verified at all.

use std::fmt;
use std::path::PathBuf;

/// What is wrong with the settings of an issuer, or with the file that they name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SetupError {
    /// An address that nobody may be asked at.
    Address {
        /// What it is the address of.
        what: &'static str,
        /// The address.
        address: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// An algorithm that is unknown, or not for public keys.
    Algorithm(String),
    /// A file of keys that cannot be used.
    KeyFile {
        /// Where it is.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl fmt::Display for SetupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SetupError::Address { what, address, why } => {
                write!(f, "the {what} {address:?} cannot be used: {why}")
            }
            SetupError::Algorithm(name) => write!(
                f,
                "the algorithm {name:?} cannot be used: it must be one of {}",
                super::ALGORITHMS.map(|(name, _)| name).join(", ")
            ),
            SetupError::KeyFile { path, why } => {
                write!(f, "cannot use the keys in {}: {why}", path.display())
            }
        }
    }
}

impl std::error::Error for SetupError {}
