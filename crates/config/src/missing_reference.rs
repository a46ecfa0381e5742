//! What servers refer to that does not exist: variables that are not set, files that cannot be read. It costs a server
//! its place, and nobody else theirs.

use crate::source_map;

/// Something that does not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Missing {
    /// The environment variable of this name is not set.
    Variable(String),
    /// A file cannot be read: a sentence that names it.
    File(String),
}

/// Something that does not exist, and the field that refers to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MissingReference {
    pub(crate) path: Vec<String>,
    pub(crate) what: Missing,
}

/// Everything of that kind in a configuration.
#[derive(Debug, Default)]
pub(crate) struct MissingReferences(Vec<MissingReference>);

impl MissingReferences {
    /// Notes something down, once.
    pub(crate) fn add(&mut self, path: &[impl AsRef<str>], what: Missing) {
        let path = path.iter().map(|part| part.as_ref().to_owned()).collect();
        let absent = MissingReference { path, what };
        if !self.0.contains(&absent) {
            self.0.push(absent);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &MissingReference> {
        self.0.iter()
    }

    /// What is absent of one server.
    pub(crate) fn of(&self, server: &str) -> Vec<&MissingReference> {
        self.0.iter().filter(|absent| absent.path.get(1).is_some_and(|name| name == server)).collect()
    }

    /// Whether a field, or what it is in, could not be filled in: nothing can be said about it then.
    pub(crate) fn covers(&self, path: &[impl AsRef<str>]) -> bool {
        let starts = |absent: &MissingReference| {
            absent.path.len() <= path.len() && absent.path.iter().zip(path).all(|(a, b)| a == b.as_ref())
        };
        self.0.iter().any(starts)
    }
}

impl Missing {
    /// What is wrong and what to do, where it is a problem and not only a note.
    pub(crate) fn sentence(&self) -> String {
        match self {
            Missing::Variable(name) => {
                format!("the environment variable {name} is not set; set it, or write ${{{name}:-default}}")
            }
            Missing::File(sentence) => sentence.clone(),
        }
    }
}

/// Where a field is: `servers.github.url, line 7`.
pub(crate) fn location(path: &[impl AsRef<str>], line: Option<usize>) -> String {
    match line {
        Some(line) => format!("{}, line {line}", source_map::dotted(path)),
        None => source_map::dotted(path),
    }
}
