//! Schemas of tools: made from Rust types or taken as written, compiled once, checked on every call.

use std::sync::Arc;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};
use tidegate_service::schema::{Fit, Schema, TooMuchWork, remove_sizes, restated};

use super::problem::{Problem, TOLD, describe, shorten};

/// How many problems of one value are looked at to choose those from that are told.
const LOOKED_AT: usize = 50;

/// The schema for values that `T` is read from.
pub(crate) fn input_of<T: JsonSchema>() -> Value {
    plain(SchemaSettings::draft2020_12().for_deserialize(), T::schema_name().as_ref(), |generator| {
        generator.into_root_schema_for::<T>()
    })
}

/// The schema of the values that `T` is written to.
pub(crate) fn output_of<T: JsonSchema>() -> Value {
    restated(&plain(SchemaSettings::draft2020_12().for_serialize(), T::schema_name().as_ref(), |generator| {
        generator.into_root_schema_for::<T>()
    }))
}

/// The schema for a form: everything inline, as forms are flat.
pub(crate) fn form_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_deserialize().with(|s| s.inline_subschemas = true);
    plain(settings, T::schema_name().as_ref(), |generator| generator.into_root_schema_for::<T>())
}

fn plain(
    settings: SchemaSettings,
    type_name: &str,
    make: impl FnOnce(schemars::SchemaGenerator) -> schemars::Schema,
) -> Value {
    let settings = settings.with(|s| s.meta_schema = None);
    let mut schema = make(settings.into_generator()).to_value();
    // The name of the Rust type says nothing to a model. A title that the author chose stays.
    if let Value::Object(root) = &mut schema
        && root.get("title").and_then(Value::as_str) == Some(type_name)
    {
        root.remove("title");
    }
    remove_sizes(&mut schema);
    spell_out(&mut schema);
    schema
}

/// Turns `true` into `{}` where a property stands: 2025-11-25 and earlier want objects there.
fn spell_out(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            for (keyword, value) in map.iter_mut() {
                match (keyword.as_str(), &mut *value) {
                    ("enum" | "const" | "default" | "examples", _) => {}
                    ("properties" | "$defs", Value::Object(named)) => {
                        for schema in named.values_mut() {
                            if *schema == Value::Bool(true) {
                                *schema = json!({});
                            }
                            spell_out(schema);
                        }
                    }
                    _ => spell_out(value),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(spell_out),
        _ => {}
    }
}

/// The schema of a tool without arguments.
pub(crate) fn no_arguments() -> Value {
    json!({"type": "object", "properties": {}, "additionalProperties": false})
}

/// A compiled schema.
#[derive(Debug)]
pub(crate) struct Compiled(Arc<Schema>);

impl Compiled {
    /// Compiles a schema. References are resolved inside it only: nothing is ever fetched.
    pub(crate) fn new(schema: &Value) -> Result<Compiled, String> {
        known_dialect(schema)?;
        let compiled = Schema::compile(schema).map(Arc::new);
        compiled.map(Compiled).map_err(|e| format!("the schema is not valid: {}", shorten(e.to_string())))
    }

    /// Whether checking `value` takes so little that a caller's own thread may do it.
    pub(crate) fn is_short(&self, value: &Value) -> bool {
        self.0.is_short(value)
    }

    /// What is wrong with `value`, at most [`TOLD`] things; nothing if it is valid.
    pub(crate) fn problems(&self, value: &Value) -> Vec<Problem> {
        told(self.0.check(value, gather))
    }

    /// The same for a value that may take long: found out away from the threads that everybody waits for. The value
    /// comes back if nothing is wrong.
    pub(crate) async fn problems_apart(&self, value: Value) -> Result<Value, Vec<Problem>> {
        match self.0.check_apart(value, gather).await {
            Ok((value, Fit::Fits)) => Ok(value),
            Ok((_, fit)) => Err(told(Ok(fit))),
            Err(error) => Err(told(Err(error))),
        }
    }
}

fn gather(errors: &mut dyn Iterator<Item = jsonschema::ValidationError<'_>>) -> Vec<Problem> {
    let mut problems = Vec::new();
    for error in errors.take(LOOKED_AT) {
        describe(&error, &mut problems);
    }
    // The validator's order depends on how it compiled the schema; the caller's should not.
    problems.sort_by(|a, b| a.field.cmp(&b.field));
    problems.truncate(TOLD);
    problems
}

fn told(fit: Result<Fit<Vec<Problem>>, TooMuchWork>) -> Vec<Problem> {
    let whole = |reason: String| vec![Problem { field: String::new(), reason }];
    match fit {
        Ok(Fit::Fits) => Vec::new(),
        Ok(Fit::Problems(problems)) => problems,
        Ok(Fit::Misfits) => whole("does not fit the schema, and is too large for saying where".to_owned()),
        Err(error) => whole(format!("is {error}")),
    }
}

/// 2026-07-28 server/tools: 2020-12 unless `$schema` says otherwise; a dialect that is not supported is an error.
fn known_dialect(schema: &Value) -> Result<(), String> {
    const KNOWN: [&str; 5] = [
        "json-schema.org/draft/2020-12/schema",
        "json-schema.org/draft/2019-09/schema",
        "json-schema.org/draft-07/schema",
        "json-schema.org/draft-06/schema",
        "json-schema.org/draft-04/schema",
    ];
    match schema.get("$schema").map(|dialect| dialect.as_str().unwrap_or_default()) {
        None => Ok(()),
        Some(dialect) => {
            let name =
                dialect.trim_start_matches("https://").trim_start_matches("http://").trim_end_matches('#');
            if KNOWN.contains(&name) {
                Ok(())
            } else {
                Err(format!("the dialect {dialect:?} is not supported"))
            }
        }
    }
}

/// Makes sure that the root of an input schema is of type object, as the protocol demands.
pub(crate) fn object_root(schema: &mut Value) -> Result<(), String> {
    if *schema == Value::Bool(true) {
        *schema = json!({});
    }
    let Value::Object(root) = schema else {
        return Err("the input schema must be a JSON object".into());
    };
    match root.get("type") {
        Some(Value::String(kind)) if kind == "object" => Ok(()),
        Some(other) => Err(format!("the input schema must be of type \"object\", not {other}")),
        None => {
            let mut typed = Map::new();
            typed.insert("type".into(), "object".into());
            typed.append(root);
            *root = typed;
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Add {
        /// The first number.
        a: f64,
        b: Option<i32>,
        anything: Value,
    }

    #[test]
    fn schemas_are_plain() {
        assert_eq!(
            input_of::<Add>(),
            json!({
                "type": "object",
                "properties": {
                    "a": {"type": "number", "description": "The first number."},
                    "b": {"type": ["integer", "null"]},
                    "anything": {},
                },
                "required": ["a", "anything"],
            })
        );
    }

    #[test]
    fn problems_name_field_and_reason() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"type": "number"}, "o": {"type": "object", "required": ["p"]}, "l": {"items": {"type": "string"}}},
            "required": ["a", "b"],
            "additionalProperties": false,
        });
        let compiled = Compiled::new(&schema).unwrap();
        let told =
            |value: Value| compiled.problems(&value).iter().map(Problem::to_string).collect::<Vec<_>>();
        assert_eq!(told(json!({"a": "x"})), ["a: \"x\" is not of type \"number\"", "b is required"]);
        assert_eq!(told(json!({"a": 1, "b": 2})), ["b is not a known field"]);
        assert!(told(json!({"a": 1, "b": 1, "o": {}})).contains(&"o.p is required".to_owned()));
        assert!(
            told(json!({"a": 1, "b": 1, "l": ["x", 2]}))
                .contains(&"l[1]: 2 is not of type \"string\"".to_owned())
        );
        let long = told(json!({"a": "x".repeat(10_000), "b": 1}));
        assert!(long.iter().all(|p| p.len() < 300), "{long:?}");
    }

    #[test]
    fn bad_schemas_are_refused() {
        for (schema, sentence) in [
            (json!({"$schema": "https://example.com/mine"}), "dialect"),
            (json!({"type": "nonsense"}), "not valid"),
            (json!({"$ref": "https://example.com/schema.json"}), "not valid"),
            ((0..100).fold(json!({}), |inner, _| json!({"not": inner})), "levels deep"),
        ] {
            let error = Compiled::new(&schema).unwrap_err();
            assert!(error.contains(sentence), "{error}");
        }
        for dialect in
            ["https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"]
        {
            Compiled::new(&json!({"$schema": dialect, "type": "object"})).unwrap();
        }
    }
}
