//! The memory that is served when nothing is configured, and what the configuration says about it.

use serde_json::Value;

use crate::rig::{Done, Folder, TIDEGATE, tidegate_in};

const FILE: &str = "tidegate.toml";

/// Runs `tidegate` with `tidegate serve --stdio` as the server, both in this folder.
fn with_memory(folder: &Folder, args: &[&str]) -> Done {
    let server = ["--", TIDEGATE, "--log-level", "warn", "serve", "--stdio"];
    tidegate_in(folder, &[args, &server[..]].concat(), "")
}

fn names(folder: &Folder) -> Vec<String> {
    let listed = with_memory(folder, &["tools", "--json"]).exits(0).json();
    let name = |tool: &Value| tool["name"].as_str().unwrap().to_owned();
    listed["tools"].as_array().unwrap().iter().map(name).collect()
}

#[test]
fn without_a_configuration_there_is_a_memory_that_lasts() {
    let folder = Folder::new();
    let listed = names(&folder);
    assert_eq!(listed.len(), 24, "{listed:?}");
    for name in ["ask_agent", "search_knowledge_base", "create_entities", "get_decayed_graph"] {
        assert!(listed.iter().any(|one| one == name), "{name} is not among {listed:?}");
    }
    let entities = r#"entities=[{"name":"Ann","entityType":"person","observations":["likes tea"]}]"#;
    with_memory(&folder, &["call", "create_entities", entities]).exits(0);
    assert!(folder.path().join(".local/share/tidegate/memory.db").exists());
    // Another process, and the same memory.
    let found = with_memory(&folder, &["call", "search_nodes", "query=tea"]).exits(0).out;
    assert!(found.contains("Ann"), "{found}");
    // What is not listed can be called all the same, and its result is not checked.
    let types = with_memory(&folder, &["call", "list_entity_types", "--validate"]).exits(0);
    assert!(types.out.contains("person") && types.err.contains("its result is not validated"), "{types:?}");
    let listed = with_memory(&folder, &["call", "read_graph", "--validate"]).exits(0);
    assert!(listed.err.is_empty(), "{listed:?}");
    let undone = with_memory(&folder, &["call", "undo"]).exits(0).out;
    assert!(!undone.is_empty());
    let found = with_memory(&folder, &["call", "search_nodes", "query=tea"]).exits(0).out;
    assert!(!found.contains("Ann"), "{found}");
}

#[test]
fn the_configuration_says_what_is_listed_and_where_it_is_kept() {
    let folder = Folder::new();
    let config = |memory: &str| {
        let text = format!("[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n[memory]\n{memory}\n");
        folder.write(FILE, &text);
    };
    config("store = \"kept/here.db\"\ntools = \"all\"");
    let listed = names(&folder);
    assert!(listed.len() > 40, "{} are listed", listed.len());
    assert!(listed.iter().any(|name| name == "traverse_graph"));
    assert!(folder.path().join("kept/here.db").exists());
    assert!(!folder.path().join(".local").join("share").exists(), "not in the usual place, too");

    config("store = \"mysql://somewhere\"");
    let failed = tidegate_in(&folder, &["serve", "--stdio"], "").exits(2);
    assert!(failed.err.contains("memory.store: must be a file"), "{}", failed.err);
    config("[memory.embeddings]\nfolder = \"nowhere\"");
    let failed = tidegate_in(&folder, &["check", "--connect"], "").exits(1);
    assert!(failed.out.contains("nowhere cannot be used"), "{failed:?}");
}

#[test]
fn a_memory_that_cannot_be_opened_says_why_where_the_operator_looks() {
    let folder = Folder::new();
    let config =
        "[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n[memory]\nstore = \"kept/here.db\"\n";
    folder.write(FILE, config);
    std::fs::create_dir_all(folder.path().join("kept")).unwrap();
    folder.write("kept/here.db", "a text and no database");
    let said = tidegate_in(&folder, &["check", "--connect"], "").exits(1).out;
    assert!(said.contains("kept/here.db cannot be used: It is not a Tidegate memory"), "{said}");
    // Nothing was touched, and when it is repaired everything is well.
    assert_eq!(folder.read("kept/here.db"), "a text and no database");
    std::fs::remove_file(folder.path().join("kept/here.db")).unwrap();
    tidegate_in(&folder, &["check", "--connect"], "").exits(0);
    with_memory(&folder, &["call", "search_nodes", "query=tea"]).exits(0);
    let beside = std::fs::read_dir(folder.path().join("kept")).unwrap().count();
    assert_eq!(beside, 1, "checking leaves nothing beside the file");
}

#[test]
fn the_demonstration_is_still_there() {
    let folder = Folder::new();
    let server = ["tools", "--json", "--", TIDEGATE, "--log-level", "warn", "serve", "--demo", "--stdio"];
    let listed = tidegate_in(&folder, &server, "").exits(0).json();
    assert_eq!(listed["tools"][1]["name"], "add");
    assert!(!folder.path().join(".local/share/tidegate").exists(), "nothing is kept for it");
}

#[test]
fn the_configuration_says_how_large_a_message_may_be() {
    let folder = Folder::new();
    folder.write(FILE, "max_message = \"1kB\"\n[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n");
    let query = format!("query={}", "x".repeat(2_000));
    let refused = with_memory(&folder, &["call", "search_nodes", &query]).exits(4);
    assert!(refused.err.contains("a line may have 1000 bytes"), "{}", refused.err);
    folder.write(FILE, "max_message = 0");
    let wrong = tidegate_in(&folder, &["serve", "--stdio"], "").exits(2);
    assert!(wrong.err.contains("max_message: must be more than 0"), "{}", wrong.err);
}

#[test]
fn a_memory_goes_to_a_file_and_comes_back() {
    let (folder, other) = (Folder::new(), Folder::new());
    let said = tidegate_in(&folder, &["memory", "export"], "").exits(2).err;
    assert!(said.contains("there is no memory at"), "{said}");
    assert!(!folder.path().join(".local/share/tidegate").exists(), "looking does not make one");
    // More than an answer of a tool can have, and than a request may.
    let entity = |at: usize| {
        let long = "x".repeat(4_000);
        format!(r#"{{"type":"entity","name":"n{at}","entityType":"t","observations":["{at} {long}"]}}"#)
    };
    let mut lines: Vec<String> = (0..5_000).map(entity).collect();
    lines.push("nonsense".to_owned());
    lines.push(r#"{"type":"relation","from":"n1","to":"n2","relationType":"r"}"#.to_owned());
    folder.write("memory.jsonl", &lines.join("\n"));
    let done = tidegate_in(&folder, &["memory", "import", "memory.jsonl"], "").exits(0);
    let imported = "Imported 5000 entities, 5000 observations and 1 relation; skipped 1 line\n";
    assert_eq!((done.out.as_str(), done.err.as_str()), (imported, "note: line 5001: is not valid JSON\n"));
    let done = tidegate_in(&folder, &["memory", "export", "out.jsonl"], "").exits(0);
    assert_eq!(done.out, "Exported 5000 entities, 5000 observations and 1 relation to out.jsonl\n");
    let said = tidegate_in(&folder, &["memory", "export", "out.jsonl"], "").exits(2).err;
    assert!(
        said.contains("out.jsonl already exists") && said.contains("overwrite it with --force"),
        "{said}"
    );
    tidegate_in(&folder, &["memory", "export", "out.jsonl", "--force"], "").exits(0);
    lines.remove(5_000);
    assert!(folder.read("out.jsonl") == format!("{}\n", lines.join("\n")), "the same lines");
    assert!(!folder.path().join("out.jsonl.part").exists());

    // Everything, through the standard streams, for somebody of their own.
    let whole = tidegate_in(&folder, &["memory", "export", "--history"], "").exits(0).out;
    let tenant = ["memory", "import", "-", "--tenant", "acme", "--store", "kept/here.db"];
    let json = [&tenant[..], &["--json"]].concat();
    let told = tidegate_in(&other, &json, &whole).exits(0).json();
    assert_eq!((&told["entities"], &told["skipped"]), (&5_000.into(), &0.into()));
    let said = tidegate_in(&other, &tenant, &whole).exits(2).err;
    assert!(said.contains("a memory that was never used"), "{said}");
    let nobody = tidegate_in(&other, &["memory", "export", "--store", "kept/here.db"], "").exits(0);
    assert_eq!(nobody.out, "", "another tenant's");
}

#[test]
fn the_configuration_says_which_memory_a_file_goes_to() {
    let folder = Folder::new();
    folder.write(FILE, "[servers.memory]\nbuiltin = \"memory\"\n[memory]\nstore = \"kept/here.db\"\n");
    let line = r#"{"type":"entity","name":"Ann","entityType":"person","observations":[]}"#;
    tidegate_in(&folder, &["memory", "import", "-"], line).exits(0);
    assert!(folder.path().join("kept/here.db").exists());
    assert_eq!(tidegate_in(&folder, &["memory", "export"], "").exits(0).out, format!("{line}\n"));
    folder.write("other.toml", "[servers.x]\nurl = \"http://127.0.0.1:9/\"\n");
    let said = tidegate_in(&folder, &["memory", "export", "--config", "other.toml"], "").exits(2).err;
    assert!(said.contains("other.toml has no memory server"), "{said}");
    let said = tidegate_in(&folder, &["memory", "export", "kept"], "").exits(2).err;
    assert!(said.contains("kept is a directory"), "{said}");
    folder.write("not.db", "a text and no database");
    let said = tidegate_in(&folder, &["memory", "export", "--store", "not.db"], "").exits(3).err;
    assert!(said.contains("It is not a Tidegate memory"), "{said}");
    assert_eq!(folder.read("not.db"), "a text and no database");
}

#[test]
fn what_unlisted_tools_take_is_known() {
    let folder = Folder::new();
    let line = r#"{"type":"entity","name":"2024","entityType":"year","observations":["5"]}"#;
    folder.write("memory.jsonl", line);
    with_memory(&folder, &["call", "import_graph", "jsonl=@memory.jsonl"]).exits(0);
    let call = |args: &[&str]| with_memory(&folder, &[&["call", "--json"], args].concat()).exits(0).json();
    let found = call(&["list_entities", "limit=1", "prefix=20"]);
    assert_eq!(found["structuredContent"]["entities"][0]["name"], "2024", "{found}");
    let kept = call(&["ingest_document", "text={\"a\":1}", "title=12345"]);
    assert_eq!(kept["structuredContent"]["document"]["title"], "12345", "{kept}");
    let shown = with_memory(&folder, &["tools", "import_graph"]).exits(0).out;
    assert!(shown.contains("jsonl") && shown.contains("strict"), "{shown}");
    let said = with_memory(&folder, &["call", "import_graph", "jsnl=x"]).exits(2).err;
    assert!(said.contains("did you mean \"jsonl\"?"), "{said}");
    let said = with_memory(&folder, &["tools", "import_grph"]).exits(4).err;
    assert!(said.contains("import_grph"), "{said}");

    // Behind a prefix, too.
    folder.write(FILE, "[servers.memory]\nbuiltin = \"memory\"\n");
    let shown = with_memory(&folder, &["tools", "memory_import_graph"]).exits(0).out;
    assert!(shown.contains("memory_import_graph") && shown.contains("strict"), "{shown}");
}

#[test]
fn an_empty_memory_is_an_empty_file() {
    let folder = Folder::new();
    let out = with_memory(&folder, &["call", "export_graph"]).exits(0).out;
    assert_eq!(out, "");
    folder.write("memory.jsonl", &out);
    with_memory(&folder, &["call", "import_graph", "jsonl=@memory.jsonl"]).exits(0);
}

#[test]
fn a_new_configuration_keeps_the_memory() {
    let path = ".config/tidegate/tidegate.toml";
    let memory = "[servers.memory]\nbuiltin = \"memory\"\nprefix = \"\"\n";
    let folder = Folder::new();
    let done = tidegate_in(&folder, &["add", "--no-connect", "web", "http://127.0.0.1:9/"], "").exits(0);
    assert!(done.err.contains("Tidegate's memory was added too"), "{}", done.err);
    assert!(folder.read(path).ends_with(memory), "{}", folder.read(path));
    tidegate_in(&folder, &["add", "--no-connect", "web2", "http://127.0.0.1:9/"], "").exits(0);
    assert_eq!(folder.read(path).matches("builtin").count(), 1);

    let folder = Folder::new();
    folder.write("servers.json", r#"{"mcpServers": {"web": {"url": "http://127.0.0.1:9/"}}}"#);
    let done = tidegate_in(&folder, &["import", "servers.json", "--dry-run"], "").exits(0);
    assert_eq!((done.err.as_str(), folder.read(path).as_str()), ("", ""));
    tidegate_in(&folder, &["import", "servers.json"], "").exits(0);
    assert!(folder.read(path).ends_with(memory), "{}", folder.read(path));

    // Another server has its name.
    let folder = Folder::new();
    let done = tidegate_in(&folder, &["add", "--no-connect", "memory", "http://127.0.0.1:9/"], "").exits(0);
    assert!(done.err.contains("--builtin memory"), "{}", done.err);
    assert!(!folder.read(path).contains("builtin"));

    // By hand, and where only that was asked for.
    let folder = Folder::new();
    tidegate_in(&folder, &["add", "notes", "--builtin", "memory"], "").exits(0);
    assert!(folder.read(path).ends_with(&memory.replace("memory]", "notes]")), "{}", folder.read(path));
    assert!(!folder.read(path).contains("servers.memory"));
    tidegate_in(&folder, &["add", "--no-connect", "web", "http://127.0.0.1:9/", "--config", "own.toml"], "")
        .exits(0);
    assert!(!folder.read("own.toml").contains("builtin"));
    let said = tidegate_in(&folder, &["add", "x", "--builtin", "nothing"], "").exits(2).err;
    assert!(said.contains("demo") && said.contains("memory"), "{said}");
    tidegate_in(&folder, &["check", "--config", "own.toml"], "").exits(0);
}

#[test]
fn properties_are_counted() {
    let folder = Folder::new();
    let line = r#"{"type":"entity","name":"Ann","entityType":"person","observations":["a"],"properties":{"k":1,"l":2}}"#;
    let done = tidegate_in(&folder, &["memory", "import", "-"], line).exits(0);
    assert_eq!(done.out, "Imported 1 entity, 1 observation, 2 properties and 0 relations\n");
    let done = tidegate_in(&folder, &["memory", "export", "out.jsonl"], "").exits(0);
    assert_eq!(done.out, "Exported 1 entity, 1 observation, 2 properties and 0 relations to out.jsonl\n");
}

#[test]
fn the_memory_is_known_by_its_name_without_a_configuration() {
    let folder = Folder::new();
    let shown = tidegate_in(&folder, &["tools", "memory"], "").exits(0).out;
    assert!(shown.contains("create_entities") && !shown.contains("memory_create_entities"), "{shown}");
    let entity = r#"entities=[{"name":"Ann","entityType":"person","observations":["likes tea"]}]"#;
    tidegate_in(&folder, &["call", "memory", "create_entities", entity], "").exits(0);
    assert!(folder.path().join(".local/share/tidegate/memory.db").exists(), "the one that serve would use");
    assert!(
        tidegate_in(&folder, &["call", "memory", "search_nodes", "query=tea"], "")
            .exits(0)
            .out
            .contains("Ann")
    );
    // A configuration that has none has none.
    folder.write(FILE, "[servers.x]\nbuiltin = \"demo\"\n");
    let said = tidegate_in(&folder, &["tools", "memory"], "").exits(2).err;
    assert!(
        said.contains("no server or program is named \"memory\"") && said.contains("Known servers: x"),
        "{said}"
    );
}
