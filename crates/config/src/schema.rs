//! The JSON Schema of a `tidegate.toml`, which editors complete and explain fields by. It is made from the structs in
//! [`written`](crate::written) and kept in `docs/tidegate.schema.json`.

use schemars::generate::SchemaSettings;
use serde_json::{Value, json};
use tidegate_builtin::{Builtin, Builtins};

use crate::written::File;

/// Where editors find the schema.
pub(crate) const ADDRESS: &str =
    "https://raw.githubusercontent.com/tidegate/tidegate/main/docs/tidegate.schema.json";

/// The JSON Schema of a `tidegate.toml` for a program that has these servers.
pub fn schema(builtins: &Builtins) -> Value {
    // The newest draft that the TOML extensions of today's editors know.
    let mut generator = SchemaSettings::draft07().into_generator();
    let of_builtin = |builtin: &Builtin| (*builtin, builtin.schema(&mut generator).to_value());
    let sections: Vec<(Builtin, Value)> = builtins.iter().map(of_builtin).collect();
    let mut schema = generator.into_root_schema_for::<File>().to_value();
    for (builtin, section) in sections {
        // Draft 7 ignores whatever stands beside a reference, descriptions included.
        schema["properties"][builtin.name()] =
            json!({"description": builtin.description(), "allOf": [section]});
    }
    without_null(&mut schema);
    schema["$id"] = ADDRESS.into();
    schema["properties"]["servers"]["propertyNames"] = json!({"pattern": "^[A-Za-z0-9._-]{1,64}$"});
    schema["properties"]["endpoints"]["propertyNames"] = json!({"pattern": "^[a-z0-9-]{1,64}$"});
    schema
}

/// TOML has no null: what is optional is left out.
fn without_null(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(without_null),
        Value::Object(members) => {
            if let Some(Value::Array(types)) = members.get_mut("type") {
                types.retain(|kind| kind != "null");
                if let [only] = types.as_slice() {
                    let only = only.clone();
                    members.insert("type".to_owned(), only);
                }
            }
            if let Some(Value::Array(choices)) = members.get_mut("anyOf") {
                choices.retain(|choice| choice != &json!({"type": "null"}));
                if let [Value::Object(only)] = choices.as_slice() {
                    let only = only.clone();
                    members.remove("anyOf");
                    // Draft 7 ignores whatever stands beside a reference, descriptions included.
                    if only.contains_key("$ref") {
                        members.insert("allOf".to_owned(), json!([only]));
                    } else {
                        members.extend(only);
                    }
                }
            }
            // Defaults are told in words: what is made here is only the absence of a value.
            members.remove("default");
            for (keyword, value) in members {
                match value {
                    // A field may be called like a keyword.
                    Value::Object(fields) if keyword == "properties" => {
                        fields.values_mut().for_each(without_null);
                    }
                    value => without_null(value),
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn schema() -> Value {
        super::schema(&Builtins::new([tidegate_demo::builtin(), tidegate_memory::builtin()]))
    }

    /// `UPDATE=1 cargo test -p tidegate-config schema` writes the file.
    #[test]
    fn the_file_in_docs_is_up_to_date() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tidegate.schema.json");
        let text = serde_json::to_string_pretty(&schema()).unwrap() + "\n";
        if std::env::var_os("UPDATE").is_some() {
            std::fs::write(&path, &text).unwrap();
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        // As values: in which order fields are written depends on what else is built.
        let kept: Value = serde_json::from_str(&kept).unwrap_or_default();
        assert!(
            kept == schema(),
            "docs/tidegate.schema.json is old: run UPDATE=1 cargo test -p tidegate-config schema"
        );
    }

    #[test]
    fn every_field_is_described() {
        fn check(at: &str, schema: &Value) {
            for (name, field) in schema["properties"].as_object().into_iter().flatten() {
                assert!(field["description"].is_string(), "{at}.{name} has no description");
                assert!(!field.to_string().contains("null"), "{at}.{name} may be null");
            }
            for (name, definition) in schema["definitions"].as_object().into_iter().flatten() {
                check(name, definition);
            }
        }
        check("", &schema());
        assert_eq!(schema()["additionalProperties"], false);
    }

    #[test]
    fn it_knows_good_from_bad() {
        let validator = jsonschema::validator_for(&schema()).unwrap();
        for (file, good) in [
            (json!({}), true),
            (json!({"servers": {"a": {"command": "x", "breaker": false, "max_message": "1MiB"}}}), true),
            (
                json!({"servers": {"a": {"command": ["x", "y"], "breaker": {"failures": 3}, "max_message": 5}}}),
                true,
            ),
            (json!({"state_dir": false, "defaults": {"era": "legacy"}, "tools": {"pin": "first-use"}}), true),
            (json!({"servers": {"a b": {"command": "x"}}}), false),
            (json!({"servers": {"a": {"command": "x", "tiemout": "5s"}}}), false),
            (json!({"servers": {"a": {"command": "x", "breaker": {"failure": 3}}}}), false),
            (json!({"tools": {"mode": "some"}}), false),
            (json!({"defaults": {"url": "https://example.com"}}), false),
            (json!({"listen": null}), false),
        ] {
            assert_eq!(validator.is_valid(&file), good, "{file}");
        }
    }
}
