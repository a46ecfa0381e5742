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
    assert!(what(0).contains("no server or program is named"), "{json}");
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
    // It may have come with somebody else's repository: nothing of it is started.
    let json = tidegate_in(&folder, &["doctor", "--json"], "").exits(1).json();
    let names = |json: &serde_json::Value| -> Vec<String> {
        json["servers"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&json)[..3], ["good", "off", "unset"], "{json}");
    assert!(names(&json)[3].contains("mcp.json"), "{json}");
    for server in &json["servers"].as_array().unwrap()[..3] {
        assert_eq!((&server["checked"], &server["connectMs"]), (&false.into(), &serde_json::Value::Null));
    }
    // Whoever names the file means it.
    let json = tidegate_in(&folder, &["doctor", "--json", "--config", ".mcp.json"], "").exits(1).json();
    assert_eq!(names(&json), ["good", "unset"], "{json}");
    assert!(json["servers"][0]["connectMs"].as_f64().is_some(), "{json}");
}

#[test]
fn a_file_of_this_directory_starts_nothing_by_itself() {
    let folder = Folder::new();
    let entry = r#"{"command": "sh", "args": ["-c", "touch started; exit 1"]}"#;
    let text = format!(r#"{{"mcpServers": {{"evil": {entry}}}}}"#);
    for file in [".mcp.json", ".vscode/mcp.json", ".zed/settings.json"] {
        folder.write(
            file,
            &text.replace("mcpServers", if file.contains("zed") { "context_servers" } else { "mcpServers" }),
        );
    }
    let shown = tidegate_in(&folder, &["doctor"], "").exits(0).out;
    assert!(
        shown.contains("- evil  (from ./.mcp.json)\n    · not checked: the file belongs to this directory"),
        "{shown}"
    );
    assert!(shown.contains("→ if you trust it, run tidegate doctor ./.mcp.json#evil"), "{shown}");
    assert!(shown.ends_with("3 servers: 0 work, 3 not checked\n"), "{shown}");
    for command in ["tools", "doctor", "discover", "login"] {
        let done = tidegate_in(&folder, &[command, "evil"], "y\n");
        let said = done.out + &done.err;
        assert!(
            said.contains("\"evil\" is defined in ./.mcp.json, a file of this directory"),
            "{command}: {said}"
        );
        assert!(said.contains("name the file as well: ./.mcp.json#evil"), "{command}: {said}");
    }
    // Nor does it stand in for a server of the user's own, which this directory has as well because it is their home.
    let own = format!(r#"{{"command": "{TIDEGATE}", "args": ["serve", "--demo", "--stdio"]}}"#);
    folder.write(".cursor/mcp.json", &format!(r#"{{"mcpServers": {{"evil": {own}}}}}"#));
    assert!(tidegate_in(&folder, &["tools", "evil"], "").exits(0).out.contains("echo"));
    assert!(!folder.path().join("started").exists());
    tidegate_in(&folder, &["tools", "./.mcp.json#evil"], "").exits(3);
    assert!(folder.path().join("started").exists());
}

#[test]
fn what_the_gateway_serves_needs_nothing_in_between() {
    let folder = Folder::new();
    let text = format!(
        "[servers.old]\ncommand = [\"{TIDEGATE}\", \"serve\", \"--demo\", \"--stdio\", \"--era\", \"legacy\"]\n"
    );
    folder.write("tidegate.toml", &text);
    let shown = tidegate_in(&folder, &["doctor"], "").exits(0).out;
    assert!(!shown.contains("in between") && shown.ends_with("1 server: 1 works\n"), "{shown}");
}

#[test]
fn secrets_are_masked_for_programs_too() {
    let folder = Folder::new();
    folder.write(
        "tidegate.toml",
        "[servers.a]\ncommand = [\"sh\", \"-c\", \"echo cannot use $KEY >&2; exit 1\"]\nenv = { KEY = \"${THE_KEY}\" }\n",
    );
    folder.write(".env", "THE_KEY=sk-very-secret-0001\n");
    for args in
        [&["doctor", "--json"][..], &["check", "--connect", "--json"], &["doctor"], &["tools", "--json", "a"]]
    {
        let done = tidegate_in(&folder, args, "");
        let said = format!("{}{}", done.out, done.err);
        assert!(!said.contains("sk-very-secret") && said.contains("cannot use ***"), "{args:?}: {said}");
    }
}

#[test]
fn a_program_that_ends_at_once_is_started_once() {
    let folder = Folder::new();
    let script =
        "echo start >> starts; for n in 1 2 3 4 5 6 7 8 9 10 11 12 13 14; do echo line $n >&2; done; exit 1";
    for args in [&["add", "broken", "--", "sh", "-c", script][..], &["check", "--connect"], &["doctor"]] {
        let _ = std::fs::remove_file(folder.path().join("starts"));
        let done = tidegate_in(&folder, args, "");
        let said = format!("{}{}", done.out, done.err);
        assert_eq!(folder.read("starts"), "start\n", "{args:?}: {said}");
        assert!(said.contains("… (earlier lines are not shown)"), "{args:?}: {said}");
        for line in ["line 14\n", "line 4\n"] {
            assert_eq!(said.matches(&format!(" {line}")).count(), 1, "{args:?} {line:?}: {said}");
        }
    }
}
