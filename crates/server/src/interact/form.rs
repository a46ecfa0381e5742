//! Schemas of forms: flat objects of primitive properties (2026-07-28 client/elicitation, Requested Schema).

use serde_json::{Map, Value, json};

/// Makes a form of a schema that was derived from a type: optional fields lose their `null`, enums become choices.
pub(super) fn flatten(mut schema: Value) -> Result<Value, String> {
    let Some(root) = schema.as_object_mut() else { return Err("a form must be an object type".into()) };
    // What a form may say about itself is closed; descriptions of the type are for Rust readers.
    root.retain(|keyword, _| matches!(keyword.as_str(), "type" | "properties" | "required"));
    root.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
        for property in properties.values_mut() {
            *property = primitive(property.take());
        }
    }
    check(&schema)?;
    Ok(schema)
}

/// A property without `null`, its one-value variants gathered into an `enum` or, where they are described, a titled
/// choice.
fn primitive(property: Value) -> Value {
    let Value::Object(mut property) = property else { return property };
    // Option<T>: ["string", "null"], or anyOf [T, null].
    if let Some(Value::Array(types)) = property.get("type") {
        let mut rest = types.iter().filter(|t| *t != "null");
        if let (Some(one), None) = (rest.next().cloned(), rest.next()) {
            property.insert("type".into(), one);
        }
    }
    if let Some(Value::Array(variants)) = property.get("anyOf") {
        let mut rest = variants.iter().filter(|v| v.get("type").is_none_or(|t| t != "null"));
        if let (Some(Value::Object(one)), None) = (rest.next().cloned(), rest.next()) {
            property.remove("anyOf");
            // What the field says wins over what its type says.
            for (keyword, value) in one {
                property.entry(keyword).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(values)) = property.get_mut("enum") {
        values.retain(|value| !value.is_null());
    }
    if property.get("default").is_some_and(Value::is_null) {
        property.remove("default");
    }
    if property.get("format").and_then(Value::as_str).is_some_and(|f| !FORMATS.contains(&f)) {
        property.remove("format");
    }
    choices(&mut property);
    if let Some(Value::Object(items)) = property.get_mut("items") {
        choices(items);
        // Several of a titled choice are `anyOf`, and the items have no type (SEP-1330).
        if let Some(titled) = items.remove("oneOf") {
            *items = Map::from_iter([("anyOf".to_owned(), titled)]);
        }
    }
    Value::Object(property)
}

const FORMATS: [&str; 4] = ["email", "uri", "date", "date-time"];

/// Documented variants of an enum come as `oneOf` of constants; a form calls their descriptions titles.
fn choices(property: &mut Map<String, Value>) {
    let Some(Value::Array(variants)) = property.get_mut("oneOf") else { return };
    let mut gathered = Vec::new();
    for variant in variants.iter_mut() {
        let Some(variant) = variant.as_object_mut() else { return };
        let describe = variant.remove("description").or_else(|| variant.remove("title"));
        if let Some(value) = variant.remove("const") {
            let title = describe.unwrap_or_else(|| value.clone());
            gathered.push(json!({"const": value, "title": title}));
        } else if let Some(Value::Array(values)) = variant.remove("enum") {
            gathered.extend(values.into_iter().map(|value| json!({"const": value, "title": value})));
        } else {
            return;
        }
    }
    property.insert("type".into(), "string".into());
    property.insert("oneOf".into(), Value::Array(gathered));
}

/// Whether a schema is one that forms may have; the sentence is for the author.
pub(super) fn check(schema: &Value) -> Result<(), String> {
    if schema.get("type").and_then(Value::as_str) != Some("object") {
        return Err("the schema of a form must be of type \"object\"".into());
    }
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else {
        return Err("the schema of a form needs \"properties\"".into());
    };
    for (name, property) in properties {
        if !is_primitive(property) {
            return Err(format!(
                "the field {name:?} is not a string, number, boolean or choice: forms are flat"
            ));
        }
    }
    Ok(())
}

fn is_primitive(property: &Value) -> bool {
    match property.get("type").and_then(Value::as_str) {
        Some("string" | "number" | "integer" | "boolean") => property.get("properties").is_none(),
        // Several of a choice.
        Some("array") => property.get("items").is_some_and(|items| {
            items.get("enum").is_some_and(Value::is_array) || items.get("anyOf").is_some_and(Value::is_array)
        }),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use schemars::JsonSchema;
    use serde::Deserialize;

    use super::*;
    use crate::tool::schema::form_of;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    enum Colour {
        Red,
        Green,
    }

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    enum Size {
        /// Fits in a pocket.
        Small,
        /// Does not.
        Large,
    }

    /// Not for the form.
    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Order {
        /// Who orders.
        name: String,
        count: u8,
        note: Option<String>,
        /// The colour.
        colour: Option<Colour>,
        size: Size,
        #[serde(default)]
        gift: bool,
        #[schemars(length(min = 1))]
        sizes: Vec<Size>,
    }

    #[test]
    fn types_become_forms() {
        assert_eq!(
            flatten(form_of::<Order>()).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "Who orders."},
                    "count": {"type": "integer", "minimum": 0, "maximum": 255},
                    "note": {"type": "string"},
                    "colour": {"type": "string", "enum": ["Red", "Green"], "description": "The colour."},
                    "size": {"type": "string", "oneOf": [
                        {"const": "Small", "title": "Fits in a pocket."},
                        {"const": "Large", "title": "Does not."},
                    ]},
                    "gift": {"type": "boolean", "default": false},
                    "sizes": {"type": "array", "minItems": 1, "items": {"anyOf": [
                        {"const": "Small", "title": "Fits in a pocket."},
                        {"const": "Large", "title": "Does not."},
                    ]}},
                },
                "required": ["name", "count", "size", "sizes"],
            })
        );
    }

    #[test]
    fn what_is_not_flat_is_refused() {
        #[derive(Deserialize, JsonSchema)]
        #[allow(dead_code)]
        struct Nested {
            order: Order,
        }
        assert!(flatten(form_of::<Nested>()).unwrap_err().contains("\"order\""));
        assert!(flatten(form_of::<String>()).is_err());
        assert!(check(&json!({"type": "object", "properties": {"l": {"type": "array", "items": {"type": "string"}}}})).is_err());
    }
}
