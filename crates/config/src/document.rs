//! From text to what was written: TOML is parsed, references are filled in, and the form is checked. Each step keeps the
//! places in the text, and none stops at the first mistake.

use std::collections::HashMap;
use std::path::Path;

use tidegate_builtin::Builtins;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{ConfigError, Problem};
use crate::missing_reference::MissingReferences;
use crate::secrets::{Fault, Secrets};
use crate::section::Section;
use crate::source_map::{SourceMap, item_name};
use crate::structure::{self, Structure};
use crate::written::File;
use crate::{plain_secrets, serde_message, server_summary};

/// A configuration that was read, and where its fields stand.
pub(crate) struct Document {
    pub(crate) file: File,
    /// The sections of the servers of the program.
    pub(crate) sections: Vec<Section>,
    pub(crate) source_map: SourceMap,
    /// What each server is, in words that hold no secrets.
    pub(crate) shown: HashMap<String, String>,
    /// Fields that hold secrets in plain text.
    pub(crate) plain_secrets: Vec<String>,
    /// What is wrong with it so far.
    pub(crate) problems: Vec<Problem>,
    /// What its servers refer to that does not exist.
    pub(crate) absent: MissingReferences,
    /// Fields that could not be read: see [`Structure::removed`].
    pub(crate) removed: Vec<Vec<String>>,
}

impl Document {
    /// Reads a text. An error means that it is not TOML; everything else is in the document.
    pub(crate) fn read(
        text: &str,
        origin: &Path,
        builtins: &Builtins,
        secrets: &Secrets<'_>,
    ) -> Result<Document, ConfigError> {
        let mut source_map = SourceMap::of_text(text);
        let mut root = DeTable::parse(text).map_err(|error| {
            ConfigError::new(
                origin,
                vec![source_map.problem_at(error.span(), serde_message::syntax(error.message()))],
            )
        })?;
        source_map.add(root.get_ref());
        let shown = server_summary::servers(root.get_ref());
        let plain_secrets = plain_secrets::find(root.get_ref(), builtins);
        let mut fill = Fill {
            secrets,
            source_map: &source_map,
            problems: Vec::new(),
            absent: MissingReferences::default(),
            unfilled: Vec::new(),
        };
        fill.table(&mut Vec::new(), root.get_mut());
        let Fill { mut problems, absent, unfilled, .. } = fill;
        let Structure { file, sections, problems: more, removed } =
            structure::read(root, &source_map, unfilled, builtins);
        problems.extend(more);
        Ok(Document { file, sections, source_map, shown, plain_secrets, problems, absent, removed })
    }
}

/// Fills in the references of all texts, and notes down which cannot be.
struct Fill<'a> {
    secrets: &'a Secrets<'a>,
    source_map: &'a SourceMap,
    problems: Vec<Problem>,
    absent: MissingReferences,
    /// The fields that could not be filled in.
    unfilled: Vec<Vec<String>>,
}

impl Fill<'_> {
    fn table(&mut self, path: &mut Vec<String>, table: &mut DeTable<'_>) {
        for (key, value) in table.iter_mut() {
            path.push(key.get_ref().to_string());
            if !is_left_alone(path, value.get_ref()) {
                self.value(path, value);
            }
            path.pop();
        }
    }

    fn value(&mut self, path: &mut Vec<String>, value: &mut Spanned<DeValue<'_>>) {
        match value.get_mut() {
            DeValue::Table(table) => self.table(path, table),
            DeValue::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    let is_table = item.get_ref().is_table();
                    if is_table {
                        path.push(item_name(index));
                    }
                    self.value(path, item);
                    if is_table {
                        path.pop();
                    }
                }
            }
            DeValue::String(text) => match self.secrets.text(text) {
                Ok(filled) => *text = filled.into(),
                Err(faults) => {
                    faults.into_iter().for_each(|fault| self.fault(path, fault));
                    self.unfilled.push(path.clone());
                }
            },
            _ => {}
        }
    }

    fn fault(&mut self, path: &[String], fault: Fault) {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        match (fault, names.as_slice()) {
            // A server does without what others need not.
            (Fault::Missing(what), ["servers", _, _, ..]) => self.absent.add(path, what),
            (Fault::Missing(what), _) => self.problems.push(self.source_map.problem(&names, what.sentence())),
            (Fault::Wrong(sentence), _) => self.problems.push(self.source_map.problem(&names, sentence)),
        }
    }
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
