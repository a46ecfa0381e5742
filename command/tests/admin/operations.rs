//! What is done to a real server: a process that says who it is.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::http::until;
use crate::rig::{Gateway, write};
use crate::{DEMO, json_said, refused, said};

/// A server in a few lines: its tool says which process it is.
const SERVER: &str = r#"#!/bin/sh
while read -r line; do
  id=$(printf '%s' "$line" | sed -nE 's/.*"id":("[^"]*"|[0-9]+).*/\1/p')
  case "$line" in
    *'"initialize"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"sh\",\"version\":\"1\"}}}" ;;
    *'"tools/list"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"tools\":[{\"name\":\"pid\",\"inputSchema\":{\"type\":\"object\"}}]}}" ;;
    *'"tools/call"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"pid $$\"}]}}" ;;
    *'"ping"'*) echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{}}" ;;
    *'"method"'*) if [ -n "$id" ]; then echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"error\":{\"code\":-32601,\"message\":\"no\"}}"; fi ;;
  esac
done
"#;

fn start(more: &str) -> Gateway {
    let config =
        format!("[servers.sh]\ncommand = \"./server.sh\"\n[servers.demo]\nbuiltin = \"demo\"\n{more}");
    let (folder, issuers) = Gateway::folder(&config);
    write(folder.path(), "server.sh", SERVER);
    let program = folder.path().join("server.sh");
    std::fs::set_permissions(program, std::fs::Permissions::from_mode(0o700)).unwrap();
    Gateway::try_start_in((folder, issuers), vec![]).unwrap_or_else(|(_, log)| panic!("{log}"))
}

fn pid(gateway: &Gateway) -> Option<String> {
    let answer = gateway.nobody().call("sh_pid", json!({}));
    let text = answer.json()["result"]["content"][0]["text"].as_str()?.to_owned();
    text.strip_prefix("pid ").map(str::to_owned)
}

#[test]
fn a_restart_is_a_new_process() {
    let gateway = start("");
    let folder = gateway.folder.path();
    let old = pid(&gateway).unwrap();
    said(folder, &["restart", "sh"]);
    let new = pid(&gateway).unwrap();
    assert_ne!(old, new, "{}", gateway.log());
    let lives = |pid: &str| std::path::Path::new(&format!("/proc/{pid}")).exists();
    if std::path::Path::new("/proc/self").exists() {
        until("the old process ends", || !lives(&old));
        assert!(lives(&new));
    }
    gateway.logs("restarted by the operator");
}

#[test]
fn a_server_that_is_off_has_no_process_and_no_tools_until_it_is_on() {
    let gateway = start("");
    let folder = gateway.folder.path();
    let session = gateway.nobody().session();
    let mut changes = gateway.nobody().stream(&session, &[]);
    assert_eq!(changes.status(), 200);
    said(folder, &["disable", "sh", "--until-restart"]);
    changes.until("notifications/tools/list_changed");
    assert!(!gateway.nobody().modern("tools/list", json!({})).body.contains("sh_pid"));
    assert_eq!(pid(&gateway), None);
    let list = json_said(folder, &["list"]);
    let server = list["servers"].as_array().unwrap().iter().find(|one| one["name"] == "sh").unwrap().clone();
    assert_eq!(server["state"], "disabled", "{list}");
    assert!(server["why"].as_str().unwrap().contains("switched off"), "{server}");
    let (code, why) = refused(folder, &["restart", "sh"]);
    assert!(code == Some(2) && why.contains("the server \"sh\" is disabled"), "{why}");
    // A change of the file does not switch it on.
    let config = std::fs::read_to_string(folder.join("tidegate.toml")).unwrap();
    gateway.write("tidegate.toml", &format!("{config}\n[servers.more]\nbuiltin = \"demo\"\n"));
    until("the file is read", || gateway.nobody().modern("tools/list", json!({})).body.contains("more_add"));
    assert_eq!(pid(&gateway), None);
    said(folder, &["enable", "sh", "--until-restart"]);
    until("it is back", || pid(&gateway).is_some());
}

#[test]
fn a_server_that_was_left_alone_is_tried_at_once() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let more = format!("[servers.gone]\nurl = \"http://{nowhere}/mcp\"\n");
    let gateway = start(&more);
    let folder = gateway.folder.path();
    let done = crate::tidegate(folder, &["reset", "gone"]);
    let text = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.code() == Some(1) && text.contains("it does not answer"), "{text}");
    assert!(said(folder, &["reset", "sh"]).contains("it answers"));
}

#[test]
fn what_was_changed_is_in_the_audit_trail() {
    let gateway = Gateway::start_exactly(&format!("{DEMO}[audit]\nfile = \"audit.jsonl\"\n"));
    let folder = gateway.folder.path();
    said(folder, &["restart", "demo"]);
    said(folder, &["logs", "--set-level", "info"]);
    // What only looks is no change, and what was refused has changed nothing.
    said(folder, &["status"]);
    refused(folder, &["restart", "dmeo"]);
    let found = || said(folder, &["audit", "search", "--kind", "operation", "--json"]);
    until("both are there", || found().lines().count() == 2);
    for (line, operation, path) in
        [(0, "restartServer", "/api/servers/demo/restart"), (1, "setLogLevel", "/api/log/level")]
    {
        let record: Value = serde_json::from_str(found().lines().nth(line).unwrap()).unwrap();
        assert_eq!(
            (&record["operation"], &record["path"], &record["way"]),
            (&operation.into(), &path.into(), &"socket".into()),
            "{record}"
        );
    }
    let text = said(folder, &["audit", "search", "--kind", "operation"]);
    for part in ["restartServer", "/api/servers/demo/restart by socket", "/api/log/level by socket, info"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(said(folder, &["audit", "verify"]).contains("records"));
}
