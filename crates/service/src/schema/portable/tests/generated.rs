//! Schemas that nobody would write, against values that reach into their corners.

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use super::check;
use crate::schema::Schema;

/// Names of members, few so that they meet.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![Just("a".to_owned()), Just("b".to_owned()), Just("c".to_owned())]
}

/// Values without parts, few so that they meet.
fn plain() -> impl Strategy<Value = Value> {
    let values = [
        json!(null),
        json!(true),
        json!(0),
        json!(1),
        json!(1.0),
        json!(1.5),
        json!(""),
        json!("x"),
        json!("yy"),
    ];
    prop::sample::select(values.to_vec())
}

fn value() -> impl Strategy<Value = Value> {
    plain().prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::Array),
            btree_map(name(), inner, 0..3).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn kind() -> impl Strategy<Value = Value> {
    let kinds = ["null", "boolean", "integer", "number", "string", "array", "object"].map(|kind| json!(kind));
    prop_oneof![
        prop::sample::select(kinds.to_vec()),
        prop::sample::subsequence(kinds.to_vec(), 1..4).prop_shuffle().prop_map(Value::Array),
    ]
}

/// A schema of one keyword without parts.
fn simple() -> impl Strategy<Value = Value> {
    prop_oneof![
        3 => kind().prop_map(|kind| json!({"type": kind})),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => plain().prop_map(|value| json!({"const": value})),
        1 => vec(plain(), 1..4).prop_map(|values| json!({"enum": values})),
        1 => prop::sample::select(vec!["uint", "double", "email", "int32"]).prop_map(|format| json!({"format": format})),
        1 => prop::sample::select(vec!["#/$defs/D0", "#/$defs/D1", "#/$defs/D2", "#"]).prop_map(|to| json!({"$ref": to})),
        1 => (0..3_u8).prop_map(|n| json!({"minLength": n})),
        1 => (0..2_u8).prop_map(|n| json!({"minimum": n})),
        1 => (0..3_u8).prop_map(|n| json!({"maxItems": n})),
        1 => vec(name(), 0..3).prop_map(|names| json!({"required": names.into_iter().collect::<std::collections::BTreeSet<_>>()})),
        1 => plain().prop_map(|value| json!({"default": value, "description": "d"})),
    ]
}

fn schema() -> impl Strategy<Value = Value> {
    simple().prop_recursive(4, 24, 3, |inner| {
        let members = || btree_map(name(), inner.clone(), 0..3).prop_map(|all| all.into_iter().collect::<Map<_, _>>());
        let list = || vec(inner.clone(), 1..4);
        let one = |keywords: &'static [&'static str]| {
            (prop::sample::select(keywords), inner.clone()).prop_map(|(keyword, schema)| json!({keyword: schema}))
        };
        let fragment = prop_oneof![
            3 => simple(),
            3 => members().prop_map(|members| json!({"properties": members})),
            1 => prop::sample::select(&["patternProperties", "dependentSchemas"][..])
                .prop_flat_map(move |keyword| simple().prop_map(move |schema| json!({keyword: {"a": schema}}))),
            3 => (prop::sample::select(&["anyOf", "oneOf", "allOf", "prefixItems"][..]), list())
                .prop_map(|(keyword, list)| json!({keyword: list})),
            4 => one(&["items", "not", "contains", "additionalProperties", "propertyNames", "unevaluatedProperties",
                "unevaluatedItems"]),
            1 => (inner.clone(), inner.clone(), inner.clone())
                .prop_map(|(a, b, c)| json!({"if": a, "then": b, "else": c})),
            1 => (inner.clone(), 0..3_u8).prop_map(|(a, n)| json!({"contains": a, "minContains": 0, "maxContains": n})),
        ];
        // Several keywords in one schema, so that they get into each other's way.
        vec(fragment, 1..4).prop_map(|fragments| {
            let mut whole = Map::new();
            for fragment in &fragments {
                match fragment {
                    Value::Object(members) => whole.extend(members.clone()),
                    other => return other.clone(),
                }
            }
            Value::Object(whole)
        })
    })
}

/// The schema of some arguments.
fn arguments() -> impl Strategy<Value = Value> {
    let required = prop::sample::subsequence(vec!["a", "b"], 0..=2);
    ([schema(), schema()], [schema(), schema(), schema()], required).prop_map(
        |([a, b], [d0, d1, d2], required)| {
            json!({"type": "object", "properties": {"a": a, "b": b}, "required": required,
               "$defs": {"D0": d0, "D1": d1, "D2": d2}})
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn listed_schemas_are_never_wider(schema in arguments(), values in vec((value(), value()), 40)) {
        // What refers to itself in place, and so on.
        prop_assume!(Schema::compile(&schema).is_ok());
        let values: Vec<Value> = values
            .into_iter()
            .flat_map(|(a, b)| [json!({"a": a, "b": b}), json!({"a": a}), json!({"b": b})])
            .chain([json!({})])
            .collect();
        check(&schema, &values);
    }
}
