//! [`portable`]: a schema of arguments in words that every reader of tools understands.
//!
//! Agent frameworks make types of their own from the schemas of tools, and each knows a part of JSON Schema only. One
//! `items: true`, one `type: ["string", "null"]` or one property without a type, and some of them lose all tools of a
//! server. So what is listed says the same with less: one type for each place, `anyOf` where there are several,
//! definitions written out where they are small, and nothing that only generators of schemas know.
//!
//! What is listed is **never wider** than the original: arguments that fit it fit the original too. It may be narrower:
//! an optional member that may be `null` is listed without the `null`, because leaving it out says the same, and a place
//! where anything goes is listed with the types that there are. Below `not`, where narrower would be wider, everything
//! is written in other words only (`Location::exact`).

mod disjoint;
mod keywords;
mod obstacles;
mod refs;
mod rewrite;
#[cfg(test)]
mod tests;
mod types;

use serde_json::{Map, Value};
use tidegate_protocol::param_headers::HeaderParams;

use self::keywords::{Holds, holds};
pub use self::obstacles::{Construct, Obstacle, obstacles};

/// How often a schema is gone through: what one pass has made smaller the next may write out.
const PASSES: usize = 4;

/// How much longer a schema may become: what is a few bytes in a definition can be many where it is used.
const GROWTH: usize = 4;
/// And how many bytes in any case.
const ROOM: usize = 4096;

/// Formats that generators of schemas invented for the sizes of numbers. No reader needs them, and some complain.
const SIZES: [&str; 14] = [
    "int8", "int16", "int32", "int64", "int128", "int", "uint8", "uint16", "uint32", "uint64", "uint128",
    "uint", "float", "double",
];

/// The schema of a tool's arguments as every reader understands it. It takes nothing that the original does not take.
///
/// A schema that is too large, too deep, that would become too large, or that refers to somewhere else comes back as it is.
///
/// ```
/// use serde_json::json;
/// use tidegate_service::schema::portable;
///
/// let schema = json!({
///     "type": "object",
///     "properties": {"name": {"type": ["string", "null"]}, "size": {"$ref": "#/$defs/Size"}},
///     "required": ["size"],
///     "$defs": {"Size": {"type": "integer", "format": "uint", "minimum": 0}},
/// });
/// let listed = json!({
///     "type": "object",
///     "properties": {"name": {"type": "string"}, "size": {"type": "integer", "minimum": 0}},
///     "required": ["size"],
/// });
/// assert_eq!(portable(&schema), listed);
/// ```
pub fn portable(schema: &Value) -> Value {
    let now = passes(schema, true);
    // Clients read from what is listed which arguments they mirror into headers, and are held to the original.
    let same_headers = HeaderParams::from_schema(&now) == HeaderParams::from_schema(schema);
    let fits = bytes(&now) <= GROWTH * bytes(schema) + ROOM;
    if same_headers && fits { now } else { schema.clone() }
}

/// A schema in the same words as those of [`portable`], as far as it then takes exactly what it took before: for
/// results, of which nothing may be left out.
///
/// ```
/// use serde_json::json;
/// use tidegate_service::schema::restated;
///
/// let either = json!({"anyOf": [{"type": "string"}, {"type": "null"}]});
/// assert_eq!(restated(&json!({"type": ["string", "null"]})), either);
/// ```
pub fn restated(schema: &Value) -> Value {
    let now = passes(schema, false);
    if bytes(&now) <= GROWTH * bytes(schema) + ROOM { now } else { schema.clone() }
}

fn passes(schema: &Value, of_arguments: bool) -> Value {
    let mut now = schema.clone();
    for _ in 0..PASSES {
        match rewrite::rewritten(&now, of_arguments) {
            Some(next) if next != now => now = next,
            _ => break,
        }
    }
    now
}

/// Removes `format: "uint"` and its kin from a schema, which says as much without them.
pub fn remove_sizes(schema: &mut Value) {
    let Value::Object(members) = schema else { return };
    if is_size(members.get("format")) {
        members.remove("format");
    }
    for (keyword, value) in members.iter_mut() {
        match (holds(keyword), value) {
            (Holds::Named, Value::Object(named)) => named.values_mut().for_each(remove_sizes),
            (Holds::List | Holds::One, Value::Array(list)) => list.iter_mut().for_each(remove_sizes),
            (Holds::One, one) => remove_sizes(one),
            _ => {}
        }
    }
}

/// About how many bytes a value has when it is written.
fn bytes(value: &Value) -> usize {
    match value {
        Value::Object(members) => {
            members.iter().map(|(name, value)| name.len() + 4 + bytes(value)).sum::<usize>() + 2
        }
        Value::Array(items) => items.iter().map(|item| bytes(item) + 1).sum::<usize>() + 2,
        Value::String(text) => text.len() + 2,
        _ => 4,
    }
}

fn is_size(format: Option<&Value>) -> bool {
    format.and_then(Value::as_str).is_some_and(|format| SIZES.contains(&format))
}

/// The names of members that must be there.
fn required(schema: &Map<String, Value>) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
