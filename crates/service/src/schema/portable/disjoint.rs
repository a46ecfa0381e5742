//! Whether no value fits two schemas at once: then `oneOf` says what `anyOf` says.

use serde_json::{Map, Value};

use super::keywords::type_of;
use super::refs::Refs;
use super::required;

/// How many references are followed to the schema that they mean.
const HOPS: usize = 8;
/// How many branches are compared with each other.
const MAX_BRANCHES: usize = 100;

/// Whether no value fits two of the branches. No is also said where that cannot be told.
pub(super) fn are_disjoint(refs: &Refs<'_>, branches: &[Value]) -> bool {
    branches.len() <= MAX_BRANCHES
        && branches.iter().enumerate().all(|(at, a)| branches[..at].iter().all(|b| is_disjoint(refs, a, b)))
}

fn is_disjoint(refs: &Refs<'_>, a: &Value, b: &Value) -> bool {
    let (Some(a), Some(b)) = (resolved(refs, a), resolved(refs, b)) else {
        return *a == Value::Bool(false) || *b == Value::Bool(false);
    };
    if let (Some(a), Some(b)) = (types(a), types(b)) {
        let same =
            |a: &str, b: &str| a == b || matches!((a, b), ("integer", "number") | ("number", "integer"));
        if !a.iter().any(|a| b.iter().any(|b| same(a, b))) {
            return true;
        }
    }
    if let (Some(a), Some(b)) = (values(a), values(b)) {
        return no_value_in_both(&a, &b);
    }
    let is_object = |schema| types(schema).is_some_and(|types| types == ["object"]);
    is_object(a) && is_object(b) && (is_told_apart(refs, a, b) || excludes(a, b) || excludes(b, a))
}

/// Most comparisons of one list with another, and most members that are looked at.
const MAX_COMPARED: usize = 4096;
const MAX_MEMBERS: usize = 16;

/// Whether both must have a member that has other values in one than in the other.
fn is_told_apart(refs: &Refs<'_>, a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let compared = required(a).count().saturating_mul(required(b).count());
    compared <= MAX_COMPARED
        && required(a).take(MAX_MEMBERS).filter(|name| required(b).any(|other| other == *name)).any(|name| {
            let both = member(refs, a, name).zip(member(refs, b, name));
            both.is_some_and(|(a, b)| no_value_in_both(&a, &b))
        })
}

/// The values that a member can have, if they are enumerated.
fn member<'s>(refs: &Refs<'s>, schema: &'s Map<String, Value>, name: &str) -> Option<Vec<&'s Value>> {
    resolved(refs, schema.get("properties")?.get(name)?).and_then(values)
}

/// Whether `a` must have a member that `b` must not have.
fn excludes(a: &Map<String, Value>, b: &Map<String, Value>) -> bool {
    let closed =
        b.get("additionalProperties") == Some(&Value::Bool(false)) && !b.contains_key("patternProperties");
    let declared = |name: &str| b.get("properties").is_some_and(|members| members.get(name).is_some());
    closed && required(a).any(|name| !declared(name))
}

/// The schema that is meant, if it is an object.
fn resolved<'s>(refs: &Refs<'s>, mut schema: &'s Value) -> Option<&'s Map<String, Value>> {
    for _ in 0..HOPS {
        let members = schema.as_object()?;
        match members.get("$ref").and_then(Value::as_str) {
            None => return Some(members),
            Some(to) => schema = refs.find(to)?,
        }
    }
    None
}

/// The types that a schema takes, if it says so.
fn types(schema: &Map<String, Value>) -> Option<Vec<&str>> {
    match schema.get("type") {
        Some(Value::String(kind)) => Some(vec![kind]),
        Some(Value::Array(kinds)) => kinds.iter().map(Value::as_str).collect(),
        _ => values(schema).map(|values| values.into_iter().map(type_of).collect()),
    }
}

/// The values that a schema takes, if they are enumerated.
fn values(schema: &Map<String, Value>) -> Option<Vec<&Value>> {
    match schema.get("const") {
        Some(value) => Some(vec![value]),
        None => schema.get("enum").and_then(Value::as_array).map(|values| values.iter().collect()),
    }
}

/// Whether no value is in both lists. Numbers are left to others: `1` and `1.0` are the same.
fn no_value_in_both(a: &[&Value], b: &[&Value]) -> bool {
    let plain = |values: &[&Value]| {
        values.iter().all(|value| matches!(value, Value::String(_) | Value::Bool(_) | Value::Null))
    };
    // Each is compared with each: beyond this nobody knows.
    a.len().saturating_mul(b.len()) <= MAX_COMPARED
        && plain(a)
        && plain(b)
        && !a.iter().any(|value| b.contains(value))
}
