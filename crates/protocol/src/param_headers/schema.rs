//! Finding the marks of a schema, and refusing those that the specification forbids.
//!
//! 2026-07-28 streamable-http, Schema Extension.

use serde_json::{Map, Value};

use super::HeaderParam;
use crate::headers::PARAM_PREFIX;

pub(super) const MARK: &str = "x-mcp-header";

/// Collects the marks below `schema`, which stands at `path` and is reached by `properties` only.
pub(super) fn walk(
    schema: &Map<String, Value>,
    path: &mut Vec<String>,
    found: &mut Vec<HeaderParam>,
) -> Result<(), String> {
    for (keyword, value) in schema {
        match (keyword.as_str(), value) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    let Value::Object(property) = property else { continue };
                    path.push(name.clone());
                    if let Some(mark) = property.get(MARK) {
                        found.push(read_mark(mark, property, path, found)?);
                    }
                    walk(property, path, found)?;
                    path.pop();
                }
            }
            (MARK, _) => {}
            _ => refuse_below(keyword, keyword, value, path)?,
        }
    }
    Ok(())
}

fn read_mark(
    mark: &Value,
    property: &Map<String, Value>,
    path: &[String],
    found: &[HeaderParam],
) -> Result<HeaderParam, String> {
    let at = path.join(".");
    let Value::String(mark) = mark else {
        return Err(format!("property {at:?}: {MARK} must be a string, not {mark}"));
    };
    if mark.is_empty() || !mark.bytes().all(is_token_byte) {
        return Err(format!(
            "property {at:?}: {MARK} {mark:?} is not a header name (letters, digits and !#$%&'*+-.^_`|~)"
        ));
    }
    if !is_primitive(property.get("type")) {
        return Err(format!("property {at:?}: {MARK} needs type string, integer or boolean"));
    }
    let header = format!("{PARAM_PREFIX}{}", mark.to_ascii_lowercase());
    if let Some(other) = found.iter().find(|p| p.header == header) {
        return Err(format!(
            "property {at:?}: {MARK} {mark:?} is taken by property {:?}",
            other.path.join(".")
        ));
    }
    Ok(HeaderParam { header, path: path.to_vec() })
}

/// One of the three types, alone or with `null` beside it, which is how optional parameters are often written.
fn is_primitive(kind: Option<&Value>) -> bool {
    let primitive = |v: &Value| matches!(v.as_str(), Some("string" | "integer" | "boolean"));
    match kind {
        Some(Value::Array(kinds)) => match kinds.as_slice() {
            [one] => primitive(one),
            [a, b] => (primitive(a) && b == "null") || (a == "null" && primitive(b)),
            _ => false,
        },
        Some(kind) => primitive(kind),
        None => false,
    }
}

/// A mark that is not reached by `properties` alone makes the whole definition invalid.
fn refuse_marks(via: &str, schema: &Value, path: &[String]) -> Result<(), String> {
    match schema {
        Value::Array(schemas) => schemas.iter().try_for_each(|schema| refuse_marks(via, schema, path)),
        Value::Object(schema) if schema.contains_key(MARK) => {
            let at =
                if path.is_empty() { "the root".into() } else { format!("property {:?}", path.join(".")) };
            Err(format!("{at}: {MARK} below {via:?} is not reachable by properties alone"))
        }
        Value::Object(schema) => {
            schema.iter().try_for_each(|(key, value)| refuse_below(key, via, value, path))
        }
        _ => Ok(()),
    }
}

fn refuse_below(keyword: &str, via: &str, value: &Value, path: &[String]) -> Result<(), String> {
    match (keyword, value) {
        // Data, not schemas.
        ("enum" | "const" | "default" | "examples" | "required" | "dependentRequired", _) => Ok(()),
        // Keys are names that the author chose, and may be called like a keyword.
        (
            "properties" | "patternProperties" | "dependentSchemas" | "$defs" | "definitions",
            Value::Object(named),
        ) => named.values().try_for_each(|schema| refuse_marks(via, schema, path)),
        _ => refuse_marks(via, value, path),
    }
}

/// RFC 9110 section 5.6.2: `tchar`.
fn is_token_byte(b: u8) -> bool {
    b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::param_headers::HeaderParams;

    fn properties(properties: Value) -> Result<HeaderParams, String> {
        HeaderParams::from_schema(&json!({"type": "object", "properties": properties}))
    }

    #[test]
    fn marks_are_found_by_properties_chains() {
        let params = properties(json!({
            "region": {"type": "string", "x-mcp-header": "Region"},
            "limit": {"type": ["integer", "null"], "x-mcp-header": "LIMIT"},
            "where": {"type": "object", "properties": {"dry": {"type": "boolean", "x-mcp-header": "X-Dry"}}},
            "x-mcp-header": {"type": "string"},
        }))
        .unwrap();
        // Whether maps keep their order depends on the features that serde_json was built with.
        let mut names: Vec<_> = params.names().collect();
        names.sort_unstable();
        assert_eq!(names, ["mcp-param-limit", "mcp-param-region", "mcp-param-x-dry"]);
        for none in [json!({}), json!(true), json!({"type": "object", "default": {"x-mcp-header": "data"}})] {
            assert!(HeaderParams::from_schema(&none).unwrap().is_empty(), "{none}");
        }
    }

    #[test]
    fn bad_marks_are_refused_by_name() {
        let one = |schema: Value| properties(json!({"p": schema}));
        for (result, sentence) in [
            (
                one(json!({"type": "string", "x-mcp-header": ""})),
                "property \"p\": x-mcp-header \"\" is not a header name",
            ),
            (one(json!({"type": "string", "x-mcp-header": "My Region"})), "is not a header name"),
            (one(json!({"type": "string", "x-mcp-header": "Region:Primary"})), "is not a header name"),
            (one(json!({"type": "string", "x-mcp-header": "Région"})), "is not a header name"),
            (one(json!({"type": "string", "x-mcp-header": "Region\t1"})), "is not a header name"),
            (one(json!({"type": "string", "x-mcp-header": 7})), "must be a string"),
            (one(json!({"type": "number", "x-mcp-header": "N"})), "needs type string, integer or boolean"),
            (one(json!({"type": "object", "x-mcp-header": "N"})), "needs type"),
            (one(json!({"type": "array", "x-mcp-header": "N"})), "needs type"),
            (one(json!({"type": "null", "x-mcp-header": "N"})), "needs type"),
            (one(json!({"type": ["string", "integer"], "x-mcp-header": "N"})), "needs type"),
            (one(json!({"x-mcp-header": "N"})), "needs type"),
            (one(json!({"$ref": "#/$defs/x", "x-mcp-header": "N"})), "needs type"),
            (
                one(json!({"type": "array", "items": {"type": "string", "x-mcp-header": "N"}})),
                "property \"p\": x-mcp-header below \"items\" is not reachable",
            ),
            (
                one(json!({"anyOf": [{"properties": {"q": {"type": "string", "x-mcp-header": "N"}}}]})),
                "property \"p\": x-mcp-header below \"anyOf\" is not reachable",
            ),
            (
                HeaderParams::from_schema(&json!({"$defs": {"d": {"type": "string", "x-mcp-header": "N"}}})),
                "the root: x-mcp-header below \"$defs\" is not reachable",
            ),
            (HeaderParams::from_schema(&json!({"x-mcp-header": "N"})), "at the root"),
            (
                properties(json!({
                    "a": {"type": "string", "x-mcp-header": "MyField"},
                    "b": {"type": "string", "x-mcp-header": "myfield"},
                })),
                "property \"b\": x-mcp-header \"myfield\" is taken by property \"a\"",
            ),
        ] {
            let error = result.unwrap_err();
            assert!(error.contains(sentence), "{error:?} lacks {sentence:?}");
        }
    }
}
