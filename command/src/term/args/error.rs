//! What can be wrong with arguments on the command line.

use std::fmt;

use serde_json::Value;
use tidegate_service::nearest_name;

use crate::term::clean;
use crate::term::schema;

/// Why words of the command line are not the arguments of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ArgsError {
    /// A word without a key.
    NoEquals { word: String },
    /// A key that the tool does not have.
    Unknown { key: String, near: Option<String>, names: Vec<String> },
    /// A dotted key that leads into something that has no members.
    NotAnObject { key: String, kind: String },
    /// Several values for something that takes one.
    Twice { key: String },
    /// A text that does not fit.
    Type { key: String, kind: String, text: String, is_object: bool },
    /// Not JSON after `:=`.
    Json { key: String, reason: String },
    /// A file that cannot be read.
    File { key: String, path: String, reason: String },
    /// Nothing for what must be given: names and types.
    Missing { missing: Vec<(String, String)> },
}

impl ArgsError {
    /// There is no `name` in the object that `at` describes; `key` is the whole dotted key.
    pub(super) fn unknown(key: &str, name: &str, at: &Value, root: &Value) -> ArgsError {
        let prefix = key.strip_suffix(name).filter(|prefix| prefix.ends_with('.')).unwrap_or_default();
        let names = schema::property_names(at, root);
        let near = nearest_name(name, names.iter().copied());
        let full = |name: &str| format!("{prefix}{}", clean::line(name));
        ArgsError::Unknown {
            key: key.to_owned(),
            near: near.map(full),
            names: names.iter().map(|name| full(name)).collect(),
        }
    }
}

impl fmt::Display for ArgsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoEquals { word } => {
                write!(f, "{word:?} is not an argument: write name=value, or name:=json")
            }
            Self::Unknown { key, near, names } => {
                write!(f, "unknown argument {key:?}")?;
                match near {
                    Some(near) => write!(f, "; did you mean {near:?}? ")?,
                    None => f.write_str(". ")?,
                }
                match names.as_slice() {
                    [] => f.write_str("The tool has no arguments"),
                    names => write!(f, "Known arguments: {}", names.join(", ")),
                }
            }
            Self::NotAnObject { key, kind } => {
                write!(f, "{key:?} is of type {kind} and has no properties: write {key}=value")
            }
            Self::Twice { key } => {
                write!(f, "{key:?} takes one value, but was given several")
            }
            Self::Type { key, kind, text, is_object } => {
                write!(f, "{key:?} must be of type {kind}, not {:?}", shortened(text))?;
                if *is_object { write!(f, ": write {key}='{{…}}' or {key}.property=value") } else { Ok(()) }
            }
            Self::Json { key, reason } => {
                write!(f, "the value of {key}:= is not valid JSON ({reason}): for text, write {key}=...")
            }
            Self::File { key, path, reason } => write!(
                f,
                "cannot read the file {path:?} for {key:?} ({reason}): for text that starts with @, write \
                 {key}:='\"@…\"'"
            ),
            Self::Missing { missing } => {
                let named: Vec<String> =
                    missing.iter().map(|(name, kind)| format!("{} ({kind})", clean::line(name))).collect();
                let example: Vec<String> =
                    missing.iter().map(|(name, _)| format!("{}=…", clean::line(name))).collect();
                write!(f, "missing arguments: {}. Add {}", named.join(", "), example.join(" "))
            }
        }
    }
}

impl std::error::Error for ArgsError {}

/// The start of a text, which may be a whole file.
fn shortened(text: &str) -> String {
    const MOST: usize = 40;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
