//! [`Dotenv`]: the `.env` beside a configuration, for what the environment of this process does not have.

use std::cell::{Cell, OnceCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tidegate_client::parse_env_lines;

use crate::secrets::folder;
use crate::{permissions, read_file};

/// The `.env` beside a configuration. It is read when something is looked up in it for the first time: whoever needs
/// nothing from it hears nothing about it.
pub(crate) struct Dotenv {
    path: PathBuf,
    read: OnceCell<Read>,
    /// Whether anything was found in it.
    used: Cell<bool>,
}

#[derive(Default)]
struct Read {
    variables: BTreeMap<String, String>,
    notes: Vec<String>,
}

impl Dotenv {
    pub(crate) fn beside(config: &Path) -> Dotenv {
        Dotenv { path: folder(config).join(".env"), read: OnceCell::new(), used: Cell::new(false) }
    }

    /// A variable.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        let value = self.read.get_or_init(|| read(&self.path)).variables.get(name).cloned();
        self.used.set(self.used.get() || value.is_some());
        value
    }

    /// The file, if something was looked up in it, whether or not it exists; and what is to be said about it.
    pub(crate) fn into_parts(self) -> (Option<PathBuf>, Vec<String>) {
        let Some(read) = self.read.into_inner() else { return (None, Vec::new()) };
        let mut notes = read.notes;
        if self.used.get() {
            notes.extend(permissions::note(&self.path));
        }
        (Some(self.path), notes)
    }
}

fn read(path: &Path) -> Read {
    // A directory of that name is a virtual environment of Python.
    if !path.exists() || path.is_dir() {
        return Read::default();
    }
    let shown = path.display();
    match read_file::text(path) {
        Ok(text) => {
            let (variables, wrong) = parse_env_lines(&text);
            let notes = match wrong.as_slice() {
                [] => Vec::new(),
                [line] => vec![format!("Line {line} of {shown} is ignored: it is not NAME=value.")],
                [line, rest @ ..] => {
                    let more = rest.len();
                    vec![format!(
                        "Line {line} of {shown} and {more} more are ignored: they are not NAME=value."
                    )]
                }
            };
            Read { variables, notes }
        }
        Err(reason) => Read { notes: vec![format!("{shown} {reason}. It is ignored.")], ..Read::default() },
    }
}
