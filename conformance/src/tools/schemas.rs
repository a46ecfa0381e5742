//! Tools whose point is their input schema.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate::{Cx, Tool};

#[derive(Deserialize, JsonSchema)]
struct Query {
    /// The region to ask, also told in the header `Mcp-Param-Region`, so that routers need not read the body.
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: String,
}

pub(super) fn tools() -> Vec<Tool> {
    vec![
        Tool::raw("json_schema_2020_12_tool", json_schema_2020_12())
            .description("Tool with JSON Schema 2020-12 features")
            .handler_raw(|args: Value, _cx: Cx| async move {
                format!("JSON Schema 2020-12 tool called with: {args}")
            }),
        Tool::new("test_custom_header")
            .description("Takes a parameter that is mirrored in a header")
            .handler(|args: Query, _cx: Cx| async move { format!("Region: {}", args.region) }),
    ]
}

/// Keywords that a server must pass on and not only those that it happens to know (SEP-1613, SEP-2106).
fn json_schema_2020_12() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            },
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": false,
    })
}
