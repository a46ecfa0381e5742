//! What is listed of a tool's arguments, in words that every client understands, and what is taken.

mod common;

use std::collections::BTreeMap;

use common::Client;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tidegate_server::{Cx, Server, ServerDoor, Tool};

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Find {
    /// What to look for.
    text: String,
    limit: Option<u8>,
    #[serde(default = "five")]
    pages: u32,
    order: Option<Order>,
    #[serde(default)]
    wanted: Vec<Wanted>,
    anything: Option<Value>,
    list: Option<Vec<Value>>,
    labels: Option<BTreeMap<String, Value>>,
    tree: Option<Box<Tree>>,
    #[schemars(extend("x-mcp-header" = "Region"))]
    region: Option<String>,
}

fn five() -> u32 {
    5
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Order {
    Up,
    Down,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
#[allow(dead_code)]
enum Wanted {
    Word { text: Option<String> },
    Near { to: i64, within: Option<f64> },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[allow(dead_code)]
struct Tree {
    name: Option<String>,
    #[serde(default)]
    parts: Vec<Tree>,
}

fn find() -> ServerDoor {
    let tool = Tool::new("find").handler(|args: Find, _cx: Cx| async move { format!("{args:?}") });
    Server::new("s", "1").tool(tool).build()
}

#[tokio::test]
async fn types_are_listed_in_words_that_everybody_knows() {
    let any = json!([
        {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        {"type": "array", "items": {"anyOf": [
            {"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"},
        ]}},
    ]);
    let tag = |kind: &str| json!({"type": "string", "const": kind});
    assert_eq!(
        Client::modern(&find()).request("tools/list", json!({})).await["tools"][0]["inputSchema"],
        json!({
            "type": "object",
            "properties": {
                "text": {"type": "string", "description": "What to look for."},
                "limit": {"type": "integer", "minimum": 0, "maximum": 255},
                "pages": {"type": "integer", "minimum": 0, "default": 5},
                "order": {"type": "string", "enum": ["up", "down"]},
                "wanted": {"type": "array", "items": {"type": "object", "anyOf": [
                    {"type": "object", "properties": {"kind": tag("word"), "text": {"type": "string"}}, "required": ["kind"]},
                    {
                        "type": "object",
                        "properties": {"kind": tag("near"), "to": {"type": "integer"}, "within": {"type": "number"}},
                        "required": ["kind", "to"],
                    },
                ]}},
                "anything": {"anyOf": any},
                "list": {"type": "array", "items": {"anyOf": any}},
                "labels": {"type": "object"},
                "tree": {"$ref": "#/$defs/Tree"},
                "region": {"type": "string", "x-mcp-header": "Region"},
            },
            "required": ["text"],
            "additionalProperties": false,
            "$defs": {"Tree": {"type": "object", "properties": {
                "name": {"type": "string"},
                "parts": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            }}},
        })
    );
}

#[tokio::test]
async fn a_null_counts_as_left_out_at_any_depth() {
    let door = find();
    let client = Client::modern(&door);
    let nothing = client.tool_text("find", json!({"text": "x"})).await;
    assert!(nothing.contains("limit: None, pages: 5"), "{nothing}");
    let nulls = json!({
        "text": "x", "limit": null, "pages": null, "order": null, "wanted": null, "anything": null, "list": null,
        "labels": null, "tree": null, "region": null,
    });
    assert_eq!(client.tool_text("find", nulls).await, nothing);

    let inside = json!({
        "text": "x", "wanted": [{"kind": "near", "to": 1, "within": null}],
        "tree": {"name": null, "parts": [{"name": "leaf", "parts": null}]},
        "labels": {"kept": null},
    });
    let told = client.tool_text("find", inside).await;
    assert!(told.contains("Near { to: 1, within: None }"), "{told}");
    assert!(
        told.contains(r#"Tree { name: None, parts: [Tree { name: Some("leaf"), parts: [] }] }"#),
        "{told}"
    );
    assert!(told.contains(r#"labels: Some({"kept": Null})"#), "{told}");
    // What must be there must be there.
    let refused = client.tool("find", json!({"text": null})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    let refused = client.tool("find", json!({"text": "x", "wanted": [{"kind": "near", "to": null}]})).await;
    assert_eq!(refused["isError"], true, "{refused}");
    // Leaving an argument out and its header too is the same.
    let headers = client.clone().headers(&[]);
    assert_eq!(headers.tool_text("find", json!({"text": "x", "region": null})).await, nothing);
}

#[tokio::test]
async fn what_is_checked_is_the_type_and_not_what_is_listed() {
    let door = find();
    let told = Client::modern(&door).tool_text("find", json!({"text": "x", "list": [null, [[1]]]})).await;
    assert!(told.contains("list: Some([Null, Array [Array [Number(1)]]])"), "{told}");
}

#[tokio::test]
async fn written_schemas_stay_as_they_are() {
    let schema = json!({"type": "object", "properties": {"text": {"type": ["string", "null"], "format": "uint"}, "x": true}});
    let echo = |args: Value, _cx: Cx| async move { args.to_string() };
    for tool in [
        Tool::raw("t", schema.clone()).handler_raw(echo),
        Tool::new("t").input_schema(schema.clone()).handler(|_: BTreeMap<String, Value>, _cx: Cx| async {}),
        Tool::new("t").handler(|_: BTreeMap<String, Value>, _cx: Cx| async {}).input_schema(schema.clone()),
    ] {
        let door = Server::new("s", "1").tool(tool).build();
        let listed = Client::modern(&door).request("tools/list", json!({})).await;
        assert_eq!(listed["tools"][0]["inputSchema"], schema);
    }
    let door = Server::new("s", "1").tool(Tool::raw("t", schema).handler_raw(echo)).build();
    assert_eq!(Client::modern(&door).tool_text("t", json!({"text": null})).await, r#"{"text":null}"#);
}
