//! As much of JSON Schema as it takes to read and to write down the parameters of a tool.

use std::collections::HashSet;

use serde_json::Value;

use super::clean;

/// Follows a `$ref` inside the same document.
pub(crate) fn resolve<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
    // References may go in circles.
    for _ in 0..16 {
        let target = schema
            .get("$ref")
            .and_then(Value::as_str)
            .and_then(|reference| reference.strip_prefix('#'))
            .and_then(|pointer| root.pointer(pointer));
        match target {
            Some(target) => schema = target,
            None => break,
        }
    }
    schema
}

/// The schema and everything that it is composed of with `anyOf`, `oneOf` and `allOf`.
pub(crate) fn parts<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a Value> {
    const MOST: usize = 64;
    let mut parts = vec![resolve(schema, root)];
    let mut at = 0;
    while at < parts.len() && parts.len() < MOST {
        let composed = ["allOf", "anyOf", "oneOf"].iter().filter_map(|key| parts[at].get(*key)?.as_array());
        let room = MOST - parts.len();
        let found: Vec<&Value> = composed.flatten().take(room).map(|part| resolve(part, root)).collect();
        parts.extend(found);
        at += 1;
    }
    parts
}

/// The types that the schema names.
pub(crate) fn types<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a str> {
    let mut types = Vec::new();
    for part in parts(schema, root) {
        let named: Vec<&str> = match part.get("type") {
            Some(Value::String(name)) => vec![name],
            Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        for name in named {
            if !types.contains(&name) {
                types.push(name);
            }
        }
    }
    types
}

/// The schema of a member, where it is declared.
pub(crate) fn property<'a>(schema: &'a Value, root: &'a Value, name: &str) -> Option<&'a Value> {
    parts(schema, root).into_iter().find_map(|part| part.get("properties")?.get(name))
}

/// The names of all declared members.
pub(crate) fn property_names<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a str> {
    let members = parts(schema, root).into_iter().filter_map(|part| part.get("properties")?.as_object());
    let mut seen = HashSet::new();
    // In their order, each once.
    members.flat_map(|members| members.keys()).map(String::as_str).filter(|name| seen.insert(*name)).collect()
}

/// The names of the members that must be there.
pub(crate) fn required<'a>(schema: &'a Value, root: &'a Value) -> Vec<&'a str> {
    let schema = resolve(schema, root);
    let all_of = schema.get("allOf").and_then(Value::as_array).into_iter().flatten();
    let parts = std::iter::once(schema).chain(all_of.map(|part| resolve(part, root)));
    let lists = parts.filter_map(|part| part.get("required")?.as_array());
    lists.flatten().filter_map(Value::as_str).collect()
}

/// The type as people read it: `integer`, `string[]`, `red|green`, `string|number`.
pub(crate) fn describe(schema: &Value, root: &Value) -> String {
    described(schema, root, 0)
}

fn described(schema: &Value, root: &Value, depth: usize) -> String {
    const CHOICES: usize = 8;
    if let Some(choices) = choices(schema, root) {
        let mut shown: Vec<String> = choices.iter().take(CHOICES).map(|choice| plain(choice)).collect();
        if choices.len() > CHOICES {
            shown.push("…".to_owned());
        }
        return shown.join("|");
    }
    let types: Vec<String> = types(schema, root)
        .into_iter()
        .filter(|name| *name != "null")
        .map(|name| match items(schema, root) {
            Some(items) if name == "array" && depth < 3 => {
                let inner = described(items, root, depth + 1);
                if inner.contains('|') { format!("({inner})[]") } else { format!("{inner}[]") }
            }
            _ => clean::line(name),
        })
        .collect();
    if types.is_empty() { "any".to_owned() } else { types.join("|") }
}

/// The schema of the elements of a list.
pub(crate) fn items<'a>(schema: &'a Value, root: &'a Value) -> Option<&'a Value> {
    parts(schema, root).into_iter().find_map(|part| part.get("items"))
}

/// The values that are allowed, if they are enumerated.
pub(crate) fn choices<'a>(schema: &'a Value, root: &'a Value) -> Option<Vec<&'a Value>> {
    let parts = parts(schema, root);
    if let Some(list) = parts.iter().find_map(|part| part.get("enum")?.as_array()) {
        return Some(list.iter().collect());
    }
    let constants: Vec<&Value> = parts.iter().filter_map(|part| part.get("const")).collect();
    (!constants.is_empty()).then_some(constants)
}

/// A value without quotes where there is no doubt.
pub(crate) fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => clean::line(text),
        other => clean::line(&other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn term_types_in_words() {
        let root = json!({"$defs": {
            "colour": {"type": "string", "enum": ["red", "green"]},
            "loop": {"$ref": "#/$defs/loop"},
            "tree": {"type": "array", "items": {"$ref": "#/$defs/tree"}},
        }});
        for (schema, words) in [
            (json!({"type": "integer"}), "integer"),
            (json!({"type": ["string", "null"]}), "string"),
            (json!({"type": ["string", "number"]}), "string|number"),
            (json!({"anyOf": [{"$ref": "#/$defs/colour"}, {"type": "null"}]}), "red|green"),
            (json!({"type": "array", "items": {"type": "string"}}), "string[]"),
            (json!({"type": "array", "items": {"type": ["string", "integer"]}}), "(string|integer)[]"),
            (json!({"type": "array"}), "array"),
            (json!({"oneOf": [{"const": "a", "title": "A"}, {"const": 2}]}), "a|2"),
            (json!({"enum": [1, 2, 3, 4, 5, 6, 7, 8, 9]}), "1|2|3|4|5|6|7|8|…"),
            (json!({}), "any"),
            (json!(true), "any"),
            (json!({"$ref": "#/$defs/loop"}), "any"),
            (json!({"$ref": "#/$defs/tree"}), "array[][][]"),
            (json!({"type": "a\u{1b}[2Jb"}), "ab"),
        ] {
            assert_eq!(describe(&schema, &root), words, "{schema}");
        }
    }
}
