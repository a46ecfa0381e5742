//! What can be wrong with an `mcpServers` file.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why a file, or a server in it, cannot be used. No variant holds a value from the file or the environment.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServersFileError {
    /// The file cannot be read.
    Read {
        /// Which file.
        file: PathBuf,
        /// What the system says.
        reason: String,
    },
    /// The file is not JSON.
    Json {
        /// Which file.
        file: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// The file is JSON, but has no servers where any known program would look.
    NoServers {
        /// Which file.
        file: PathBuf,
        /// What is there instead, if that is known.
        hint: Option<String>,
    },
    /// No server has this name.
    Unknown {
        /// Which file.
        file: PathBuf,
        /// The name.
        name: String,
        /// The name that may be meant.
        near: Option<String>,
        /// All names.
        names: Vec<String>,
    },
    /// There are several servers, or none, and no name was given.
    WhichOne {
        /// Which file.
        file: PathBuf,
        /// All names.
        names: Vec<String>,
    },
    /// A server needs an environment variable that is not set.
    Unset {
        /// Which file.
        file: PathBuf,
        /// The server.
        server: String,
        /// The variable.
        variable: String,
    },
    /// A server needs something that VS Code would ask its user for.
    Input {
        /// Which file.
        file: PathBuf,
        /// The server.
        server: String,
        /// The `id` of the input.
        input: String,
        /// What the file says about it.
        description: Option<String>,
        /// The variable that would provide it.
        variable: String,
    },
    /// A server is described in a way that cannot be used.
    Entry {
        /// Which file.
        file: PathBuf,
        /// The server.
        server: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

impl fmt::Display for ServersFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, reason } => {
                write!(f, "cannot read {}: {reason}", file.display())
            }
            Self::Json { file, reason } => {
                write!(f, "{} is not valid JSON ({reason}): correct it there", file.display())
            }
            Self::NoServers { file, hint } => {
                write!(f, "{} names no servers", file.display())?;
                match hint {
                    Some(hint) => write!(f, ": {hint}"),
                    None => f.write_str(r#": write {"mcpServers": {"a name": {"command": "…"}}}"#),
                }
            }
            Self::Unknown { file, name, near, names } => {
                write!(f, "no server {name:?} in {}", file.display())?;
                match near {
                    Some(near) => write!(f, "; did you mean {near:?}? ")?,
                    None => f.write_str(". ")?,
                }
                has(f, names)
            }
            Self::WhichOne { file, names } if names.is_empty() => {
                write!(f, "{} has no servers: add one", file.display())
            }
            Self::WhichOne { file, names } => {
                let example = format!("{}#{}", file.display(), printable(&names[0]));
                write!(f, "{} has several servers: say which, as in {example}. ", file.display())?;
                has(f, names)
            }
            Self::Unset { file, server, variable } => {
                server_in(f, server, file)?;
                write!(f, " needs the environment variable {variable}, which is not set: set it")
            }
            Self::Input { file, server, input, description, variable } => {
                server_in(f, server, file)?;
                write!(f, " asks for the input {input:?}")?;
                if let Some(description) = description {
                    write!(f, " ({})", printable(description))?;
                }
                write!(
                    f,
                    ", which only VS Code can prompt for: set the environment variable {variable} instead"
                )
            }
            Self::Entry { file, server, reason } => {
                server_in(f, server, file)?;
                write!(f, " cannot be used: {reason}")
            }
        }
    }
}

impl std::error::Error for ServersFileError {}

fn server_in(f: &mut fmt::Formatter<'_>, server: &str, file: &Path) -> fmt::Result {
    write!(f, "server {server:?} in {}", file.display())
}

fn has(f: &mut fmt::Formatter<'_>, names: &[String]) -> fmt::Result {
    if names.is_empty() {
        return f.write_str("It has none");
    }
    write!(f, "It has: {}", printable(&names.join(", ")))
}

/// Without control characters: the file may come with somebody else's project, and this goes to a terminal.
fn printable(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).collect()
}

/// What is wrong with one entry, before it is known which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Fault {
    /// The variable of this name is not set.
    Unset(String),
    /// Nobody provides this input.
    Input {
        /// Its `id`.
        id: String,
        /// The variable that would provide it.
        variable: String,
        /// What the file says about it.
        description: Option<String>,
    },
    /// Anything else, as a sentence.
    Other(String),
}

impl Fault {
    /// The same as an error that says where.
    pub(super) fn at(self, file: &Path, server: &str) -> ServersFileError {
        let (file, server) = (file.to_owned(), server.to_owned());
        match self {
            Fault::Unset(variable) => ServersFileError::Unset { file, server, variable },
            Fault::Input { id, variable, description } => {
                ServersFileError::Input { file, server, input: id, description, variable }
            }
            Fault::Other(reason) => ServersFileError::Entry { file, server, reason },
        }
    }
}
