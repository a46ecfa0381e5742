//! The form of a configuration: which fields there are, and of which type each is. Serde stops at the first mistake; here
//! what is wrong is taken out and the rest is read again, until everything that is wrong is known.

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::absent::Absences;
use crate::error::Problem;
use crate::places::Places;
use crate::told;
use crate::written::File;

/// More mistakes than this nobody reads.
const MOST: usize = 100;

/// What could be read, and what could not.
pub(crate) struct Structure {
    pub(crate) file: File,
    pub(crate) problems: Vec<Problem>,
    /// The fields that were taken out, and those that were probably meant by them: whoever misses one of these later has
    /// been told why already.
    pub(crate) removed: Vec<Vec<String>>,
}

/// Reads a configuration whose references are filled in, without the fields in `absent`, for which that was impossible.
pub(crate) fn read(mut root: Spanned<DeTable<'_>>, places: &Places, absent: &Absences) -> Structure {
    let mut problems = Vec::new();
    let mut removed = Vec::new();
    // Nothing can be said about the type of what could not be filled in.
    for absent in absent.iter() {
        remove(root.get_mut(), &absent.path);
        removed.push(absent.path.clone());
    }
    for path in lists_for_tables(root.get_ref()) {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        problems.push(places.problem(&names, "must be a table, not a list"));
        remove(root.get_mut(), &path);
        removed.push(path);
    }
    while problems.len() < MOST {
        let Err(error) = File::deserialize(Deserializer::from(root.clone())) else { break };
        let path = error.span().and_then(|span| places.path_at(span));
        // Something else in the place of a word: asked for no word at all, serde says which words there are.
        let is_no_word = error.message().contains("wanted string or table");
        if is_no_word && path.as_ref().is_some_and(|path| put_no_word(root.get_mut(), path)) {
            continue;
        }
        problems.push(places.problem_at(error.span(), told::sentence(error.message())));
        let Some(path) = path.filter(|path| remove(root.get_mut(), path)) else { break };
        if let (Some(meant), Some((_, around))) = (told::meant(error.message()), path.split_last()) {
            removed.push([around, &[meant]].concat());
        }
        removed.push(path);
    }
    inherit(root.get_mut());
    let file = File::deserialize(Deserializer::from(root)).unwrap_or_else(|error| {
        if problems.is_empty() {
            problems.push(places.problem_at(error.span(), told::sentence(error.message())));
        }
        File::default()
    });
    Structure { file, problems, removed }
}

/// Gives every server what `[defaults]` say and it does not. Variables are merged name by name, where programs are
/// resolved.
fn inherit(root: &mut DeTable<'_>) {
    let Some(DeValue::Table(defaults)) = root.get("defaults").map(Spanned::get_ref) else { return };
    let defaults = defaults.clone();
    let Some(DeValue::Table(servers)) = root.get_mut("servers").map(Spanned::get_mut) else { return };
    for (_, server) in servers.iter_mut() {
        let DeValue::Table(server) = server.get_mut() else { continue };
        for (key, value) in defaults.iter() {
            let name = key.get_ref().as_ref();
            if name != "env" && !server.contains_key(name) {
                server.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Serde would take a list for a table, and its items for the fields in the order in which we happen to have them.
fn lists_for_tables(root: &DeTable<'_>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    walk(&mut Vec::new(), root, &mut found);
    found
}

fn walk(path: &mut Vec<String>, table: &DeTable<'_>, found: &mut Vec<Vec<String>>) {
    for (key, value) in table.iter() {
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => walk(path, inner, found),
            DeValue::Array(_) if is_table_by_nature(path) => found.push(path.clone()),
            _ => {}
        }
        path.pop();
    }
}

fn is_table_by_nature(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path.as_slice(),
        ["tools" | "defaults" | "memory"]
            | ["servers", _]
            | ["servers", _, "tools", _]
            | ["servers", _, "client_info"]
            | ["memory", "embeddings" | "agents"]
            | ["memory", "models", _]
    )
}

/// Puts an empty text in the place of a value that is none. Whether there was one.
fn put_no_word(table: &mut DeTable<'_>, path: &[String]) -> bool {
    match path {
        [] => false,
        [name] => match table.get_mut(name.as_str()).map(Spanned::get_mut) {
            None | Some(DeValue::String(_)) => false,
            Some(value) => {
                *value = DeValue::String("".into());
                true
            }
        },
        [name, rest @ ..] => match table.get_mut(name.as_str()).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => put_no_word(inner, rest),
            _ => false,
        },
    }
}

/// Takes a field out, or whatever around it is no table. Whether there was anything to take.
fn remove(table: &mut DeTable<'_>, path: &[String]) -> bool {
    match path {
        [] => false,
        [name] => table.remove(name.as_str()).is_some(),
        [name, rest @ ..] => match table.get_mut(name.as_str()).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => remove(inner, rest),
            Some(_) => table.remove(name.as_str()).is_some(),
            None => false,
        },
    }
}
