//! Which keywords hold subschemas, and which say nothing about values.

use serde_json::{Map, Value};

/// What a keyword holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Holds {
    /// One schema; `items` may also hold a list of them.
    One,
    /// A list of schemas.
    List,
    /// Schemas by names that the author chose.
    Named,
    /// No schema.
    Data,
}

/// What a keyword holds.
pub(super) fn holds(keyword: &str) -> Holds {
    match keyword {
        "items"
        | "additionalItems"
        | "contains"
        | "additionalProperties"
        | "propertyNames"
        | "unevaluatedItems"
        | "unevaluatedProperties"
        | "not"
        | "if"
        | "then"
        | "else" => Holds::One,
        "anyOf" | "oneOf" | "allOf" | "prefixItems" => Holds::List,
        "properties" | "patternProperties" | "dependentSchemas" | "dependencies" | "$defs"
        | "definitions" => Holds::Named,
        _ => Holds::Data,
    }
}

/// Every subschema of a schema with the keyword and, where it has one, the name that it stands under.
pub(super) fn subschemas(schema: &Map<String, Value>) -> impl Iterator<Item = (&str, Option<&str>, &Value)> {
    let is_schema = |value: &Value| value.is_object() || value.is_boolean();
    schema.iter().flat_map(move |(keyword, value)| {
        let found: Vec<(&str, Option<&str>, &Value)> = match (holds(keyword), value) {
            (Holds::Named, Value::Object(named)) => {
                named.iter().map(|(name, schema)| (keyword.as_str(), Some(name.as_str()), schema)).collect()
            }
            (Holds::List | Holds::One, Value::Array(list)) => {
                list.iter().map(|schema| (keyword.as_str(), None, schema)).collect()
            }
            (Holds::One, schema) => vec![(keyword.as_str(), None, schema)],
            _ => Vec::new(),
        };
        found.into_iter().filter(move |(_, _, schema)| is_schema(schema))
    })
}

/// Whether a keyword only tells people something.
pub(super) fn is_annotation(keyword: &str) -> bool {
    const KNOWN: [&str; 12] = [
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
        "$schema",
        "$id",
        "$defs",
        "definitions",
    ];
    KNOWN.contains(&keyword) || keyword.starts_with("x-")
}

/// The type of values that a keyword says something about; `None` if about all, or nothing.
pub(super) fn kind_of(keyword: &str) -> Option<&'static str> {
    Some(match keyword {
        "minLength" | "maxLength" | "pattern" | "format" | "contentEncoding" | "contentMediaType" => "string",
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => "number",
        "items" | "prefixItems" | "additionalItems" | "minItems" | "maxItems" | "uniqueItems"
        | "contains" | "minContains" | "maxContains" => "array",
        "properties"
        | "patternProperties"
        | "additionalProperties"
        | "required"
        | "minProperties"
        | "maxProperties"
        | "propertyNames"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies" => "object",
        _ => return None,
    })
}

/// The type of a value, as schemas name it.
pub(super) fn type_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

/// Whether a schema takes `null` and nothing else.
pub(super) fn is_null_only(schema: &Value) -> bool {
    let null = |value: &Value| value.is_null();
    schema.get("const").is_some_and(null)
        || schema
            .get("enum")
            .and_then(Value::as_array)
            .is_some_and(|all| !all.is_empty() && all.iter().all(null))
        || match schema.get("type") {
            Some(Value::String(kind)) => kind == "null",
            Some(Value::Array(kinds)) => !kinds.is_empty() && kinds.iter().all(|kind| kind == "null"),
            _ => false,
        }
}
