//! From text to what was written: TOML is parsed, `[defaults]` are given to every server, references are filled in, and
//! the rest is serde's work. Each step keeps the places in the text.

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer};

use crate::error::{ConfigError, Problem};
use crate::places::Places;
use crate::secrets::Secrets;
use crate::written::File;
use crate::{shown, told};

/// A configuration that was read, and where its fields stand.
pub(crate) struct Document {
    pub(crate) file: File,
    pub(crate) places: Places,
    /// What each server is, in words that hold no secrets.
    pub(crate) shown: HashMap<String, String>,
}

impl Document {
    pub(crate) fn read(text: &str, origin: &Path, secrets: &Secrets<'_>) -> Result<Document, ConfigError> {
        let mut places = Places::of_text(text);
        let refuse = |problem: Problem| ConfigError::new(origin, vec![problem]);
        let mut root = DeTable::parse(text)
            .map_err(|error| refuse(places.problem_at(error.span(), told::syntax(error.message()))))?;
        places.add(root.get_ref());
        let shown = shown::servers(root.get_ref());
        inherit(root.get_mut());
        let mut problems = Vec::new();
        let mut fill = Fill { secrets, places: &places, problems: &mut problems };
        fill.table(&mut Vec::new(), root.get_mut());
        if !problems.is_empty() {
            return Err(ConfigError::new(origin, problems));
        }
        let file = File::deserialize(Deserializer::from(root))
            .map_err(|error| refuse(places.problem_at(error.span(), told::sentence(error.message()))))?;
        Ok(Document { file, places, shown })
    }
}

/// Gives every server what `[defaults]` say and it does not.
fn inherit(root: &mut DeTable<'_>) {
    let Some(DeValue::Table(defaults)) = root.get("defaults").map(Spanned::get_ref) else { return };
    let defaults = defaults.clone();
    let Some(DeValue::Table(servers)) = root.get_mut("servers").map(Spanned::get_mut) else { return };
    for (_, server) in servers.iter_mut() {
        let DeValue::Table(server) = server.get_mut() else { continue };
        for (key, value) in defaults.iter() {
            if !server.contains_key(key.get_ref().as_ref()) {
                server.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Fills in the references of all texts, and notes down which cannot be.
struct Fill<'a> {
    secrets: &'a Secrets<'a>,
    places: &'a Places,
    problems: &'a mut Vec<Problem>,
}

impl Fill<'_> {
    fn table(&mut self, path: &mut Vec<String>, table: &mut DeTable<'_>) {
        for (key, value) in table.iter_mut() {
            path.push(key.get_ref().to_string());
            if is_table_by_nature(path) && value.get_ref().is_array() {
                self.wrong(path, "it must be a table, and is a list");
            } else if !is_left_alone(path, value.get_ref()) {
                self.value(path, value);
            }
            path.pop();
        }
    }

    fn value(&mut self, path: &mut Vec<String>, value: &mut Spanned<DeValue<'_>>) {
        match value.get_mut() {
            DeValue::Table(table) => self.table(path, table),
            DeValue::Array(items) => items.iter_mut().for_each(|item| self.value(path, item)),
            DeValue::String(text) => match self.secrets.text(text) {
                Ok(filled) => *text = filled.into(),
                Err(sentence) => self.wrong(path, sentence),
            },
            _ => {}
        }
    }

    fn wrong(&mut self, path: &[String], sentence: impl Into<String>) {
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        self.problems.push(self.places.problem(&path, sentence));
    }
}

/// Serde would take a list for a table, and its items for the fields in the order in which we happen to have them.
fn is_table_by_nature(path: &[String]) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    matches!(
        path.as_slice(),
        ["tools" | "defaults"] | ["servers", _] | ["servers", _, "tools", _] | ["servers", _, "client_info"]
    )
}

/// Servers that are switched off need no secrets. Command lines are split before they are filled in, so that a secret
/// with a space in it stays in one piece.
fn is_left_alone(path: &[String], value: &DeValue<'_>) -> bool {
    let path: Vec<&str> = path.iter().map(String::as_str).collect();
    match path.as_slice() {
        ["servers", _] => value.get("enabled").is_some_and(|on| on.get_ref().as_bool() == Some(false)),
        ["servers", _, "command"] => true,
        _ => false,
    }
}
