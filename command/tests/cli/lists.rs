//! tools, resources, prompts, discover, read, prompt: on both eras and both transports.

use serde_json::Value;
use tidegate_service::schema::obstacles;

use crate::rig::{CANNED, Folder, TIDEGATE, demo, tidegate, tidegate_in};
use crate::server;

const ERAS: [&str; 2] = ["legacy", "modern"];

#[test]
fn tools_are_a_table() {
    for era in ERAS {
        assert_eq!(
            demo(&["tools"], era).exits(0).out,
            "NAME   PARAMETERS  DESCRIPTION\n\
             echo   message     Says back what it is told\n\
             add    a b         Adds two numbers\n\
             count  to          Counts slowly and tells how far it is\n\
             greet              Asks for a name, then greets\n"
        );
        let json = demo(&["tools", "--json"], era).exits(0).json();
        assert_eq!(json["tools"][1]["name"], "add");
    }
}

#[test]
fn one_tool_with_its_schemas() {
    let shown = demo(&["tools", "add"], "both").exits(0).out;
    assert!(
        shown.starts_with("add  Add\n    Adds two numbers\n    a  number, required  The first number.\n"),
        "{shown}"
    );
    assert!(shown.contains("\nInput schema\n{\n") && shown.contains("\nOutput schema\n{\n"), "{shown}");
    let json = demo(&["tools", "add", "--json"], "both").exits(0).json();
    assert_eq!(json["name"], "add");
}

#[test]
fn resources_and_prompts() {
    for era in ERAS {
        assert_eq!(
            demo(&["resources"], era).exits(0).out,
            "URI           TYPE        NAME\ndemo://about  text/plain  About this server\n"
        );
        let json = demo(&["resources", "--json"], era).exits(0).json();
        assert_eq!(json["resources"][0]["uri"], "demo://about");
        assert_eq!(json["resourceTemplates"], serde_json::json!([]));
        assert_eq!(
            demo(&["prompts"], era).exits(0).out,
            "explain\n    Asks for an explanation of a topic\n    topic  required  What to explain\n"
        );
        assert_eq!(demo(&["prompts", "--json"], era).exits(0).json()["prompts"][0]["name"], "explain");
    }
}

#[test]
fn a_resource_goes_into_a_pipe_as_it_is() {
    assert_eq!(
        demo(&["read", "demo://about"], "both").exits(0).out,
        "This is the demonstration server of Tidegate."
    );
    let json = demo(&["read", "demo://about", "--json"], "both").exits(0).json();
    assert_eq!(json["contents"][0]["mimeType"], "text/plain");
    let folder = Folder::new();
    let save = crate::rig::with_demo(&["read", "demo://about", "--save", "."], "both");
    assert!(tidegate_in(&folder, &save, "").exits(0).err.contains("saved ./about.txt"));
    assert_eq!(folder.read("about.txt"), "This is the demonstration server of Tidegate.");
}

#[test]
fn a_prompt_is_filled_in() {
    for era in ERAS {
        assert_eq!(
            demo(&["prompt", "explain", "topic=tides"], era).exits(0).out,
            "Asks for an explanation of a topic\n\nuser:\nExplain tides in plain words.\n"
        );
    }
    let json = demo(&["prompt", "explain", "topic=tides", "--json"], "both").exits(0).json();
    assert_eq!(json["messages"][0]["role"], "user");
    let missing = demo(&["prompt", "explain"], "both").exits(2);
    assert_eq!(missing.err, "error: missing arguments: topic (string). Add topic=…\n");
}

#[test]
fn discover_says_what_the_server_is() {
    for (era, revision) in [("legacy", "2025-11-25"), ("modern", "2026-07-28")] {
        let shown = demo(&["discover"], era).exits(0).out;
        assert!(shown.starts_with("Server        tidegate "), "{shown}");
        assert!(shown.contains(&format!("\nEra           {era}\nVersion       {revision}\n")), "{shown}");
        assert!(shown.contains("\nTransport     stdio\nCapabilities  "), "{shown}");
        assert!(shown.contains("\nInstructions\n  A small server"), "{shown}");
        let json = demo(&["discover", "--json"], era).exits(0).json();
        assert_eq!((&json["era"], &json["transport"]), (&era.into(), &"stdio".into()));
        assert_eq!(json["serverInfo"]["name"], "tidegate");
    }
    let offered = demo(&["discover", "--json", "--protocol-version", "2025-03-26"], "both").exits(0).json();
    assert_eq!(offered["revision"], "2025-03-26");
}

#[test]
fn the_same_over_http() {
    let (url, _) = server::start();
    for era in ERAS {
        let json = tidegate(&["discover", &url, "--era", era, "--json"]).exits(0).json();
        assert_eq!((&json["era"], &json["transport"]), (&era.into(), &"http".into()));
        assert_eq!(
            tidegate(&["call", &url, "picture", "--era", era]).exits(0).out,
            "Here it is\n[image image/png, 8 bytes]\n"
        );
    }
    let none = tidegate(&["resources", &url]).exits(0);
    assert_eq!((&*none.out, &*none.err), ("(no resources)\n", "note: the server has no resources\n"));
}

#[test]
fn servers_are_found_in_files() {
    let folder = Folder::new();
    let file = |name: &str| {
        format!(
            r#"{{"mcpServers": {{"{name}": {{"command": "{TIDEGATE}", "args": ["serve", "--demo", "--stdio"]}}}}}}"#
        )
    };
    // The user's own: this directory is their home.
    folder.write(".cursor/mcp.json", &file("tides"));
    folder.write("other.json", &file("solo"));
    let expected = "{\"sum\":3.0}\n";
    for target in [
        &["tides"][..],
        &["other.json"],
        &["other.json#solo"],
        &["solo", "--config", "other.json"],
        &[&format!("{TIDEGATE} serve --demo --stdio")],
    ] {
        let mut args = vec!["call", target[0], "add", "a=1", "b=2"];
        args.extend(&target[1..]);
        assert_eq!(tidegate_in(&folder, &args, "").exits(0).out, expected, "{target:?}");
    }
    assert_eq!(
        tidegate_in(&folder, &["tools", "--config", "other.json"], "").exits(0).out.lines().count(),
        5
    );
    let near = tidegate_in(&folder, &["tools", "tidez"], "").exits(2).err;
    assert!(near.contains("did you mean \"tides\""), "{near}");
}

#[test]
fn completions_for_shells() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(tidegate(&["completions", shell]).exits(0).out.contains("doctor"), "{shell}");
    }
}

#[test]
fn schemas_are_listed_as_every_framework_reads_them() {
    let folder = Folder::new();
    folder.write("server.sh", CANNED);
    let odd = r#"{"name":"odd","inputSchema":{"type":"object","properties":{"a":{"type":["string","null"]},"b":true}}}"#;
    let listed = |schemas: &str| {
        let server = format!("command = \"sh\"\nargs = [\"server.sh\"]\nenv = {{ TOOLS = '''[{odd}]''' }}");
        let file = format!(
            "state_dir = false\n[tools]\n{schemas}\n[memory]\ntools = \"all\"\nstore = \"memory.db\"\n\
             [servers.memory]\nbuiltin = \"memory\"\n[servers.odd]\nprefix = \"\"\n{server}\n"
        );
        folder.write("tidegate.toml", &file);
        let done =
            tidegate_in(&folder, &["tools", "--json", "--", TIDEGATE, "serve", "--stdio"], "").exits(0);
        done.json()["tools"].as_array().unwrap().clone()
    };
    let input =
        |tools: &[Value]| tools.iter().find(|tool| tool["name"] == "odd").unwrap()["inputSchema"].clone();
    let exact = listed("");
    assert_eq!(input(&exact), serde_json::from_str::<Value>(odd).unwrap()["inputSchema"]);
    // The memory needs no setting.
    let memory: Vec<_> = exact.iter().filter(|tool| tool["name"] != "odd").collect();
    assert!(memory.len() > 30, "{}", memory.len());
    for tool in memory {
        assert_eq!(obstacles(&tool["inputSchema"]), [], "{tool}");
    }
    let portable = listed("schemas = \"portable\"");
    assert_eq!(input(&portable)["properties"]["a"], serde_json::json!({"type": "string"}));
    assert_eq!(obstacles(&input(&portable)), []);
    let others =
        |tools: &[Value]| tools.iter().filter(|tool| tool["name"] != "odd").cloned().collect::<Vec<_>>();
    assert_eq!(others(&portable), others(&exact));
}
