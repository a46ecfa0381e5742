//! `tools.schemas`: how the arguments of other people's tools are listed.

use std::sync::Arc;

use serde_json::{Value, json};
use tidegate_config::{PinMode, SchemaStyle};
use tidegate_gateway::{Gateway, ServerSettings};
use tidegate_protocol::Method;
use tidegate_service::ParamHeaders;

use crate::rig::{legacy, modern, scripted, settings, started};

/// One tool with everything that some frameworks cannot read, spelled as no writer of ours would. It says its arguments.
const ODD: &str = r##"{"name":"odd", "inputSchema":{"type":"object", "properties":{"text":{"type":["string","null"]},"any":true,"list":{"type":"array","items":true}, "size":{"$ref":"#/$defs/Size"},"region":{"x-mcp-header":"Region","type":["string","null"]}},"required":[], "additionalProperties":false,"$defs":{"Size":{"type":"integer","format":"uint"}}}, "outputSchema":{"type":"object","properties":{"said":{"type":["string","null"]},"n":{"format":"uint","type":"integer"}}},"x": 1.0}"##;
/// One that everybody can read.
const PLAIN: &str =
    r#"{"name":"plain", "inputSchema":{"type":"object", "properties":{"text":{"type":"string"}},"x": 1.0}}"#;

fn odd() -> ServerSettings {
    let mut server = scripted("s", |call| match &call.method {
        Method::ToolsList => Some(format!(
            r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"public","tools":[{ODD},{PLAIN}]}}"#
        )),
        Method::ToolsCall => {
            let said = json!(call.params.get("arguments").unwrap_or("none"));
            Some(json!({"resultType": "complete", "content": [{"type": "text", "text": said}], "structuredContent": {"said": said}}).to_string())
        }
        _ => None,
    });
    server.prefix = String::new();
    server
}

async fn listing(schemas: SchemaStyle) -> Gateway {
    let mut settings = settings([odd()]);
    settings.tools.schemas = schemas;
    started(settings).await
}

fn portable() -> Value {
    json!({
        "type": "object",
        "properties": {
            "text": {"type": "string"},
            "any": tidegate_service::schema::portable(&json!({"properties": {"any": true}}))["properties"]["any"],
            "list": tidegate_service::schema::portable(&json!({"properties": {"l": {"type": "array"}}}))["properties"]["l"],
            "size": {"type": "integer"},
            "region": {"type": "string", "x-mcp-header": "Region"},
        },
        "required": [],
        "additionalProperties": false,
    })
}

#[tokio::test]
async fn they_are_listed_as_they_came_unless_others_are_wanted() {
    let exact = listing(SchemaStyle::Exact).await;
    let rewritten = listing(SchemaStyle::Portable).await;
    let (odd, plain): (Value, Value) = (ODD.parse().unwrap(), PLAIN.parse().unwrap());
    for caller in [modern(), legacy()] {
        assert_eq!(caller.get(&exact, "tools/list", json!({})).await["tools"], json!([odd, plain]));
        let mut wanted = odd.clone();
        wanted["inputSchema"] = portable();
        assert_eq!(caller.get(&rewritten, "tools/list", json!({})).await["tools"], json!([wanted, plain]));
    }
    // What need not be rewritten is not touched.
    let tidegate_service::Reply::Complete(list) = modern().ask(&rewritten, "tools/list", json!({})).await
    else {
        panic!("no list");
    };
    assert!(list.as_str().contains(PLAIN), "{list}");
}

#[tokio::test]
async fn arguments_reach_the_server_as_they_were_sent() {
    let gateway = listing(SchemaStyle::Portable).await;
    let arguments = json!({"text": null, "any": [[null]], "unheard-of": 1});
    let said = modern().get(&gateway, "tools/call", json!({"name": "odd", "arguments": arguments})).await;
    let said: Value = said["content"][0]["text"].as_str().unwrap().parse().unwrap();
    assert_eq!(said, arguments);
}

#[tokio::test]
async fn headers_are_held_to_the_servers_own_schema() {
    let gateway = listing(SchemaStyle::Portable).await;
    let call = async |headers: &[(&str, &str)], region: Value| {
        let mut caller = modern();
        let headers = headers.iter().map(|(name, value)| ((*name).into(), value.as_bytes().to_vec()));
        caller.0.param_headers = Some(Arc::new(ParamHeaders(headers.collect())));
        let params = json!({"name": "odd", "arguments": {"region": region}});
        matches!(caller.ask(&gateway, "tools/call", params).await, tidegate_service::Reply::Complete(_))
    };
    assert!(call(&[("mcp-param-region", "eu")], json!("eu")).await);
    assert!(call(&[], json!(null)).await);
    assert!(!call(&[("mcp-param-region", "us")], json!("eu")).await);
    assert!(!call(&[], json!("eu")).await);
}

#[tokio::test]
async fn pins_are_over_what_the_server_says() {
    let folder = tempfile::tempdir().unwrap();
    let lock = folder.path().join("tidegate.lock");
    let pinned = async |schemas, pin| {
        let mut settings = settings([odd()]);
        settings.tools.schemas = schemas;
        settings.tools.pin = pin;
        settings.tools.lock_file = lock.clone();
        started(settings).await
    };
    let first = pinned(SchemaStyle::Portable, PinMode::FirstUse).await;
    crate::rig::until("the pins", async || {
        std::fs::read_to_string(&lock).is_ok_and(|text| text.contains("plain"))
    })
    .await;
    assert!(std::fs::read_to_string(&lock).unwrap().contains("Size"), "what is pinned is the original");
    drop(first);
    for schemas in [SchemaStyle::Exact, SchemaStyle::Portable] {
        let gateway = pinned(schemas, PinMode::Locked).await;
        assert_eq!(modern().list(&gateway, "tools/list").await, ["odd", "plain"], "{schemas:?}");
    }
}
