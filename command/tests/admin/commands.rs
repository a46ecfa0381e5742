//! Each command against a running gateway, over its socket and over its URL.

use serde_json::{Value, json};

use crate::http::until;
use crate::rig::{Gateway, SERVERS};
use crate::{DEMO, json_said, note, refused, said, tidegate, url};

#[test]
fn every_command_works_over_the_socket_and_over_the_url() {
    let gateway =
        Gateway::start_exactly(&format!("{SERVERS}[servers.off]\nbuiltin = \"demo\"\nenabled = false\n"));
    let folder = gateway.folder.path();
    let url = url(&gateway);
    for way in [&[][..], &["--url", &url]] {
        let with = |arguments: &[&'static str]| -> Vec<String> {
            arguments.iter().chain(way).map(|argument| (*argument).to_owned()).collect()
        };
        let json = |arguments: &[&'static str]| -> Value {
            let arguments = with(arguments);
            json_said(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>())
        };
        let status = json(&["status"]);
        assert_eq!((&status["running"], &status["status"]), (&json!(true), &json!("healthy")), "{status}");
        assert_eq!(status["urls"], json!([gateway.url("")]));
        assert_eq!((&status["transport"], &status["pid"]), (&json!("http"), &note(&gateway)["pid"]));
        assert!(status["config"].as_str().unwrap().ends_with("tidegate.toml"), "{status}");
        let states: Vec<String> =
            status["servers"].as_array().unwrap().iter().map(|one| one["state"].to_string()).collect();
        assert_eq!(states, ["\"ready\"", "\"ready\"", "\"disabled\""], "{status}");
        assert_eq!(json(&["list"])["servers"].as_array().unwrap().len(), 3);
        assert_eq!(json(&["restart", "demo"])["changed"], true);
        assert_eq!(json(&["reset", "demo"])["why"], Value::Null);
        json(&["disable", "demo", "--until-restart"]);
        let of_demo = |list: Value| {
            let servers = list["servers"].as_array().unwrap().clone();
            servers.into_iter().find(|server| server["name"] == "demo").unwrap()
        };
        assert_eq!(of_demo(json(&["list"]))["state"], "disabled");
        json(&["enable", "demo", "--until-restart"]);
        assert_ne!(of_demo(json(&["list"]))["state"], "disabled");
        assert_eq!(
            json(&["logs", "--set-level", "info,tidegate_edge=debug"])["level"],
            "info,tidegate_edge=debug"
        );
        let arguments = with(&["logs", "--server", "demo", "--limit", "3", "--json"]);
        let lines = said(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!((1..=3).contains(&lines.lines().count()), "{lines}");
        for line in lines.lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["server"], "demo", "{line}");
        }
        let arguments = with(&["restart", "dmeo"]);
        let (code, why) = refused(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!(code, Some(2), "{why}");
        assert!(why.contains("there is no server \"dmeo\"; did you mean \"demo\"?"), "{why}");
    }
    // For people.
    let text = said(folder, &["status"]);
    for part in
        ["is healthy: process", "Endpoint", "Config", "0 running, 0 waiting; 0 sessions", "demo", "ready"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(said(folder, &["restart", "demo"]).contains("Restarted demo"));
    assert!(said(folder, &["reset", "demo"]).contains("it answers"));
    assert!(said(folder, &["logs", "--level", "info"]).contains("restarted by the operator"));
}

#[test]
fn enable_and_disable_last_and_the_gateway_follows() {
    let gateway =
        Gateway::start_exactly(&format!("{SERVERS}[servers.off]\nbuiltin = \"demo\"\nenabled = false\n"));
    let folder = gateway.folder.path();
    let file = || std::fs::read_to_string(folder.join("tidegate.toml")).unwrap();
    let tools = || gateway.nobody().modern("tools/list", json!({})).body;
    assert!(tools().contains("demo_add") && !tools().contains("off_add"));
    assert_eq!(json_said(folder, &["disable", "demo"])["followed"], true);
    assert!(file().contains("enabled = false") && !tools().contains("demo_add"), "{}", file());
    assert_eq!(json_said(folder, &["enable", "off"])["followed"], true, "{}", gateway.log());
    until("it is offered", || tools().contains("off_add"));
    // The file says so now, and nothing else does.
    until("the reason is that of the file", || {
        let list = json_said(folder, &["list"]);
        let servers = list["servers"].as_array().unwrap();
        servers.iter().any(|server| server["name"] == "demo" && server["why"] == "enabled = false")
    });
    assert_eq!(json_said(folder, &["enable", "demo"])["followed"], true);
    until("it is offered", || tools().contains("demo_add"));
    assert!(!file().contains("enabled"), "{}", file());
}

#[test]
fn a_gateway_over_stdio_is_found_and_of_several_one_is_chosen() {
    use std::io::{BufRead as _, Write as _};
    let (folder, _) = Gateway::folder(DEMO);
    let folder = folder.path();
    let start = || {
        let mut command = crate::rig::command(folder);
        command.args(["serve", "--stdio"]).stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).spawn().unwrap()
    };
    let mut first = start();
    let is_running = || tidegate(folder, &["status", "--json"]).status.success();
    until("it is found", is_running);
    let status = json_said(folder, &["status"]);
    assert_eq!((&status["transport"], &status["pid"]), (&json!("stdio"), &json!(first.id())), "{status}");
    assert_eq!((&status["urls"], &status["sessions"]), (&json!([]), &Value::Null));
    // It goes on serving its client, whose calls can be asked about.
    let (mut input, output) = (first.stdin.take().unwrap(), first.stdout.take().unwrap());
    let mut lines = std::io::BufReader::new(output).lines();
    let mut ask = |message: Value| {
        writeln!(input, "{message}").unwrap();
        lines.next().unwrap().unwrap()
    };
    ask(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}}));
    let answer = ask(json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {
        "name": "demo_add", "arguments": {"a": 1, "b": 2}}}));
    assert!(answer.contains("\"sum\":3.0"), "{answer}");
    until("the call is known", || said(folder, &["explain", "--limit", "9"]).contains("tools/call demo_add"));
    assert!(said(folder, &["restart", "demo"]).contains("Restarted demo"));

    let mut second = start();
    until("both are found", || refused(folder, &["status"]).0 == Some(2));
    let (_, why) = refused(folder, &["status"]);
    for part in
        ["several gateways run", &format!("--pid {}", first.id()), &format!("--pid {}", second.id()), "stdio"]
    {
        assert!(why.contains(part), "{part}: {why}");
    }
    let pid = second.id().to_string();
    assert_eq!(json_said(folder, &["status", "--pid", &pid])["pid"], second.id());
    let (code, why) = refused(folder, &["status", "--pid", "1"]);
    assert!(code == Some(2) && why.contains("no gateway with the process 1"), "{why}");
    // Who ends in an orderly way leaves nothing behind.
    drop(input);
    first.wait().unwrap();
    assert_eq!(json_said(folder, &["status"])["pid"], second.id());
    drop(second.stdin.take());
    second.wait().unwrap();
    assert_eq!(std::fs::read_dir(folder.join("state/admin")).unwrap().count(), 0);
}

#[test]
fn another_configuration_is_another_gateway() {
    let gateway = Gateway::start_exactly(DEMO);
    let folder = gateway.folder.path();
    let other = format!("state_dir = \"state\"\nlisten = \"{}\"\n{DEMO}", gateway.address);
    crate::rig::write(folder, "other.toml", &other);
    let status = tidegate(folder, &["status", "--config", "other.toml"]);
    let text = String::from_utf8(status.stdout).unwrap();
    assert_eq!(status.status.code(), Some(3), "{text}");
    for part in ["No gateway runs", "has another configuration", &format!("--pid {}", note(&gateway)["pid"])]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let (code, why) = refused(folder, &["restart", "demo", "--config", "other.toml"]);
    assert!(code == Some(3) && why.contains("has another configuration"), "{why}");
}
