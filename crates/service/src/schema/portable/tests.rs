//! Never wider, the same when done twice, and without anything that readers stumble over.

mod examples;
mod generated;

use serde_json::Value;

use super::keywords::subschemas;
use super::{is_size, portable, restated};
use crate::schema::Schema;

/// Whether a value fits a schema.
fn fits(schema: &Schema, value: &Value) -> bool {
    schema.first_problem(value).expect("small enough").is_none()
}

/// What must be true of every schema that is listed, whatever it is made from.
#[track_caller]
fn check(original: &Value, values: &[Value]) -> Value {
    let listed = portable(original);
    assert_eq!(portable(&listed), listed, "twice is not once: {original}");
    no_leftovers(original, &listed);
    let wide = Schema::compile(original).unwrap_or_else(|e| panic!("{original}: {e}"));
    let narrow = Schema::compile(&listed).unwrap_or_else(|e| panic!("{original}\n{listed}: {e}"));
    for value in values {
        assert!(!fits(&narrow, value) || fits(&wide, value), "wider: {value}\n{original}\n{listed}");
    }
    let restated = restated(original);
    no_leftovers(original, &restated);
    let same = Schema::compile(&restated).unwrap_or_else(|e| panic!("{original}\n{restated}: {e}"));
    for value in values {
        assert_eq!(fits(&same, value), fits(&wide, value), "not the same: {value}\n{original}\n{restated}");
    }
    listed
}

/// No boolean schemas, no lists of types and no formats of generators.
#[track_caller]
fn no_leftovers(original: &Value, listed: &Value) {
    let Value::Object(members) = listed else { panic!("{original}\n{listed}") };
    assert!(members.get("type").is_none_or(Value::is_string), "types: {original}\n{listed}");
    assert!(!is_size(members.get("format")), "format: {original}\n{listed}");
    for (keyword, _, inner) in subschemas(members) {
        let closed = keyword == "additionalProperties" && *inner == Value::Bool(false);
        if !closed {
            no_leftovers(original, inner);
        }
    }
}
