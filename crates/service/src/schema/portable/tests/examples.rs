//! Schemas as people and generators write them, and nasty ones.

use serde_json::{Value, json};

use super::super::portable;
use super::check;

/// A schema of arguments with one argument `a`.
fn optional(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}})
}

fn required(schema: Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}, "required": ["a"]})
}

fn any() -> Value {
    json!({"anyOf": [
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"anyOf": [
            {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        ]}},
    ]})
}

#[test]
fn optional_arguments_are_listed_without_null() {
    let text = json!({"type": "string", "description": "d"});
    for schema in [
        json!({"type": ["string", "null"], "description": "d"}),
        json!({"type": ["null", "string"], "description": "d", "default": null}),
        json!({"anyOf": [{"type": "string"}, {"type": "null"}], "description": "d"}),
        json!({"oneOf": [{"type": "string"}, {"type": "null"}], "description": "d"}),
        json!({"anyOf": [{"type": "string", "description": "inner"}, {"const": null}], "description": "d"}),
        json!({"anyOf": [{"anyOf": [{"type": "string"}, {"type": "null"}]}, {"enum": [null]}], "description": "d"}),
        json!({"allOf": [{"type": ["string", "null"]}], "description": "d"}),
    ] {
        assert_eq!(check(&optional(schema.clone()), &[]), optional(text.clone()), "{schema}");
    }
    assert_eq!(
        check(&optional(json!({"type": ["string", "null"], "enum": ["x", "y", null]})), &[]),
        optional(json!({"type": "string", "enum": ["x", "y"]}))
    );
    // At any depth.
    let inner = |kind: Value| {
        optional(json!({"type": "array", "items": {"type": "object", "properties": {"b": {"type": kind}}}}))
    };
    assert_eq!(check(&inner(json!(["integer", "null"])), &[]), inner(json!("integer")));
    // Where it is the only value, it stays.
    assert_eq!(check(&optional(json!({"type": "null"})), &[]), optional(json!({"type": "null"})));
}

#[test]
fn where_null_says_something_it_stays() {
    let both = json!({"anyOf": [{"type": "string", "minLength": 1}, {"type": "null"}]});
    for schema in [json!({"type": ["string", "null"], "minLength": 1}), both.clone()] {
        assert_eq!(check(&required(schema), &[json!({"a": null})]), required(both.clone()));
    }
    let list = |items: Value| optional(json!({"type": "array", "items": items}));
    assert_eq!(check(&list(json!({"type": ["string", "null"], "minLength": 1})), &[]), list(both));
}

#[test]
fn several_types_are_branches_with_what_is_said_of_each() {
    assert_eq!(
        check(
            &optional(json!({
                "type": ["string", "integer", "object", "null"], "minLength": 2, "minimum": 0, "maxItems": 3,
                "properties": {"x": {"type": "string"}}, "additionalProperties": false, "description": "d",
            })),
            &[json!({"a": "x"}), json!({"a": -1}), json!({"a": {"y": 1}})],
        ),
        optional(json!({
            "anyOf": [
                {"type": "string", "minLength": 2},
                {"type": "integer", "minimum": 0},
                {"type": "object", "properties": {"x": {"type": "string"}}, "additionalProperties": false},
            ],
            "description": "d",
        }))
    );
    assert_eq!(
        check(&optional(json!({"type": ["integer", "number"]})), &[]),
        optional(json!({"type": "number"}))
    );
    assert_eq!(
        check(
            &required(json!({"type": ["string", "integer"], "enum": ["x", 1, true]})),
            &[json!({"a": true})]
        ),
        required(json!({"anyOf": [{"type": "string", "enum": ["x"]}, {"type": "integer", "enum": [1]}]}))
    );
}

#[test]
fn anything_is_listed_with_the_types_that_there_are() {
    for schema in [json!(true), json!({}), json!({"anyOf": [true, {"type": "string"}]})] {
        assert_eq!(check(&optional(schema.clone()), &[]), optional(any()), "{schema}");
    }
    for items in [json!({"type": "array", "items": true}), json!({"type": "array"})] {
        assert_eq!(check(&optional(items), &[]), optional(json!({"type": "array", "items": any()})));
    }
    for open in [
        json!({"type": "object", "additionalProperties": true}),
        json!({"additionalProperties": {}, "type": "object"}),
    ] {
        assert_eq!(check(&optional(open), &[]), optional(json!({"type": "object"})));
    }
    let described = json!({"description": "d"});
    assert_eq!(check(&optional(described), &[])["properties"]["a"]["anyOf"], any()["anyOf"]);
}

#[test]
fn what_says_no_type_gets_the_one_that_it_is_about() {
    for (schema, kind) in [
        (json!({"minLength": 1}), "string"),
        (json!({"maximum": 1}), "number"),
        (json!({"properties": {"x": {"type": "string"}}}), "object"),
        (json!({"required": ["x"]}), "object"),
        (json!({"items": {"type": "string"}}), "array"),
        (json!({"const": 1}), "integer"),
        (json!({"enum": ["x", "y"]}), "string"),
        (json!({"anyOf": [{"const": "x"}, {"const": "y", "description": "d"}]}), "string"),
        (json!({"allOf": [{"type": "object"}, {"required": ["x"]}]}), "object"),
    ] {
        assert_eq!(check(&optional(schema.clone()), &[])["properties"]["a"]["type"], kind, "{schema}");
    }
    // The arguments are an object, and their names are looked for.
    assert_eq!(check(&json!({}), &[]), json!({"type": "object", "properties": {}}));
    let union = json!({"anyOf": [{"properties": {"x": {"type": "string"}}}, {"required": ["y"]}]});
    let listed = check(&union, &[]);
    assert_eq!(
        (&listed["type"], &listed["anyOf"][1]),
        (&json!("object"), &json!({"type": "object", "required": ["y"]}))
    );
}

#[test]
fn enums_with_data_are_any_of_with_the_type_that_all_share() {
    let tagged = json!({"oneOf": [
        {"type": "object", "properties": {"kind": {"type": "string", "const": "a"}, "x": {"type": ["string", "null"]}}, "required": ["kind"]},
        {"type": "object", "properties": {"kind": {"type": "string", "const": "b"}}, "required": ["kind"]},
    ]});
    let outer = json!({"oneOf": [
        {"type": "string", "enum": ["none"]},
        {"type": "object", "properties": {"some": {"type": "string"}}, "required": ["some"], "additionalProperties": false},
        {"type": "object", "properties": {"more": {"type": "string"}}, "required": ["more"], "additionalProperties": false},
    ]});
    let listed = &check(&optional(tagged), &[])["properties"]["a"];
    assert_eq!(listed["type"], "object");
    assert_eq!(listed["anyOf"][0]["properties"]["x"], json!({"type": "string"}));
    let listed = &check(&optional(outer.clone()), &[])["properties"]["a"];
    assert_eq!((listed.get("type"), &listed["anyOf"]), (None, &outer["oneOf"]));
    // A value that fits two branches fits no `oneOf`: `anyOf` would take it.
    let overlapping = json!({"oneOf": [
        {"type": "object", "properties": {"x": {"type": ["string", "null"]}}},
        {"type": "object", "properties": {"y": {"type": "string"}}},
    ]});
    let listed = check(
        &optional(overlapping),
        &[json!({"a": {}}), json!({"a": {"x": null}}), json!({"a": {"x": null, "y": 1}})],
    );
    assert!(listed["properties"]["a"].get("anyOf").is_none(), "{listed}");
}

#[test]
fn definitions_are_written_out_unless_they_contain_themselves() {
    let with = |a: Value, definitions: Value| json!({"type": "object", "properties": {"a": a}, "$defs": definitions});
    let small = with(
        json!({"anyOf": [{"$ref": "#/$defs/Size"}, {"type": "null"}], "description": "d"}),
        json!({"Size": {"type": "integer", "format": "uint8", "description": "a size"}, "Unused": true}),
    );
    assert_eq!(check(&small, &[]), optional(json!({"type": "integer", "description": "d"})));
    let beside =
        with(json!({"$ref": "#/$defs/S", "maxLength": 3}), json!({"S": {"type": "string", "minLength": 1}}));
    assert_eq!(check(&beside, &[json!({"a": "abcd"})])["properties"]["a"]["maxLength"], 3);

    let tree = with(
        json!({"anyOf": [{"$ref": "#/$defs/Tree"}, {"type": "null"}]}),
        json!({"Tree": {"type": "object", "properties": {
            "name": {"type": ["string", "null"]}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
        }}}),
    );
    assert_eq!(
        check(&tree, &[]),
        with(
            json!({"$ref": "#/$defs/Tree"}),
            json!({"Tree": {"type": "object", "properties": {
                "name": {"type": "string"}, "parts": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            }}}),
        )
    );
    // Arguments that contain themselves, from either end.
    let own = json!({"type": "object", "properties": {"part": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}}});
    assert_eq!(check(&own, &[])["properties"]["part"], json!({"$ref": "#"}));
    let named = json!({"$ref": "#/definitions/T", "definitions": {"T": {"type": "object", "properties": {"t": {"$ref": "#/definitions/T"}}}}});
    assert_eq!(check(&named, &[])["properties"]["t"], json!({"$ref": "#/$defs/T"}));
    // Into the middle of the schema, whose paths are others now.
    let middle = json!({"type": "object", "properties": {
        "a": {"anyOf": [{"type": "object", "properties": {"x": {"$ref": "#/properties/a/anyOf/0"}}}, {"type": "null"}]},
        "b": {"$ref": "#/properties/a/anyOf/1"},
    }});
    check(&middle, &[json!({"b": "x"}), json!({"a": {"x": 1}}), json!({"a": {"x": {"x": {}}}})]);
    // Large ones are written once.
    let many: Value = (0..120)
        .map(|n| (format!("p{n}"), json!({"type": ["string", "null"]})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let large = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/L"}, "b": {"$ref": "#/$defs/L"}},
        "$defs": {"L": {"type": "object", "properties": many}}});
    assert_eq!(check(&large, &[])["properties"]["b"], json!({"$ref": "#/$defs/L"}));
}

#[test]
fn below_not_nothing_becomes_narrower() {
    let values = [
        json!({"a": null}),
        json!({"a": "x"}),
        json!({"a": {"b": null}}),
        json!({"a": {"b": 1}}),
        json!({"a": [1]}),
        json!({}),
    ];
    for schema in [
        json!({"not": {"type": ["string", "null"]}}),
        json!({"not": {"type": "object", "properties": {"b": {"type": ["string", "null"]}}, "required": ["b"]}}),
        json!({"type": "object", "not": {"properties": {"b": true}, "required": ["b"]}}),
        json!({"if": {"type": ["null", "object"]}, "then": {"type": "object"}, "else": true}),
        json!({"not": {"$ref": "#/$defs/N"}}),
        json!({"not": {"items": true}}),
        json!({"contains": {"type": ["string", "null"]}, "maxContains": 0}),
        json!({"not": {}}),
        json!(false),
    ] {
        let original = json!({"type": "object", "properties": {"a": schema},
            "$defs": {"N": {"type": ["object", "null"], "properties": {"b": {"$ref": "#/$defs/N"}}}}});
        check(&original, &values);
    }
}

#[test]
fn booleans_become_words() {
    let values = [
        json!({"a": []}),
        json!({"a": [1]}),
        json!({"a": ["x", 1]}),
        json!({"a": ["x", 1, 2]}),
        json!({"a": {"x": 1}}),
        json!({"z": 1}),
    ];
    for (schema, kept) in [
        (
            json!({"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false}),
            ("maxItems", json!(2)),
        ),
        (json!({"type": "array", "items": false, "maxItems": 4}), ("maxItems", json!(0))),
        (
            json!({"type": "object", "properties": {"x": false}, "additionalProperties": false}),
            ("properties", json!({})),
        ),
        (json!({"type": "object", "unevaluatedProperties": false}), ("additionalProperties", json!(false))),
        (
            json!({"type": "object", "anyOf": [{"properties": {"x": {"type": "string"}}}], "unevaluatedProperties": false}),
            ("unevaluatedProperties", json!({"not": {}})),
        ),
    ] {
        let listed = check(&optional(schema.clone()), &values);
        assert_eq!(listed["properties"]["a"][kept.0], kept.1, "{schema}\n{listed}");
    }
    for schema in [
        json!({"properties": {"x": false}}),
        json!({"anyOf": [false]}),
        json!({"anyOf": [false, {"type": "array"}]}),
        json!({"allOf": [true, false]}),
        json!({"allOf": [true]}),
        json!({"oneOf": [true, {"type": "array"}]}),
        json!({"oneOf": [false, {"type": "array"}]}),
        json!({"propertyNames": false}),
        json!({"dependentSchemas": {"x": false, "y": true}}),
        json!({"patternProperties": {"^x": false}, "properties": {"x": false}, "additionalProperties": false}),
        json!({"type": "array", "unevaluatedItems": false, "prefixItems": [true]}),
        json!({"type": "array", "contains": true}),
        json!({"if": true, "then": false}),
    ] {
        check(&optional(schema), &values);
    }
    // As they were written before 2020-12.
    let old = |a: Value| json!({"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "properties": {"a": a}});
    for schema in [
        json!({"type": "array", "items": [{"type": "string"}, true], "additionalItems": false}),
        json!({"type": "array", "prefixItems": [true], "items": false}),
        json!({"type": "object", "dependencies": {"x": ["y"], "y": {"required": ["x"]}}}),
    ] {
        check(&old(schema), &values);
    }
}

#[test]
fn what_must_stay_stays() {
    let same = json!({
        "type": "object", "title": "T", "description": "d",
        "properties": {
            "region": {"type": "string", "x-mcp-header": "Region", "format": "uri", "default": "x"},
            "format": {"type": "object", "properties": {"type": {"type": "string", "enum": ["uint", "null"]}}},
            "choice": {"type": "object", "default": {"type": ["string", "null"]}, "examples": [true, null]},
        },
        "required": ["region"], "additionalProperties": false,
    });
    assert_eq!(check(&same, &[]), same);
    let marked = optional(json!({"type": ["string", "null"], "x-mcp-header": "A"}));
    assert_eq!(check(&marked, &[]), optional(json!({"type": "string", "x-mcp-header": "A"})));
}

#[test]
fn what_cannot_be_rewritten_comes_back_as_it_is() {
    let deep =
        (0..100).fold(json!({"type": ["string", "null"]}), |inner, _| json!({"properties": {"a": inner}}));
    let wide: Value =
        (0..20_000).map(|n| (n.to_string(), json!(true))).collect::<serde_json::Map<_, _>>().into();
    // Each level refers to the next twice.
    let mut levels = serde_json::Map::new();
    for n in 0..200 {
        let next = json!({"$ref": format!("#/$defs/d{}", n + 1)});
        levels.insert(format!("d{n}"), json!({"type": "object", "properties": {"a": next, "b": next}}));
    }
    levels.insert("d200".to_owned(), json!({"type": ["string", "null"]}));
    for schema in [
        json!(true),
        json!(7),
        deep,
        optional(json!({"$ref": "https://example.com/s.json"})),
        optional(json!({"$ref": "#/nowhere", "type": ["string", "null"]})),
        optional(json!({"$dynamicRef": "#x"})),
        optional(json!({"type": []})),
        optional(json!({"type": [7]})),
        json!({"$schema": "http://json-schema.org/draft-04/schema#", "properties": {"a": {"type": ["string", "null"]}}}),
        optional(json!({"anyOf": [{"type": "string", "x-mcp-header": "A"}, {"type": "null"}]})),
    ] {
        assert_eq!(portable(&schema), schema);
    }
    // A definition that is small, and used so often that it is not.
    let often: Value = (0..300)
        .map(|n| (n.to_string(), json!({"$ref": "#/$defs/D"})))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let often = json!({"type": "object", "properties": often, "$defs": {"D": {"type": "string", "description": "x".repeat(1000)}}});
    assert_eq!(check(&often, &[]), often);
    let open: Value =
        (0..2_000).map(|n| (n.to_string(), json!(true))).collect::<serde_json::Map<_, _>>().into();
    let open = json!({"type": "object", "properties": open});
    assert_eq!(portable(&open), open);
    // These only have to end.
    for schema in
        [json!({"type": "object", "properties": wide}), json!({"$ref": "#/$defs/d0", "$defs": levels})]
    {
        assert!(portable(&schema).to_string().len() <= 4 * schema.to_string().len() + 4096);
    }
}
