//! What can be wrong with a target.

use std::fmt;
use std::path::PathBuf;

use crate::servers_file::ServersFileError;

/// Why a text names no server. No variant repeats the text, which may hold secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// There is no text.
    Empty,
    /// A quote is not closed, or the text ends in a backslash.
    Quotes,
    /// There are only variables, and no program.
    NoProgram,
    /// An address that is none, and why.
    Url(String),
    /// An address that is not `http` or `https`.
    Scheme(String),
    /// The text is the path of a `.json` file, and there is no such file.
    NoFile(PathBuf),
    /// A word that is neither a program nor an entry, but nearly an entry.
    NearMiss {
        /// The word.
        word: String,
        /// The entry that may be meant.
        meant: String,
        /// The file that has it.
        file: PathBuf,
    },
    /// The `mcpServers` file, or the entry in it, is no good.
    File(ServersFileError),
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TargetError::Empty => f.write_str(
                "no server given: pass a URL, a command line, or the name of a configured server",
            ),
            TargetError::Quotes => f.write_str(
                "the command line ends inside quotes or after a backslash: close the quote, or double the backslash",
            ),
            TargetError::NoProgram => {
                f.write_str("the command line sets variables but has no program: add the program after them")
            }
            TargetError::Url(reason) => {
                write!(f, "the URL is not valid ({reason}): write it like https://example.com/mcp")
            }
            TargetError::Scheme(scheme) => {
                write!(f, "MCP servers use http or https, not {scheme:?}: check the start of the URL")
            }
            TargetError::NoFile(path) => {
                write!(f, "the file {} does not exist: check its path", path.display())
            }
            TargetError::NearMiss { word, meant, file } => write!(
                f,
                "no server or program is named {word:?}; did you mean {meant:?} ({})?",
                file.display()
            ),
            TargetError::File(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TargetError {}

impl From<ServersFileError> for TargetError {
    fn from(error: ServersFileError) -> TargetError {
        TargetError::File(error)
    }
}
