//! doctor: what it finds, how it says so, and its exit code.

use crate::rig::{Folder, TIDEGATE, demo, tidegate, tidegate_in, with_canned};
use crate::server;

#[test]
fn a_good_server_is_fine() {
    let json = demo(&["doctor", "--json"], "both").exits(0).json();
    let server = &json["servers"][0];
    assert_eq!((&json["ok"], &server["ok"], &server["bothEras"]), (&true.into(), &true.into(), &true.into()));
    assert_eq!(
        (&server["tools"], &server["resources"], &server["prompts"]),
        (&4.into(), &1.into(), &1.into())
    );
    assert_eq!((&server["era"], &server["transport"]), (&"modern".into(), &"stdio".into()));
    assert!(server["connectMs"].as_f64().is_some() && server["pingMs"].as_f64().is_some(), "{server}");
    assert_eq!(server["findings"], serde_json::json!([]));
    let shown = demo(&["doctor"], "both").exits(0).out;
    assert!(
        shown.starts_with("✓ tidegate  ") && shown.contains("2026-07-28 (both eras) over stdio\n"),
        "{shown}"
    );
}

#[test]
fn it_says_which_clients_could_not_use_it() {
    let shown = demo(&["doctor"], "legacy").exits(0).out;
    assert!(
        shown.contains("· does not support 2026-07-28") && shown.contains("→ put Tidegate in between"),
        "{shown}"
    );
    let shown = demo(&["doctor"], "modern").exits(0).out;
    assert!(shown.contains("! supports only 2026-07-28"), "{shown}");
}

#[test]
fn faults_of_tools_are_found() {
    let tools = r#"[
        {"name": "twice", "description": "d", "inputSchema": {"type": "object"}},
        {"name": "twice", "description": "d", "inputSchema": {"type": "object"}},
        {"name": "with space", "inputSchema": {"type": "array"}},
        {"description": "nameless", "inputSchema": {"type": "object", "properties": {"p": {"type": "nonsense"}}}},
        {"name": "bad", "description": "d", "inputSchema": {"type": "object", "properties": {"p": {"type": "nonsense"}}}},
        {"name": "far", "description": "d", "inputSchema": {"type": "object", "properties": {"p": {"$ref": "https://example.com/x"}}}}
    ]"#;
    let tools = tools.replace('\n', " ");
    let shown = tidegate(&with_canned(&["doctor"], &[("TOOLS", &tools)])).exits(1).out;
    for part in [
        "✗ sh  ",
        "✗ tool twice: is listed more than once",
        "! tool with space: the name contains \" \"",
        "! tool with space: has no description",
        "✗ tool with space: the input schema is not of type object",
        "✗ tool 4: has no name",
        "✗ tool bad: the input schema is not valid JSON Schema at /properties/p/type",
        "! tool far: the input schema refers to https://example.com/x, which clients never fetch",
        "→ give each tool a unique name",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
}

#[test]
fn what_frameworks_cannot_read_is_named_by_tool_and_construct() {
    let tools = r#"[
        {"name": "find", "description": "d", "inputSchema": {"type": "object", "properties": {
            "text": {"type": ["string", "null"]}, "more": {"type": "array", "items": true}, "any": {}}}},
        {"name": "bare", "description": "d", "inputSchema": {"type": "object"}},
        {"name": "fine", "description": "d", "inputSchema": {"type": "object", "properties": {
            "text": {"anyOf": [{"type": "string"}, {"type": "null"}]}}, "additionalProperties": false}}
    ]"#;
    let tools = tools.replace('\n', " ");
    let shown = tidegate(&with_canned(&["doctor"], &[("TOOLS", &tools)])).exits(0).out;
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in [
        "! tool find: a parameter has a list of types (text): AutoGen, DSPy and Semantic Kernel cannot load any tool",
        "! tool find: a schema inside a parameter is true or false (more[]): AutoGen and CrewAI cannot load",
        "! tool find: a parameter has no type (any): AutoGen cannot load",
        "! tool bare: the input schema has no properties: smolagents cannot load",
        "or put the server behind the gateway with tools.schemas = \"portable\"",
    ] {
        assert!(shown.contains(part), "{part:?} is not in:\n{shown}");
    }
    assert!(!shown.contains("tool fine"), "{shown}");
}

#[test]
fn a_list_that_never_ends_is_found() {
    let shown = tidegate(&with_canned(&["doctor"], &[("PAGE", "again")])).exits(1).out;
    assert!(shown.contains("✗ tools/list: the list never ends"), "{shown}");
    assert!(shown.contains("→ leave out nextCursor"), "{shown}");
}

#[test]
fn servers_that_cannot_be_reached_say_why() {
    let (url, _) = server::start();
    let silent = "sh -c 'sleep 600'";
    let dying = "sh -c 'echo first >&2; echo oops >&2; exit 7'";
    let args = [
        "doctor",
        "--json",
        "--timeout",
        "3s",
        "no-such-program",
        "http://127.0.0.1:1/",
        dying,
        silent,
        &url,
    ];
    let json = tidegate(&args).exits(1).json();
    let servers = json["servers"].as_array().unwrap();
    let what = |at: usize| servers[at]["findings"][0]["what"].as_str().unwrap_or_default();
    assert!(what(0).contains("no such program"), "{json}");
    assert!(what(1).contains("connection refused"), "{json}");
    assert!(what(2).contains("exited with status 7"), "{json}");
    assert_eq!(servers[2]["stderr"], serde_json::json!(["first", "oops"]));
    assert!(what(3).contains("did not answer within 3s"), "{json}");
    assert_eq!(servers[4]["ok"], true, "{json}");
}

#[test]
fn without_a_target_all_servers_of_known_files() {
    let folder = Folder::new();
    let good = format!(r#"{{"command": "{TIDEGATE}", "args": ["serve", "--demo", "--stdio"]}}"#);
    folder.write(
        ".mcp.json",
        &format!(
            r#"{{"mcpServers": {{"good": {good}, "off": {{"command": "x", "disabled": true}},
                "unset": {{"command": "x", "env": {{"K": "${{TIDEGATE_TEST_NOT_SET}}"}}}}}}}}"#
        ),
    );
    folder.write(".cursor/mcp.json", "{ not json");
    let json = tidegate_in(&folder, &["doctor", "--json"], "").exits(1).json();
    let names: Vec<_> =
        json["servers"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names.iter().filter(|name| **name == "good" || **name == "unset").count(), 2, "{json}");
    assert!(!names.contains(&"off") && names.iter().any(|name| name.contains("mcp.json")), "{json}");
}
