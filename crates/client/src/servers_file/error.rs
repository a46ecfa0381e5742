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
    /// The file is not TOML.
    Toml {
        /// Which file.
        file: PathBuf,
        /// Where and what.
        reason: String,
    },
    /// The file is JSON or TOML, but has no servers where any known program would look.
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
    /// A server needs environment variables that are not set.
    Unset {
        /// Which file.
        file: PathBuf,
        /// The server.
        server: String,
        /// The variables, at least one.
        missing: Vec<MissingVariable>,
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

/// An environment variable that a server needs and that is not set.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MissingVariable {
    /// The variable.
    pub variable: String,
    /// The member that refers to it, such as `headers.Authorization`.
    pub field: String,
    /// The `id` of an input that VS Code would ask its user for, if the variable stands in for one.
    pub input: Option<String>,
    /// What the file says about that input.
    pub description: Option<String>,
}

impl MissingVariable {
    pub(super) fn new(variable: &str, field: &str) -> MissingVariable {
        MissingVariable {
            variable: variable.to_owned(),
            field: field.to_owned(),
            input: None,
            description: None,
        }
    }

    /// Where it is needed: `env.TOKEN`, or `env.KEY, for the input "api-key": Your key`.
    pub fn place(&self) -> String {
        let mut place = printable(&self.field);
        if let Some(input) = &self.input {
            place.push_str(&format!(", for the input {input:?}"));
        }
        if let Some(description) = &self.description {
            place.push_str(&format!(": {}", printable(description)));
        }
        place
    }
}

impl fmt::Display for MissingVariable {
    /// `GITHUB_TOKEN (env.TOKEN)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.variable, self.place())
    }
}

impl fmt::Display for ServersFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Read { file, reason } => {
                write!(f, "cannot read {}: {reason}", file.display())
            }
            Self::Json { file, reason } => {
                write!(f, "{} is not valid JSON ({reason})", file.display())
            }
            Self::Toml { file, reason } => {
                write!(f, "{} is not valid TOML ({reason})", file.display())
            }
            Self::NoServers { file, hint } => {
                write!(f, "{} has no MCP servers", file.display())?;
                match hint {
                    Some(hint) => write!(f, ": {hint}"),
                    None => f.write_str(r#"; they look like {"mcpServers": {"NAME": {"command": "…"}}}"#),
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
                write!(f, "{} has no servers", file.display())
            }
            Self::WhichOne { file, names } => {
                let example = format!("{}#{}", file.display(), printable(&names[0]));
                write!(f, "{} has several servers; choose one, as in {example}. ", file.display())?;
                has(f, names)
            }
            Self::Unset { file, server, missing } => {
                server_in(f, server, file)?;
                let all: Vec<String> = missing.iter().map(ToString::to_string).collect();
                match all.as_slice() {
                    [one] => write!(f, " needs the environment variable {one}, which is not set: set it"),
                    all => write!(f, " needs environment variables that are not set: {}", all.join(", ")),
                }
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
