//! Where in the text a field stands, so that whoever finds fault with it later can say so.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::Problem;

/// The way to a field: `["servers", "github", "timeout"]`.
pub(crate) type Path<'a> = &'a [&'a str];

/// Where the fields of a text stand.
#[derive(Default)]
pub(crate) struct SourceMap {
    /// The offset of each line.
    lines: Vec<usize>,
    text: String,
    fields: Vec<Field>,
}

struct Field {
    path: Vec<String>,
    key: Range<usize>,
    value: Range<usize>,
}

impl SourceMap {
    /// Those of a text that has no fields, or whose fields are not known.
    pub(crate) fn of_text(text: &str) -> SourceMap {
        let breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        SourceMap {
            lines: std::iter::once(0).chain(breaks).collect(),
            text: text.to_owned(),
            fields: Vec::new(),
        }
    }

    /// Remembers where the fields of the text stand.
    pub(crate) fn add(&mut self, table: &DeTable<'_>) {
        self.add_under(&mut Vec::new(), table);
    }

    fn add_under(&mut self, path: &mut Vec<String>, table: &DeTable<'_>) {
        for (key, value) in table.iter() {
            path.push(key.get_ref().to_string());
            self.fields.push(Field { path: path.clone(), key: key.span(), value: value.span() });
            self.add_value(path, value);
            path.pop();
        }
    }

    fn add_value(&mut self, path: &mut Vec<String>, value: &Spanned<DeValue<'_>>) {
        match value.get_ref() {
            DeValue::Table(table) => self.add_under(path, table),
            DeValue::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    match item.get_ref() {
                        DeValue::Table(table) => {
                            path.push(item_name(index));
                            let (key, value) = (item.span(), item.span());
                            self.fields.push(Field { path: path.clone(), key, value });
                            self.add_under(path, table);
                            path.pop();
                        }
                        _ => self.add_value(path, item),
                    }
                }
            }
            _ => {}
        }
    }

    /// Line and column of an offset, both from 1; columns count characters.
    fn position(&self, offset: usize) -> (usize, usize) {
        let line = self.lines.partition_point(|start| *start <= offset).max(1);
        let start = self.lines.get(line - 1).copied().unwrap_or(0);
        let before = self.text.get(start..offset.min(self.text.len())).unwrap_or_default();
        (line, before.chars().count() + 1)
    }

    /// A problem with a field, or with where it should be.
    pub(crate) fn problem(&self, path: Path<'_>, sentence: impl Into<String>) -> Problem {
        let find = |path: Path<'_>| self.fields.iter().find(|field| field.path == path);
        let inherited = || match path {
            ["servers", _, rest @ ..] if !rest.is_empty() => find(&[&["defaults"], rest].concat()),
            _ => None,
        };
        let around = || (1..path.len()).rev().find_map(|end| find(&path[..end]));
        let found = find(path).or_else(inherited).or_else(around);
        let shown = found.filter(|field| field.path.first().is_some_and(|first| first == "defaults"));
        Problem {
            at: found.map(|field| self.position(field.key.start)),
            field: match shown {
                Some(field) => Some(dotted(&field.path)),
                None => (!path.is_empty()).then(|| dotted(path)),
            },
            sentence: sentence.into(),
        }
    }

    /// The field that a place in the text belongs to: the one of that name, else the innermost around it.
    pub(crate) fn path_at(&self, span: Range<usize>) -> Option<Vec<String>> {
        let named = self.fields.iter().find(|field| field.key == span && field.value != span);
        let inside = |field: &&Field| field.value.start <= span.start && span.end <= field.value.end;
        named.or_else(|| self.fields.iter().rev().find(inside)).map(|field| field.path.clone())
    }

    /// The line of a field, or of what it is in.
    pub(crate) fn line(&self, path: Path<'_>) -> Option<usize> {
        self.problem(path, "").at.map(|(line, _)| line)
    }

    /// A problem somewhere in the text, with the field that it is in or, for the name of a field, the table around it.
    pub(crate) fn problem_at(&self, span: Option<Range<usize>>, sentence: impl Into<String>) -> Problem {
        let Some(span) = span else { return Problem { at: None, field: None, sentence: sentence.into() } };
        let named = self.fields.iter().find(|field| field.key == span && field.value != span);
        let field = match named {
            Some(field) => field.path.split_last().map(|(_, around)| around.to_vec()),
            None => {
                let inside = |field: &&Field| field.value.start <= span.start && span.end <= field.value.end;
                self.fields.iter().rev().find(inside).map(|field| field.path.clone())
            }
        };
        Problem {
            at: Some(self.position(span.start)),
            field: field.filter(|path| !path.is_empty()).map(|path| dotted(&path)),
            sentence: sentence.into(),
        }
    }
}

/// What stands in a path for one of several tables in a list, such as `[[auth.jwt]]`. People are told the line instead.
pub(crate) fn item_name(index: usize) -> String {
    format!("{ITEM}{index}")
}

/// Which of several tables in a list a part of a path means.
pub(crate) fn item_index(part: &str) -> Option<usize> {
    part.strip_prefix(ITEM)?.parse().ok()
}

/// No field has a name with such a character in it that means anything.
const ITEM: char = '\0';

/// A path as it is written: `servers."a b".url`.
pub(crate) fn dotted(path: &[impl AsRef<str>]) -> String {
    let part = |part: &str| {
        let bare = !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b));
        if bare { part.to_owned() } else { format!("{part:?}") }
    };
    let named = path.iter().map(AsRef::as_ref).filter(|name| item_index(name).is_none());
    named.map(part).collect::<Vec<_>>().join(".")
}
