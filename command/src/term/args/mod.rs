//! The arguments of a tool, from words of the command line.
//!
//! | word | gives |
//! |---|---|
//! | `name=Ada` | a text, number, boolean, object or list, as the tool's schema has it |
//! | `name:=[1, 2]` | this JSON |
//! | `name=@file` | the same as `name=…` with the text of the file |
//! | `name:=@file` | the JSON in the file |
//! | `a.b=1` | a member of an object: `{"a": {"b": 1}}` |
//! | `tag=x tag=y` | a list, where the schema has one |
//!
//! A list may also be given whole: `tags=["x","y"]`. Where the schema names no type, what reads as a JSON number,
//! boolean, null, object or list is one, and anything else is a text.

mod coerce;
mod error;
#[cfg(test)]
mod tests;

use indexmap::IndexMap;
use serde_json::{Map, Value};

use super::schema;
pub(crate) use error::ArgsError;

/// No argument is larger.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// The value in one word.
enum Given {
    Text(String),
    /// The text of a file.
    File(String),
    Json(Value),
}

/// Where a value goes, and what fits there.
struct Slot<'a> {
    schema: &'a Value,
    given: Vec<Given>,
}

/// Builds the arguments of a tool whose `inputSchema` is `schema`.
pub(crate) fn parse(words: &[impl AsRef<str>], schema: &Value) -> Result<Map<String, Value>, ArgsError> {
    let mut slots: IndexMap<Vec<String>, Slot<'_>> = IndexMap::new();
    for word in words {
        let (key, given) = split(word.as_ref())?;
        let (path, fitting) = locate(key, schema)?;
        slots.entry(path).or_insert_with(|| Slot { schema: fitting, given: Vec::new() }).given.push(given);
    }
    let mut arguments = Map::new();
    for (path, slot) in slots {
        let key = path.join(".");
        let value = value_of(&key, slot, schema)?;
        insert(&mut arguments, &path, value).ok_or(ArgsError::Twice { key })?;
    }
    let missing: Vec<(String, String)> = schema::required(schema, schema)
        .into_iter()
        .filter(|name| !arguments.contains_key(*name))
        .map(|name| {
            let kind =
                schema::property(schema, schema, name).map(|property| schema::describe(property, schema));
            (name.to_owned(), kind.unwrap_or_else(|| "any".to_owned()))
        })
        .collect();
    if missing.is_empty() { Ok(arguments) } else { Err(ArgsError::Missing { missing }) }
}

/// Splits a word into its key and what it gives.
fn split(word: &str) -> Result<(&str, Given), ArgsError> {
    let (key, value) = word.split_once('=').ok_or_else(|| ArgsError::NoEquals { word: word.to_owned() })?;
    let (key, is_json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    if key.is_empty() {
        return Err(ArgsError::NoEquals { word: word.to_owned() });
    }
    let text = match value.strip_prefix('@') {
        Some(path) => tidegate_client::read_regular_text(path.as_ref(), MAX_BYTES).map_err(|error| {
            ArgsError::File { key: key.to_owned(), path: path.to_owned(), reason: error.to_string() }
        })?,
        None => value.to_owned(),
    };
    if !is_json {
        let given = if value.starts_with('@') { Given::File(text) } else { Given::Text(text) };
        return Ok((key, given));
    }
    let value = serde_json::from_str(&text)
        .map_err(|error| ArgsError::Json { key: key.to_owned(), reason: error.to_string() })?;
    Ok((key, Given::Json(value)))
}

/// Follows a key into the schema, dot by dot.
fn locate<'a>(key: &str, root: &'a Value) -> Result<(Vec<String>, &'a Value), ArgsError> {
    // Names may have dots of their own.
    if let Some(found) = schema::property(root, root, key) {
        return Ok((vec![key.to_owned()], found));
    }
    let mut path: Vec<String> = Vec::new();
    let mut at = root;
    for name in key.split('.') {
        if name.is_empty() {
            return Err(ArgsError::unknown(key, key, at, root));
        }
        let inside = path.join(".");
        at = match schema::property(at, root, name).or_else(|| additional(at, root)) {
            Some(found) => found,
            None if path.is_empty() => return Err(ArgsError::unknown(key, name, at, root)),
            None if !takes_members(at, root) => {
                return Err(ArgsError::NotAnObject { key: inside, kind: schema::describe(at, root) });
            }
            None => return Err(ArgsError::unknown(key, name, at, root)),
        };
        path.push(name.to_owned());
    }
    Ok((path, at))
}

/// Anything at all.
static ANY: Value = Value::Bool(true);

/// The schema of members that are not declared, where there may be any. A schema that declares members and says
/// nothing about others means no others: a misspelt name is likelier than one that the server keeps secret.
fn additional<'a>(at: &'a Value, root: &'a Value) -> Option<&'a Value> {
    if !takes_members(at, root) {
        return None;
    }
    let parts = schema::parts(at, root);
    match parts.iter().find_map(|part| part.get("additionalProperties")) {
        Some(Value::Bool(false)) => None,
        Some(schema) => Some(schema),
        None if parts.iter().any(|part| part.get("patternProperties").is_some()) => Some(&ANY),
        None => schema::property_names(at, root).is_empty().then_some(&ANY),
    }
}

/// Whether something that fits can be an object.
fn takes_members(at: &Value, root: &Value) -> bool {
    let types = schema::types(at, root);
    types.is_empty() || types.contains(&"object")
}

/// The value of a slot from everything that was given for it.
fn value_of(key: &str, slot: Slot<'_>, root: &Value) -> Result<Value, ArgsError> {
    let Slot { schema, mut given } = slot;
    let is_list = schema::types(schema, root).contains(&"array");
    if given.len() == 1
        && let Some(only) = given.pop()
    {
        return only.value(key, schema, root);
    }
    if !is_list {
        return Err(ArgsError::Twice { key: key.to_owned() });
    }
    let items = schema::items(schema, root).unwrap_or(&ANY);
    given
        .into_iter()
        .map(|given| given.value(key, items, root))
        .collect::<Result<Vec<_>, _>>()
        .map(Value::Array)
}

impl Given {
    /// The value that fits.
    fn value(self, key: &str, schema: &Value, root: &Value) -> Result<Value, ArgsError> {
        match self {
            Given::Json(value) => Ok(value),
            // A file that looks like JSON is a text all the same, unless something else is wanted.
            Given::File(text) if schema::types(schema, root).is_empty() => Ok(Value::from(text)),
            Given::Text(text) | Given::File(text) => coerce::value(key, &text, schema, root),
        }
    }
}

/// Puts a value where it belongs; `None` if something else is there already.
fn insert(arguments: &mut Map<String, Value>, path: &[String], value: Value) -> Option<()> {
    let (last, outer) = path.split_last()?;
    let mut members = arguments;
    for name in outer {
        let inner = members.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
        members = inner.as_object_mut()?;
    }
    if members.contains_key(last) {
        return None;
    }
    members.insert(last.clone(), value);
    Some(())
}
