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
    assert_eq!(listed.len(), 21, "{listed:?}");
    for name in ["ask_agent", "search_knowledge_base", "create_entities", "get_decayed_graph"] {
        assert!(listed.iter().any(|one| one == name), "{name} is not among {listed:?}");
    }
    let entities = r#"entities=[{"name":"Ann","entityType":"person","observations":["likes tea"]}]"#;
    with_memory(&folder, &["call", "create_entities", entities]).exits(0);
    assert!(folder.0.join(".local/share/tidegate/memory.db").exists());
    // Another process, and the same memory.
    let found = with_memory(&folder, &["call", "search_nodes", "query=tea"]).exits(0).out;
    assert!(found.contains("Ann"), "{found}");
    // What is not listed can be called all the same, and there is nothing to check its result against.
    let types = with_memory(&folder, &["call", "list_entity_types", "--validate"]).exits(0);
    assert!(types.out.contains("person") && types.err.contains("there is no schema"), "{types:?}");
    let listed = with_memory(&folder, &["call", "read_graph", "--validate"]).exits(0);
    assert!(!listed.err.contains("schema"), "{listed:?}");
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
    assert!(folder.0.join("kept/here.db").exists());
    assert!(!folder.0.join(".local").join("share").exists(), "not in the usual place, too");

    config("store = \"mysql://somewhere\"");
    let failed = tidegate_in(&folder, &["serve", "--stdio"], "").exits(2);
    assert!(failed.err.contains("memory.store: it must be a file"), "{}", failed.err);
    config("[memory.embeddings]\nfolder = \"nowhere\"");
    let failed = with_memory(&folder, &["tools"]);
    assert!(failed.err.contains("nowhere"), "{}", failed.err);
}

#[test]
fn the_demonstration_is_still_there() {
    let folder = Folder::new();
    let server = ["tools", "--json", "--", TIDEGATE, "--log-level", "warn", "serve", "--demo", "--stdio"];
    let listed = tidegate_in(&folder, &server, "").exits(0).json();
    assert_eq!(listed["tools"][1]["name"], "add");
    assert!(!folder.0.join(".local/share/tidegate").exists(), "nothing is kept for it");
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
    assert!(wrong.err.contains("max_message: it must be more than nothing"), "{}", wrong.err);
}
