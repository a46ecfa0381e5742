//! Servers of tidegate.toml by their names, in every command that talks to a server.

use crate::rig::{CANNED, Done, Folder, TIDEGATE, tidegate_in};

const FILE: &str = "tidegate.toml";
const TOOLS: &str = r#"[{"name":"where","inputSchema":{"type":"object"}}]"#;

fn run(folder: &Folder, args: &[&str]) -> Done {
    tidegate_in(folder, args, "")
}

/// A configuration with a program that has settings, the demonstration server and the memory.
fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("elsewhere/canned.sh", CANNED);
    let text = format!(
        r#"
        [servers.time]
        command = ["sh", "canned.sh"]
        cwd = "elsewhere"
        env = {{ TOOLS = '{TOOLS}', RESULT = '{{"content":[{{"type":"text","text":"here"}}]}}' }}
        era = "legacy"
        [servers.tides]
        builtin = "demo"
        [servers.notes]
        builtin = "memory"
        [memory]
        store = "kept.db"
        "#
    );
    folder.write(FILE, &text);
    folder
}

#[test]
fn every_command_knows_the_servers_of_the_configuration() {
    let folder = folder();
    assert!(run(&folder, &["tools", "time"]).exits(0).out.contains("where"));
    assert_eq!(run(&folder, &["call", "time", "where"]).exits(0).out, "here\n");
    assert_eq!(run(&folder, &["call", "tides", "add", "a=1", "b=2"]).exits(0).out, "{\"sum\":3.0}\n");
    assert!(run(&folder, &["read", "tides", "demo://about"]).exits(0).out.starts_with("This is"));
    assert!(run(&folder, &["prompts", "tides"]).exits(0).out.starts_with("explain"));
    assert_eq!(run(&folder, &["discover", "time", "--json"]).exits(0).json()["era"], "legacy");
    let entity = r#"entities=[{"name":"Ann","entityType":"person","observations":["likes tea"]}]"#;
    run(&folder, &["call", "notes", "create_entities", entity]).exits(0);
    assert!(folder.path().join("kept.db").exists());
    assert!(run(&folder, &["call", "notes", "search_nodes", "query=tea"]).exits(0).out.contains("Ann"));
    let login = run(&folder, &["login", "time"]).exits(2).err;
    assert!(login.contains("only servers with a URL have logins"), "{login}");
}

#[test]
fn a_file_can_be_named_instead() {
    let folder = folder();
    std::fs::rename(folder.path().join(FILE), folder.path().join("other.toml")).unwrap();
    for args in [
        &["tools", "time", "--config", "other.toml"][..],
        &["tools", "--config", "other.toml", "time"],
        &["tools", "other.toml#time"],
    ] {
        assert!(run(&folder, args).exits(0).out.contains("where"), "{args:?}");
    }
    let several = run(&folder, &["tools", "--config", "other.toml"]).exits(2).err;
    assert!(several.contains("other.toml has several servers: time, tides, notes"), "{several}");
    let near = run(&folder, &["tools", "tiem", "--config", "other.toml"]).exits(2).err;
    assert!(near.contains("other.toml has no server \"tiem\"; did you mean \"time\"?"), "{near}");
}

#[test]
fn the_configuration_comes_before_the_files_of_editors() {
    let folder = folder();
    let entry = |name: &str| {
        format!(r#""{name}": {{"command": "{TIDEGATE}", "args": ["serve", "--demo", "--stdio"]}}"#)
    };
    let text = format!(r#"{{"mcpServers": {{{}, {}}}}}"#, entry("time"), entry("editor"));
    folder.write(".mcp.json", &text);
    assert!(run(&folder, &["tools", "time"]).exits(0).out.contains("where"));
    let said = run(&folder, &["tools", "time", "-v"]).exits(0).err;
    assert!(said.contains("has a server of the same name, which is ignored"), "{said}");
    assert!(run(&folder, &["tools", ".mcp.json#editor"]).exits(0).out.contains("echo"));
    assert!(run(&folder, &["tools", "editor", "--config", ".mcp.json"]).exits(0).out.contains("echo"));
    let near = run(&folder, &["tools", "editr"]).exits(2).err;
    assert!(
        near.contains("no server or program is named \"editr\"; did you mean \"editor\" (./.mcp.json)?"),
        "{near}"
    );
    let near = run(&folder, &["tools", "tidez"]).exits(2).err;
    assert!(near.contains("did you mean \"tides\" (tidegate.toml)"), "{near}");
}

#[test]
fn a_configuration_that_cannot_be_read_is_said() {
    let folder = Folder::new();
    folder.write(FILE, "[servers.time]\ncomand = \"x\"\n");
    let said = run(&folder, &["tools", "timely"]).exits(2).err;
    assert!(said.contains("comand"), "{said}");
    // What has nothing to do with it works.
    let demo = format!("{TIDEGATE} serve --demo --stdio");
    run(&folder, &["tools", &demo]).exits(0);
}

#[test]
fn doctor_checks_the_configuration_first_and_then_the_editors() {
    let folder = folder();
    let entry =
        |name: &str, args: &str| format!(r#""{name}": {{"command": "{TIDEGATE}", "args": [{args}]}}"#);
    let editor = entry("editor", r#""serve", "--demo", "--stdio""#);
    let twice = entry("twice", r#""serve", "--demo", "--stdio""#);
    folder.write(".cursor/mcp.json", &format!(r#"{{"mcpServers": {{{editor}, {twice}}}}}"#));
    let json = run(&folder, &["doctor", "--json"]).exits(0).json();
    let of = |member: &str| -> Vec<String> {
        json["servers"].as_array().unwrap().iter().map(|it| it[member].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(of("name"), ["time", "tides", "notes", "editor"], "the same server is checked once: {json}");
    assert_eq!(of("file"), [FILE, FILE, FILE, "./.cursor/mcp.json"]);
    assert_eq!(of("target")[1..3], ["builtin demo", "builtin memory"]);
    let shown = run(&folder, &["doctor", "time"]).exits(0).out;
    assert!(
        shown.starts_with("· time") || shown.contains("time  ") && shown.contains("(from tidegate.toml)"),
        "{shown}"
    );
}
