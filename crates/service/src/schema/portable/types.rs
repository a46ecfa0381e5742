//! One type for each place: lists of types become `anyOf`, and what has no type gets one.

use serde_json::{Map, Value, json};

use super::keywords::{is_annotation, kind_of, type_of};
use super::rewrite::{Location, merged};

/// How many branches are compared with each other.
const MAX_COMPARED: usize = 100;

/// What takes every value of a type; without one, of every type. `null` is nothing that somebody would have to say, and
/// lists of lists are left out, so that this ends.
pub(super) fn anything(kind: Option<&str>) -> Value {
    let plain =
        || vec!["string", "number", "boolean", "object"].into_iter().map(|kind| json!({"type": kind}));
    let list = || json!({"type": "array", "items": {"anyOf": plain().collect::<Value>()}});
    match kind {
        Some("array") => list(),
        Some(kind) => json!({"type": kind}),
        None => json!({"anyOf": plain().chain([list()]).collect::<Value>()}),
    }
}

/// What takes no value.
pub(super) fn nothing() -> Value {
    json!({"type": "string", "not": {}})
}

/// Gives a schema, whose parts are written already, its types.
pub(super) fn finish(schema: &mut Map<String, Value>, place: Location<'_>) -> Option<()> {
    one_type(schema, place)?;
    flatten(schema);
    ["anyOf", "oneOf", "allOf"].into_iter().for_each(|keyword| unwrap(schema, keyword));
    share_type(schema);
    if place.exact {
        return Some(());
    }
    if place.typed && !schema.contains_key("type") {
        infer_type(schema, place);
    }
    if schema.get("type").is_some_and(|kind| kind == "array") {
        describe_items(schema);
    }
    Some(())
}

/// Makes one type of a list of types, or `anyOf`.
fn one_type(schema: &mut Map<String, Value>, place: Location<'_>) -> Option<()> {
    let Some(Value::Array(names)) = schema.get("type") else { return Some(()) };
    let mut kinds: Vec<String> = Vec::new();
    for name in names {
        let name = name.as_str()?;
        if !kinds.iter().any(|kind| kind == name) {
            kinds.push(name.to_owned());
        }
    }
    if place.optional && !place.exact && kinds.len() > 1 {
        kinds.retain(|kind| kind != "null");
    }
    if kinds.iter().any(|kind| kind == "number") {
        kinds.retain(|kind| kind != "integer");
    }
    match kinds.as_slice() {
        [] => return None,
        [one] => _ = schema.insert("type".to_owned(), one.as_str().into()),
        _ => split(schema, &kinds, place),
    }
    Some(())
}

/// Writes a branch for each type, with what is said about values of that type.
fn split(schema: &mut Map<String, Value>, kinds: &[String], place: Location<'_>) {
    schema.remove("type");
    let fits = |kind: &str, value: &Value| {
        kind == type_of(value) || matches!((kind, value), ("number", Value::Number(_)))
            // 1.0 is an integer too.
            || matches!((kind, value), ("integer", Value::Number(n)) if n.as_f64().is_some_and(|n| n.fract() == 0.0))
    };
    let values = schema.remove("enum");
    let mut branches = Vec::new();
    for kind in kinds {
        let mut branch = Map::new();
        branch.insert("type".to_owned(), kind.as_str().into());
        let about = if kind == "integer" { "number" } else { kind };
        let own: Vec<String> =
            schema.keys().filter(|keyword| kind_of(keyword) == Some(about)).cloned().collect();
        for keyword in own {
            branch.extend(schema.remove_entry(&keyword));
        }
        if let Some(Value::Array(values)) = &values {
            let own: Vec<Value> = values.iter().filter(|value| fits(kind, value)).cloned().collect();
            if own.is_empty() {
                continue;
            }
            branch.insert("enum".to_owned(), Value::Array(own));
        }
        if kind == "array" && !place.exact {
            describe_items(&mut branch);
        }
        branches.push(Value::Object(branch));
    }
    if branches.is_empty() {
        branches.push(nothing());
    }
    // What is left is about values of other types.
    let idle: Vec<String> = schema.keys().filter(|keyword| kind_of(keyword).is_some()).cloned().collect();
    for keyword in idle.iter().filter(|keyword| keyword.as_str() != "format") {
        schema.remove(keyword);
    }
    let branches = Value::Array(branches);
    match schema.contains_key("anyOf") {
        false => _ = schema.insert("anyOf".to_owned(), branches),
        true => {
            let parts = schema.entry("allOf").or_insert_with(|| json!([]));
            parts.as_array_mut().into_iter().for_each(|parts| parts.push(json!({"anyOf": branches})));
        }
    }
}

/// Takes the branches of branches that have nothing else, and each branch once.
fn flatten(schema: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = schema.get_mut("anyOf") else { return };
    let mut all: Vec<Value> = Vec::new();
    for branch in std::mem::take(branches) {
        let inner = match branch {
            Value::Object(mut only) if only.len() == 1 && only.contains_key("anyOf") => only.remove("anyOf"),
            other => Some(Value::Array(vec![other])),
        };
        for branch in inner.and_then(|inner| inner.as_array().cloned()).into_iter().flatten() {
            if all.len() > MAX_COMPARED || !all.contains(&branch) {
                all.push(branch);
            }
        }
    }
    *branches = all;
}

/// A combination of one is that one, unless something stands beside it that would come to mean something else.
fn unwrap(schema: &mut Map<String, Value>, keyword: &str) {
    let Some(Value::Array(branches)) = schema.get(keyword) else { return };
    let [Value::Object(only)] = branches.as_slice() else { return };
    let fits = |name: &str| {
        name == keyword || is_annotation(name) || (name == "type" && only.get("type") == schema.get("type"))
    };
    if schema.keys().all(|name| fits(name)) {
        *schema = merged(schema, keyword, only);
    }
}

/// Writes the type that all branches have beside them.
fn share_type(schema: &mut Map<String, Value>) {
    if schema.contains_key("type") {
        return;
    }
    for keyword in ["anyOf", "oneOf"] {
        let Some(Value::Array(branches)) = schema.get(keyword) else { continue };
        let mut kinds = branches.iter().map(|branch| branch.get("type").filter(|kind| kind.is_string()));
        let first = kinds.next().flatten().cloned();
        if let Some(first) = first
            && kinds.all(|kind| kind == Some(&first))
        {
            schema.insert("type".to_owned(), first);
            return;
        }
    }
    // What fits all parts has the type of each.
    let parts = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let mut kinds = parts.filter_map(|part| part.get("type")).filter(|kind| kind.is_string());
    if let Some(kind) = kinds.next().cloned() {
        schema.insert("type".to_owned(), kind);
    }
}

/// Finds a type for a schema that has none.
fn infer_type(schema: &mut Map<String, Value>, place: Location<'_>) {
    const SAY_IT_OTHERWISE: [&str; 5] = ["$ref", "anyOf", "oneOf", "allOf", "const"];
    let listed = schema.get("enum").and_then(Value::as_array).map(Vec::as_slice);
    let values = schema.get("const").map(std::slice::from_ref).or(listed);
    if let Some(values) = values {
        let mut kinds = values.iter().map(type_of);
        if let Some(first) = kinds.next()
            && kinds.all(|kind| kind == first)
        {
            schema.insert("type".to_owned(), first.into());
        }
        return;
    }
    if SAY_IT_OTHERWISE.iter().any(|keyword| schema.contains_key(*keyword)) {
        return;
    }
    let mut kinds: Vec<&str> = schema.keys().filter_map(|keyword| kind_of(keyword)).collect();
    kinds.sort_unstable();
    kinds.dedup();
    match (place.kind, kinds.as_slice()) {
        (Some(kind), _) | (None, &[kind]) => _ = schema.insert("type".to_owned(), kind.into()),
        (None, []) => {
            if let Value::Object(anything) = anything(None) {
                schema.extend(anything);
            }
        }
        (None, kinds) => {
            let kinds: Vec<String> = kinds.iter().map(|kind| (*kind).to_owned()).collect();
            split(schema, &kinds, place);
        }
    }
}

/// Says what the items of a list are, which some readers insist on.
fn describe_items(schema: &mut Map<String, Value>) {
    if schema.contains_key("items") {
        return;
    }
    let mut first: Vec<Value> = Vec::new();
    for item in schema.get("prefixItems").and_then(Value::as_array).into_iter().flatten() {
        if !first.contains(item) {
            first.push(item.clone());
        }
    }
    let items = match first.len() {
        0 => anything(None),
        1 => first.remove(0),
        _ => json!({"anyOf": first}),
    };
    schema.insert("items".to_owned(), items);
}
