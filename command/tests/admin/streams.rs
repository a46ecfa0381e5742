//! What happens, as it happens: events and log lines.

use serde_json::{Value, json};

use crate::http::{Stream, until};
use crate::rig::Gateway;
use crate::{DEMO, note, refused, said};

/// The data of all events of this name that have come so far.
fn events(stream: &Stream, name: &str) -> Vec<Value> {
    let text = stream.answer().body;
    let of = |event: &str| {
        let is_it = event.lines().any(|line| line == format!("event: {name}"));
        let data = event.lines().find_map(|line| line.strip_prefix("data: "))?;
        is_it.then(|| serde_json::from_str(data).unwrap())
    };
    text.split("\n\n").filter_map(of).collect()
}

#[test]
fn events_tell_of_servers_and_calls() {
    let gateway = Gateway::start_exactly(DEMO);
    let folder = gateway.folder.path();
    let nobody = gateway.nobody();
    let mut stream = nobody.open("GET", "/api/events", &[], "");
    stream.until(": following");
    let head = stream.answer();
    assert_eq!((head.status, head.header("content-type")), (200, "text/event-stream"));
    assert_eq!((head.header("x-accel-buffering"), head.header("cache-control")), ("no", "no-store"));
    assert!(nobody.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    stream.until("event: call");
    assert!(!nobody.call("demo_nothing", json!({})).is_fine());
    stream.until("TOOL_NOT_FOUND");
    said(folder, &["restart", "demo"]);
    stream.until("\"state\":\"ready\"");
    said(folder, &["disable", "demo", "--until-restart"]);
    stream.until("\"state\":\"left\"");
    let calls = events(&stream, "call");
    let call = calls.iter().find(|call| call["name"] == "demo_add").unwrap_or_else(|| panic!("{calls:?}"));
    assert_eq!(
        (&call["method"], &call["outcome"], &call["server"]),
        (&json!("tools/call"), &json!("ok"), &json!("demo"))
    );
    assert!(call["id"].as_str().is_some_and(|id| !id.is_empty()) && call["time"].is_string(), "{call}");
    let states: Vec<String> =
        events(&stream, "server").iter().map(|event| event["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["replaced", "ready", "left"]);
}

#[test]
fn there_is_a_bound_on_followers_and_streams_end_with_the_gateway() {
    let gateway = Gateway::start_exactly(DEMO);
    let nobody = gateway.nobody();
    let open = || {
        let mut stream = nobody.open("GET", "/api/events", &[], "");
        (stream.status(), stream)
    };
    let mut streams: Vec<(u16, Stream)> = (0..16).map(|_| open()).collect();
    assert!(streams.iter().all(|(status, _)| *status == 200));
    assert_eq!(open().0, 503);
    streams.pop();
    until("there is room again", || open().0 == 200);
    // A signal ends them, and the gateway.
    let pid = note(&gateway)["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    for (_, stream) in &mut streams {
        stream.read_to_end();
    }
    until("its files are gone", || {
        std::fs::read_dir(gateway.folder.path().join("state/admin")).unwrap().next().is_none()
    });
}

#[test]
fn log_lines_are_read_and_followed() {
    let gateway = Gateway::start_exactly(DEMO);
    let operator = gateway.with_token(note(&gateway)["token"].as_str().unwrap());
    let get = |path: &str| operator.send("GET", path, &[], "").json();
    let ready = get("/api/logs?server=demo&level=info");
    let line = &ready["lines"][0];
    assert!(line["message"].as_str().unwrap().starts_with("ready: 4 tools"), "{ready}");
    let next = ready["next"].as_u64().unwrap();
    assert_eq!(get(&format!("/api/logs?after={next}"))["lines"], json!([]));
    assert_eq!(get("/api/logs?level=error")["lines"], json!([]));
    let mut stream = operator.open("GET", &format!("/api/logs/stream?level=info&after={next}"), &[], "");
    assert_eq!(stream.status(), 200);
    let failed = operator.call("demo_nothing", json!({}));
    let id =
        failed.json()["result"]["_meta"]["dev.tidegate/error"]["correlationId"].as_str().map(str::to_owned);
    let id =
        id.unwrap_or_else(|| failed.json()["error"]["data"]["correlationId"].as_str().unwrap().to_owned());
    stream.until(&id);
    let told = events(&stream, "log");
    assert!(told.iter().any(|line| line["correlationId"] == *id), "{told:?}");
    assert!(stream.text().contains("\nid: "), "{}", stream.text());
    until("its line is kept", || {
        let lines = get(&format!("/api/logs?id={id}"))["lines"].as_array().unwrap().clone();
        !lines.is_empty() && lines.iter().all(|line| line["correlationId"] == *id)
    });
    // Another filter is in force at once.
    let level = operator.send("PUT", "/api/log/level", &[], "{\"level\":\"warn\"}");
    assert_eq!((level.status, &get("/api/log/level")["level"]), (200, &json!("warn")));
    let before = get("/api/logs")["next"].as_u64().unwrap();
    assert!(operator.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    assert_eq!(get(&format!("/api/logs?after={before}"))["lines"], json!([]));
}

#[test]
fn the_command_follows_until_the_gateway_ends() {
    use std::io::{BufRead as _, BufReader};
    let gateway = Gateway::start_exactly(DEMO);
    let folder = gateway.folder.path();
    let mut following = crate::rig::command(folder)
        .args(["logs", "-f", "--server", "demo"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    assert!(first.contains("ready: 4 tools"), "{first}");
    said(folder, &["restart", "demo"]);
    assert!(lines.any(|line| line.unwrap().contains("restarted by the operator")));
    let pid = note(&gateway)["pid"].to_string();
    assert!(std::process::Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    let done = following.wait_with_output().unwrap();
    assert_eq!(done.status.code(), Some(0), "{done:?}");
    assert!(String::from_utf8_lossy(&done.stderr).contains("the gateway has ended"), "{done:?}");
    until("it is gone", || refused(folder, &["restart", "demo"]).0 == Some(3));
}
