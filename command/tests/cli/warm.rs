//! A gateway that was there before: what it knows of its servers it says at once, whatever they are doing.

use serde_json::{Value, json};

use crate::rig::{Folder, TIDEGATE, tidegate_in};

/// Standard input of a client that shakes hands, asks this and leaves.
fn hello(more: &[Value]) -> String {
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    let first = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
    ];
    first.iter().chain(more).map(|message| format!("{message}\n")).collect()
}

#[test]
fn a_handshake_says_what_is_known_of_servers_that_are_still_starting() {
    let folder = Folder::new();
    folder.write("elsewhere/empty", "");
    let hang = folder.path().join("hang").display().to_string();
    let script = format!("[ -e {hang} ] && exec cat > {hang}; exec {TIDEGATE} serve --demo --stdio");
    let server = format!("[servers.demo]\ncommand = [\"sh\", \"-c\", {script:?}]\ncwd = \"elsewhere\"\n");
    folder.write("tidegate.toml", &format!("state_dir = \"state\"\n{server}"));
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let lists = folder.path().join("state/lists");
    let is_known = || {
        let files = std::fs::read_dir(&lists).into_iter().flatten().flatten();
        files
            .map(|file| std::fs::read_to_string(file.path()).unwrap_or_default())
            .any(|text| text.contains("about"))
    };
    for _ in 0..20 {
        tidegate_in(&folder, &["serve", "--stdio"], &hello(std::slice::from_ref(&list)));
        if is_known() {
            break;
        }
    }
    assert!(is_known(), "what the server says is kept");
    folder.write("hang", "");
    let done = tidegate_in(&folder, &["serve", "--stdio"], &hello(&[list]));
    let answers: Vec<Value> = done.out.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let answer = |id: i32| &answers.iter().find(|answer| answer["id"] == id).expect("an answer")["result"];
    let said = answer(1)["instructions"].as_str().unwrap_or_else(|| panic!("no instructions: {done:?}"));
    assert!(
        said.starts_with("Its tools and prompts have `demo_` before their names here.\n\nA small"),
        "{said}"
    );
    let tools = answer(2)["tools"].as_array().expect("tools");
    assert!(tools.iter().any(|tool| tool["name"] == "demo_echo"), "{tools:?}");
}
