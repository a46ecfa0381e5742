//! Schemas of a few kilobytes that ask for 10^12 checks.

use serde_json::{Map, Value, json};

use crate::rig::Gateway;

/// `allOf` of two references to the next level, `levels` times: 2^levels checks for any value.
fn bomb(levels: usize) -> Value {
    let mut defs = Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
        defs.insert(format!("d{level}"), json!({"allOf": [next, next]}));
    }
    defs.insert(format!("d{levels}"), json!({"type": "object"}));
    json!({"type": "object", "$ref": "#/$defs/d0", "$defs": defs})
}

#[test]
fn an_agent_with_a_schema_that_unfolds_is_refused() {
    let mut gateway = Gateway::memory();
    assert!(bomb(40).to_string().len() < 4_000);
    let agent = json!({"agent_name": "bomb", "description": "d", "output_schema": bomb(40)});
    let refused = gateway.call("create_agent", agent).to_string();
    assert!(refused.contains("unfold"), "{refused}");
    gateway.answers_others();
    assert!(gateway.peak() < 200, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}

#[test]
fn a_server_with_a_schema_that_unfolds_is_not_checked_with_it() {
    let server = r#"while read -r line; do
        id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
        case "$line" in
            *initialize*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}' ;;
            *tools/list*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"tools":[{"name":"t","inputSchema":{"type":"object"},"outputSchema":'"$SCHEMA"'}]}}' ;;
            *tools/call*) echo '{"jsonrpc":"2.0","id":'$id',"result":{"content":[],"structuredContent":{}}}' ;;
            *'"id"'*) echo '{"jsonrpc":"2.0","id":'$id',"error":{"code":-32601,"message":"no"}}' ;;
        esac
    done"#;
    let schema = format!("SCHEMA={}", bomb(40));
    let mut call = std::process::Command::new(env!("CARGO_BIN_EXE_tidegate"));
    call.args(["call", "--validate", "t", "--env", &schema, "--", "sh", "-c", server]);
    let ended = call.output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert!(!ended.status.success() && said.contains("unfold"), "{said}");
}
