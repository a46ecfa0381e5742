//! [`DisabledServer`]: a server of the configuration that is not used, and why.

use std::fmt;
use std::path::Path;

use crate::missing_reference::{Missing, MissingReference};

/// A server of the configuration that is not used. Its `Display` is a note for people, without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct DisabledServer {
    /// Its name.
    pub name: String,
    /// What kind of reason it is.
    pub cause: DisabledCause,
    /// Why: `the environment variable GITHUB_TOKEN is not set (servers.github.headers.Authorization, line 7)`.
    pub reason: String,
    /// The environment variables that it needs and that are not set, each once.
    pub missing: Vec<String>,
    /// What to do about it, one sentence; empty if that is obvious.
    pub advice: String,
}

/// Why a server is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum DisabledCause {
    /// The configuration says so.
    Off,
    /// It refers to environment variables or files that do not exist.
    Missing,
    /// The file of another program describes it in a way that cannot be used.
    Unusable,
}

impl DisabledServer {
    /// A server that was switched off while the gateway runs, whatever the configuration says.
    pub fn switched_off(name: &str) -> DisabledServer {
        DisabledServer::off(name, "switched off until the gateway restarts")
    }

    pub(crate) fn off(name: &str, how: impl Into<String>) -> DisabledServer {
        DisabledServer::new(name, DisabledCause::Off, how)
    }

    pub(crate) fn unusable(name: &str, reason: impl Into<String>) -> DisabledServer {
        DisabledServer::new(name, DisabledCause::Unusable, reason)
    }

    fn new(name: &str, cause: DisabledCause, reason: impl Into<String>) -> DisabledServer {
        let reason = reason.into();
        DisabledServer { name: name.to_owned(), cause, reason, missing: Vec::new(), advice: String::new() }
    }

    /// A server that refers to what does not exist: each thing, and the place that refers to it.
    pub(crate) fn missing(
        name: &str,
        absent: &[(&MissingReference, String)],
        config: &Path,
    ) -> DisabledServer {
        let mut variables: Vec<(&str, &str)> = Vec::new();
        let mut parts = Vec::new();
        for (absent, place) in absent {
            match &absent.what {
                Missing::Variable(name) if variables.iter().any(|(known, _)| known == name) => {}
                Missing::Variable(name) => variables.push((name, place)),
                Missing::File(sentence) => parts.push(format!("{sentence} ({place})")),
            }
        }
        match variables.as_slice() {
            [] => {}
            [(name, place)] => {
                parts.insert(0, format!("the environment variable {name} is not set ({place})"))
            }
            [first @ .., (last, place)] => {
                let first: Vec<String> =
                    first.iter().map(|(name, place)| format!("{name} ({place})")).collect();
                let first = first.join(", ");
                parts
                    .insert(0, format!("the environment variables {first} and {last} ({place}) are not set"));
            }
        }
        let file = config.file_name().unwrap_or(config.as_os_str()).to_string_lossy();
        DisabledServer {
            missing: variables.iter().map(|(name, _)| (*name).to_owned()).collect(),
            advice: advice(variables.len(), &file),
            ..DisabledServer::new(name, DisabledCause::Missing, parts.join("; "))
        }
    }
}

/// What to do about variables that are not set, or about a file that cannot be read.
pub(crate) fn advice(variables: usize, config: &str) -> String {
    match variables {
        0 => "Check the path and the permissions of the file.".to_owned(),
        1 => format!("Set it, or put it in .env beside {config}."),
        _ => format!("Set them, or put them in .env beside {config}."),
    }
}

impl fmt::Display for DisabledServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DisabledServer { name, reason, advice, .. } = self;
        match self.cause {
            DisabledCause::Off => write!(f, "Server {name:?} is disabled ({reason})."),
            _ if advice.is_empty() => write!(f, "Server {name:?} is disabled: {reason}."),
            _ => write!(f, "Server {name:?} is disabled: {reason}. {advice}"),
        }
    }
}

/// How many variables a note names.
const NAMED: usize = 10;

/// A note about a server whose environment variables are not set, for commands that have just written it:
/// `"github" needs GITHUB_TOKEN, which is not set. Set it, or put it in .env beside tidegate.toml.`
pub fn missing_note(server: &str, variables: &[String], config: &Path) -> String {
    let file = config.file_name().unwrap_or(config.as_os_str()).to_string_lossy();
    let (names, are) = match variables {
        [first @ .., _] if first.len() >= NAMED => (
            format!("{} and {} more variables", variables[..NAMED].join(", "), variables.len() - NAMED),
            "are",
        ),
        [first @ .., last] if !first.is_empty() => (format!("{} and {last}", first.join(", ")), "are"),
        names => (names.concat(), "is"),
    };
    format!("{server:?} needs {names}, which {are} not set. {}", advice(variables.len(), &file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_names_a_few_variables() {
        let note = |count: usize| {
            let variables: Vec<String> = (0..count).map(|n| format!("V{n}")).collect();
            missing_note("web", &variables, Path::new("tidegate.toml"))
        };
        assert!(note(1).starts_with("\"web\" needs V0, which is not set. Set it,"), "{}", note(1));
        assert!(note(2).starts_with("\"web\" needs V0 and V1, which are not set. Set them,"), "{}", note(2));
        assert!(note(10).contains("V8 and V9, which are not set"), "{}", note(10));
        assert!(note(5_000).contains("V8, V9 and 4990 more variables, which are not set"), "{}", note(5_000));
    }
}
