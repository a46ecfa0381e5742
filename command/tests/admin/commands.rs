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
        let reset = json(&["logs", "--reset-level"]);
        assert_eq!(reset["before"], "info,tidegate_edge=debug");
        assert_eq!((&reset["level"], reset["level"].is_string()), (&reset["configured"], true), "{reset}");
        let arguments = with(&["logs", "--server", "dmeo"]);
        let (code, why) = refused(folder, &arguments.iter().map(String::as_str).collect::<Vec<_>>());
        assert!(code == Some(2) && why.contains("did you mean \"demo\"?"), "{why}");
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
    let (folder, _) = Gateway::folder(DEMO);
    let folder = folder.path();
    let mut first = OverStdio::start(folder);
    let is_running = || tidegate(folder, &["status", "--json"]).status.success();
    until("it is found", is_running);
    let status = json_said(folder, &["status"]);
    assert_eq!(
        (&status["transport"], &status["pid"]),
        (&json!("stdio"), &json!(first.child.id())),
        "{status}"
    );
    assert_eq!((&status["urls"], &status["sessions"]), (&json!([]), &Value::Null));
    // It goes on serving its client, whose calls can be asked about.
    let id = first.calls();
    until("the call is known", || said(folder, &["explain", "--limit", "9"]).contains("tools/call demo_add"));
    assert!(said(folder, &["restart", "demo"]).contains("Restarted demo"));

    let second = OverStdio::start(folder);
    until("both are found", || refused(folder, &["status"]).0 == Some(2));
    let (_, why) = refused(folder, &["status"]);
    let pids = [&first, &second].map(|one| one.child.id());
    for part in
        ["several gateways run", &format!("--pid {}", pids[0]), &format!("--pid {}", pids[1]), "stdio"]
    {
        assert!(why.contains(part), "{part}: {why}");
    }
    assert_eq!(json_said(folder, &["status", "--pid", &pids[1].to_string()])["pid"], pids[1]);
    assert!(said(folder, &["explain", &id]).contains("tools/call demo_add"), "all are asked");
    let (code, why) = refused(folder, &["status", "--pid", "1"]);
    assert!(code == Some(2) && why.contains("no gateway with the process 1"), "{why}");
    // Who ends in an orderly way leaves nothing behind.
    first.end();
    assert_eq!(json_said(folder, &["status"])["pid"], pids[1]);
    second.end();
    assert_eq!(std::fs::read_dir(folder.join("state/admin")).unwrap().count(), 0);
}

/// A client that has started a gateway for itself.
struct OverStdio {
    child: std::process::Child,
    lines: std::io::Lines<std::io::BufReader<std::process::ChildStdout>>,
}

impl OverStdio {
    fn start(folder: &std::path::Path) -> OverStdio {
        use std::io::BufRead as _;
        let mut command = crate::rig::command(folder);
        command.args(["serve", "--stdio"]).stdin(std::process::Stdio::piped());
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null());
        let mut child = command.spawn().unwrap();
        let lines = std::io::BufReader::new(child.stdout.take().unwrap()).lines();
        OverStdio { child, lines }
    }

    fn ask(&mut self, method: &str, params: Value) -> String {
        use std::io::Write as _;
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        writeln!(self.child.stdin.as_mut().unwrap(), "{message}").unwrap();
        self.lines.next().unwrap().unwrap()
    }

    /// Calls a tool, and tells the id of the call.
    fn calls(&mut self) -> String {
        let client = json!({"name": "t", "version": "1"});
        self.ask(
            "initialize",
            json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}),
        );
        let answer = self.ask("tools/call", json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}}));
        assert!(answer.contains("\"sum\":3.0"), "{answer}");
        let answer: Value = serde_json::from_str(&answer).unwrap();
        answer["result"]["_meta"]["dev.tidegate/correlationId"].as_str().unwrap().to_owned()
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}

#[test]
fn gateways_beside_the_one_that_is_asked_are_named_and_know_their_calls() {
    let gateway = Gateway::start_exactly(DEMO);
    let folder = gateway.folder.path();
    let mut other = OverStdio::start(folder);
    until("both are known", || json_said(folder, &["status"])["beside"] == json!([other.child.id()]));
    let status = said(folder, &["status"]);
    assert!(status.contains(&format!("Beside    --pid {}: stdio", other.child.id())), "{status}");
    let id = other.calls();
    let explained = tidegate(folder, &["explain", &id]);
    assert!(String::from_utf8_lossy(&explained.stdout).contains("tools/call demo_add"), "{explained:?}");
    assert!(String::from_utf8_lossy(&explained.stderr).contains("2 gateways run"), "{explained:?}");
    // The latest of all, whoever had it.
    let latest = || json_said(folder, &["explain", "--tool", "demo_add", "--limit", "1"])["id"].clone();
    assert_eq!(latest(), id);
    assert!(gateway.nobody().call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    until("the one of the gateway over HTTP", || latest() != id);
    other.calls();
    until("another one over stdio", || {
        said(folder, &["explain", "--tool", "demo_add"]).matches("called").count() == 3
    });
    // All of them follow the file.
    assert_eq!(json_said(folder, &["disable", "demo"])["followed"], true);
    assert!(said(folder, &["list"]).contains("enabled = false"), "{}", said(folder, &["list"]));
    said(folder, &["enable", "demo"]);
    // What is wrong with the file is no reason not to find those who run.
    let file = std::fs::read_to_string(folder.join("tidegate.toml")).unwrap();
    crate::rig::write(folder, "tidegate.toml", &format!("nonsense = 1\n{file}"));
    assert_eq!(json_said(folder, &["status"])["running"], true);
    assert_eq!(json_said(folder, &["status", "--pid", &other.child.id().to_string()])["running"], true);
    crate::rig::write(folder, "tidegate.toml", &file);
    let (code, why) = refused(folder, &["explain", "1-abc"]);
    assert!(
        code == Some(2) && why.contains("none of the gateways with this configuration knows a call 1-abc"),
        "{why}"
    );
    other.end();
}

#[test]
fn what_is_not_remembered_is_told_in_the_words_of_the_question() {
    let gateway = Gateway::start_exactly(DEMO);
    let folder = gateway.folder.path();
    let explain = |arguments: &[&str]| refused(folder, &[&["explain"], arguments].concat()).1;
    assert!(explain(&[]).contains("knows no call yet"), "{}", explain(&[]));
    assert!(gateway.nobody().call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    until("the call is known", || said(folder, &["explain"]).contains("demo_add"));
    for (arguments, part) in [
        (&["--last-error"][..], "knows no call that failed"),
        (&["--tool", "demo_ad"], "knows no call of the tool demo_ad"),
        (&["--tool", "demo_ad"], "Did you mean --tool demo_add?"),
        (&["--tool", "demo_add", "--last-error"], "knows no call of the tool demo_add that failed"),
        (&["--tool", "demo_add", "--last-error"], "Only the latest calls are remembered"),
        (&["1-abc"], "knows no call 1-abc"),
    ] {
        assert!(explain(arguments).contains(part), "{part}: {}", explain(arguments));
    }
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
