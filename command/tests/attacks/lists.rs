//! Servers whose lists are far too large.

use serde_json::json;

use crate::http;
use crate::rig::{Gateway, until};

/// A legacy server in Python that lists page after page of `kind`, each entry made by `entry` (a Python expression of `n`).
fn lister(kind: &str, pages: usize, entries: usize, entry: &str) -> String {
    let (method, member) = match kind {
        "tools" => ("tools/list", "tools"),
        _ => ("resources/templates/list", "resourceTemplates"),
    };
    let program = format!(
        r#"
import json, sys
def say(id, result): print(json.dumps({{"jsonrpc": "2.0", "id": id, "result": result}}), flush=True)
for line in sys.stdin:
    m = json.loads(line)
    if "id" not in m: continue
    if m["method"] == "initialize":
        say(m["id"], {{"protocolVersion": "2025-11-25", "capabilities": {{"tools": {{}}, "resources": {{}}}}, "serverInfo": {{"name": "fat", "version": "1"}}}})
    elif m["method"] == "{method}":
        page = int(m.get("params", {{}}).get("cursor", "0"))
        result = {{"{member}": [({entry}) for n in range(page * {entries}, (page + 1) * {entries})]}}
        if page + 1 < {pages}: result["nextCursor"] = str(page + 1)
        say(m["id"], result)
    elif m["method"] in ("tools/list", "resources/list", "resources/templates/list"):
        say(m["id"], {{"tools": [], "resources": [], "resourceTemplates": []}})
    elif m["method"] == "ping":
        say(m["id"], {{}})
    else:
        print(json.dumps({{"jsonrpc": "2.0", "id": m["id"], "error": {{"code": -32601, "message": "no"}}}}), flush=True)
"#
    );
    program
}

fn served(program: &str) -> Gateway {
    let config = "state_dir = false\n[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n\
                  [servers.fat]\ncommand = [\"python3\", \"fat.py\"]\ncwd = \".\"\n";
    let program = program.to_owned();
    Gateway::start_with(config, move |command| {
        let folder = command.get_current_dir().unwrap().to_owned();
        std::fs::write(folder.join("fat.py"), program).unwrap();
    })
}

#[test]
fn a_server_with_gigabytes_of_tools_takes_nobody_else_down() {
    let entry = r#"{"name": f"t{n}", "description": "x" * 1000000, "inputSchema": {"type": "object"}}"#;
    let mut gateway = served(&lister("tools", 900, 2, entry));
    until("the list is refused", || gateway.log().contains("too large"));
    gateway.answers_others();
    let kept = gateway
        .call("create_entities", json!({"entities": [{"name": "a", "entityType": "b", "observations": []}]}));
    assert!(kept["result"]["isError"] != json!(true), "{kept}");
    assert!(gateway.peak() < 300, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}

#[test]
fn templates_with_very_many_expressions_cost_little() {
    let entry = r#"{"uriTemplate": f"x{n}://" + ("{a%d}" % n) * 200, "name": f"t{n}"} if n else {"uriTemplate": "bomb://" + "{a}" * 300000, "name": "bomb"}"#;
    let mut gateway = served(&lister("templates", 2, 1000, entry));
    let read = |uri: &str| {
        let body = http::modern(1, "resources/read", json!({"uri": uri}));
        let headers =
            [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "resources/read"), ("Mcp-Name", uri)];
        gateway.post(&headers, &body).json()
    };
    until("the templates are known", || gateway.log().contains("ignored an invalid resource template"));
    for n in 0..50 {
        assert!(read(&format!("bomb://{}", "y".repeat(2_000)))["error"].is_object());
        assert!(read(&format!("x{n}://{}", "y".repeat(2_000))).is_object());
    }
    gateway.answers_others();
    assert!(gateway.peak() < 250, "{} MiB", gateway.peak());
    gateway.ends_cleanly();
}
