//! The form of a configuration: which fields there are, and of which type each is. Serde stops at the first mistake; here
//! what is wrong is taken out and the rest is read again, until everything that is wrong is known.

use serde::Deserialize;
use tidegate_builtin::{Builtin, Builtins};
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::error::Problem;
use crate::section::{self, Section};
use crate::serde_message;
use crate::source_map::{self, SourceMap};
use crate::written::File;

/// More mistakes than this nobody reads.
const MOST: usize = 100;

/// What could be read, and what could not.
pub(crate) struct Structure {
    pub(crate) file: File,
    /// The sections of all servers of the program, also of those that none was written for.
    pub(crate) sections: Vec<Section>,
    pub(crate) problems: Vec<Problem>,
    /// The fields that were taken out, and those that were probably meant by them: whoever misses one of these later has
    /// been told why already.
    pub(crate) removed: Vec<Vec<String>>,
}

/// Reads a configuration whose references are filled in, without the fields for which that was impossible.
pub(crate) fn read(
    mut root: Spanned<DeTable<'_>>,
    source_map: &SourceMap,
    unfilled: Vec<Vec<String>>,
    builtins: &Builtins,
) -> Structure {
    let mut mistakes = Mistakes { source_map, problems: Vec::new(), removed: Vec::new() };
    // Nothing can be said about what could not be filled in, but that.
    for path in unfilled {
        remove(root.get_mut(), &path);
        mistakes.removed.push(path);
    }
    for path in lists_for_tables(root.get_ref(), builtins) {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        mistakes.problems.push(source_map.problem(&names, "must be a table, not a list"));
        remove(root.get_mut(), &path);
        mistakes.removed.push(path);
    }
    for path in tables_for_lists(root.get_ref()) {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let sentence = format!("must be written [[{}]], because there can be several", names.join("."));
        mistakes.problems.push(source_map.problem(&names, sentence));
        remove(root.get_mut(), &path);
        mistakes.removed.push(path);
    }
    let sections = builtins.iter().map(|builtin| section(builtin, &mut root, &mut mistakes)).collect();
    let known = |message: &str, path: Option<&Vec<String>>| match path.map(Vec::len) {
        Some(1) => serde_message::with_fields(message, builtins.names()),
        _ => message.to_owned(),
    };
    mistakes.take_out(&mut root, known, |root| File::deserialize(Deserializer::from(root.clone())).map(drop));
    inherit(root.get_mut());
    let file = File::deserialize(Deserializer::from(root)).unwrap_or_else(|error| {
        if mistakes.problems.is_empty() {
            mistakes
                .problems
                .push(source_map.problem_at(error.span(), serde_message::sentence(error.message())));
        }
        File::default()
    });
    let Mistakes { problems, removed, .. } = mistakes;
    Structure { file, sections, problems, removed }
}

/// Takes the section of a server of the program out of the file, and reads it.
fn section(builtin: &Builtin, root: &mut Spanned<DeTable<'_>>, mistakes: &mut Mistakes<'_>) -> Section {
    let name = builtin.name();
    let Some((key, value)) = root.get_mut().remove_entry(name) else { return Section::unwritten(builtin) };
    let identity = section::identity(&value);
    // A file that has nothing else in it: the paths in it are those of the whole.
    let mut alone = Spanned::new(root.span(), DeTable::new());
    alone.get_mut().insert(key, value);
    let as_is = |message: &str, _: Option<&Vec<String>>| message.to_owned();
    mistakes.take_out(&mut alone, as_is, |alone| match alone.get_ref().get(name) {
        Some(section) => builtin.read(section.clone()).map(drop),
        None => Ok(()),
    });
    let read = alone.get_mut().remove(name).and_then(|section| builtin.read(section).ok());
    Section { builtin: *builtin, written: read.unwrap_or_else(|| builtin.unwritten()), identity }
}

/// What is wrong with the form of a configuration.
struct Mistakes<'a> {
    source_map: &'a SourceMap,
    problems: Vec<Problem>,
    removed: Vec<Vec<String>>,
}

impl Mistakes<'_> {
    /// Takes out what is wrong, until what is left can be read. `known` completes what serde says about a field.
    fn take_out(
        &mut self,
        root: &mut Spanned<DeTable<'_>>,
        known: impl Fn(&str, Option<&Vec<String>>) -> String,
        read: impl Fn(&Spanned<DeTable<'_>>) -> Result<(), toml::de::Error>,
    ) {
        while self.problems.len() < MOST {
            let Err(error) = read(root) else { return };
            let path = error.span().and_then(|span| self.source_map.path_at(span));
            // Something else in the place of a word: asked for no word at all, serde says which words there are.
            let is_no_word = error.message().contains("wanted string or table");
            if is_no_word && path.as_ref().is_some_and(|path| put_no_word(root.get_mut(), path)) {
                continue;
            }
            let message = known(error.message(), path.as_ref());
            self.problems.push(self.source_map.problem_at(error.span(), serde_message::sentence(&message)));
            let Some(path) = path.filter(|path| remove(root.get_mut(), path)) else { return };
            if let (Some(meant), Some((_, around))) =
                (serde_message::suggested_field(&message), path.split_last())
            {
                self.removed.push([around, &[meant]].concat());
            }
            self.removed.push(path);
        }
    }
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
fn lists_for_tables(root: &DeTable<'_>, builtins: &Builtins) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    walk(&mut Vec::new(), root, builtins, &mut found);
    found
}

fn walk(path: &mut Vec<String>, table: &DeTable<'_>, builtins: &Builtins, found: &mut Vec<Vec<String>>) {
    for (key, value) in table.iter() {
        path.push(key.get_ref().to_string());
        match value.get_ref() {
            DeValue::Table(inner) => walk(path, inner, builtins, found),
            DeValue::Array(_) if is_table_by_nature(path, builtins) => found.push(path.clone()),
            DeValue::Array(items)
                if is_list_of_tables(path) && items.iter().any(|item| item.get_ref().is_array()) =>
            {
                found.push(path.clone());
            }
            DeValue::Array(items) if is_list_of_tables(path) => {
                for (index, item) in items.iter().enumerate() {
                    let Some(item) = item.get_ref().as_table() else { continue };
                    path.push(source_map::item_name(index));
                    walk(path, item, builtins, found);
                    path.pop();
                }
            }
            _ => {}
        }
        path.pop();
    }
}

fn is_table_by_nature(path: &[String], builtins: &Builtins) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["tools" | "defaults" | "auth" | "tls" | "limits"]
        | ["limits", "tenant" | "user" | "tool" | "server" | "endpoint" | "run"]
        | ["limits", "rules", _, "tenant" | "user" | "tool" | "server" | "endpoint"]
        | ["endpoints", _]
        | ["servers", _]
        | ["servers", _, "tools", _]
        | ["servers", _, "client_info"] => true,
        [name, within @ ..] => {
            builtins.get(name).is_some_and(|builtin| section::is_table_by_nature(builtin, within))
        }
        [] => false,
    }
}

/// Whether a field is a list of tables.
fn is_list_of_tables(path: &[impl AsRef<str>]) -> bool {
    let [section, kind] = path else { return false };
    matches!((section.as_ref(), kind.as_ref()), ("auth", "jwt" | "introspection") | ("limits", "rules"))
}

/// The lists of tables of which one was written as if there could be no other.
fn tables_for_lists(root: &DeTable<'_>) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (section, fields) in root.iter() {
        let fields = fields.get_ref().as_table().into_iter().flat_map(DeTable::iter);
        for (field, _) in fields.filter(|(_, value)| value.get_ref().is_table()) {
            found.push(vec![section.get_ref().to_string(), field.get_ref().to_string()]);
        }
    }
    found.retain(|path| is_list_of_tables(path));
    found
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
            Some(DeValue::Array(items)) => {
                item_of(items, rest).is_some_and(|item| put_no_word(item, &rest[1..]))
            }
            _ => false,
        },
    }
}

/// The table of a list that a path leads into: to one of its fields, not to the table as a whole.
fn item_of<'a, 'i>(items: &'a mut [Spanned<DeValue<'i>>], path: &[String]) -> Option<&'a mut DeTable<'i>> {
    let [index, _, ..] = path else { return None };
    match items.get_mut(source_map::item_index(index)?)?.get_mut() {
        DeValue::Table(table) => Some(table),
        _ => None,
    }
}

/// Takes a field out, or whatever around it is no table. Whether there was anything to take.
fn remove(table: &mut DeTable<'_>, path: &[String]) -> bool {
    match path {
        [] => false,
        [name] => table.remove(name.as_str()).is_some(),
        [name, rest @ ..] => match table.get_mut(name.as_str()).map(Spanned::get_mut) {
            Some(DeValue::Table(inner)) => remove(inner, rest),
            Some(DeValue::Array(items)) => match item_of(items, rest) {
                Some(item) => remove(item, &rest[1..]),
                None => table.remove(name.as_str()).is_some(),
            },
            Some(_) => table.remove(name.as_str()).is_some(),
            None => false,
        },
    }
}
