//! Who may read, who may change, and who is told nothing.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};

use crate::http::{Answer, until};
use crate::rig::{Caller, Gateway, SERVERS};
use crate::{DEMO, json_said, note, refused, said, tidegate, url};

const RESTART: &str = "/api/servers/demo/restart";

fn get(caller: &Caller, path: &str) -> Answer {
    caller.send("GET", path, &[], "")
}

fn post(caller: &Caller, path: &str) -> Answer {
    caller.send("POST", path, &[], "")
}

#[test]
fn on_this_machine_everybody_reads_and_the_token_changes() {
    let gateway = Gateway::start_exactly(DEMO);
    let nobody = gateway.nobody();
    for path in [
        "/api/status",
        "/api/servers",
        "/api/servers/demo",
        "/api/calls",
        "/api/log/level",
        "/api/openapi.json",
    ] {
        let answer = get(&nobody, path);
        assert_eq!(
            (answer.status, answer.header("content-type")),
            (200, "application/json"),
            "{path} {answer:?}"
        );
        assert_eq!(
            (answer.header("cache-control"), answer.header("x-content-type-options")),
            ("no-store", "nosniff")
        );
    }
    // The log says more than other users of this machine see elsewhere.
    for (method, path, body) in [
        ("POST", RESTART, ""),
        ("POST", "/api/servers/demo/disable", ""),
        ("POST", "/api/servers/demo/enable", ""),
        ("POST", "/api/servers/demo/reset", ""),
        ("PUT", "/api/log/level", "{\"level\":\"trace\"}"),
        ("GET", "/api/logs", ""),
        ("GET", "/api/logs/stream", ""),
    ] {
        for wrong in [
            &[][..],
            &[("Authorization", "Bearer wrong")],
            &[("Authorization", "Basic eDp5")],
            &[("Authorization", "")],
        ] {
            let answer = nobody.send(method, path, wrong, body);
            assert_eq!(
                (answer.status, answer.header("www-authenticate")),
                (401, "Bearer"),
                "{path} {wrong:?}"
            );
            assert!(answer.json()["error"].as_str().unwrap().contains("token"), "{answer:?}");
        }
    }
    assert!(!gateway.log().contains("restarted by the operator"), "{}", gateway.log());
    let token = note(&gateway)["token"].as_str().unwrap().to_owned();
    let operator = gateway.with_token(&token);
    assert_eq!(post(&operator, RESTART).json()["changed"], true);
    assert!(get(&operator, "/api/logs").json()["lines"].as_array().is_some_and(|lines| !lines.is_empty()));
    // Two headers may have been read by two.
    let value = format!("Bearer {token}");
    let twice = nobody.send("POST", RESTART, &[("Authorization", &value), ("Authorization", &value)], "");
    assert_eq!(twice.status, 401);
    assert!(!gateway.log().contains(&token), "it is in no log line");
    let status = get(&nobody, "/api/status").body;
    assert!(!status.contains(&token), "{status}");
}

#[test]
fn the_files_are_the_users_own() {
    let gateway = Gateway::start_exactly(DEMO);
    let folder = gateway.folder.path().join("state/admin");
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    let files: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
    files.iter().for_each(|file| assert_eq!(mode(file), 0o600, "{file:?}"));
}

#[test]
fn a_web_page_of_somebody_else_gets_nothing() {
    let gateway = Gateway::start_exactly(DEMO);
    let token = note(&gateway)["token"].as_str().unwrap().to_owned();
    let value = format!("Bearer {token}");
    for (method, path) in
        [("GET", "/api/status"), ("GET", "/api/events"), ("POST", RESTART), ("OPTIONS", RESTART)]
    {
        for headers in [
            &[("Origin", "https://evil.example"), ("Authorization", &value)][..],
            &[("Origin", "null"), ("Authorization", &value)],
            &[("Host", "evil.example"), ("Authorization", &value)],
        ] {
            let answer = gateway.nobody().send(method, path, headers, "");
            assert_eq!(answer.status, 403, "{method} {path} {headers:?} {answer:?}");
            assert_eq!(answer.header("access-control-allow-origin"), "");
        }
    }
    assert!(!gateway.log().contains("restarted by the operator"));
}

const POLICY: &str = "[policy]\n[[policy.rules]]\nallow = [\"page:*\"]\nroles = [\"ops\"]\n[[policy.rules]]\nallow = [\"page:/api/*\"]\nroles = [\"reader\"]\n\
                      [[policy.rules]]\nallow = [\"page:POST:/api/servers/demo/restart\"]\nroles = [\"restarter\"]\n[[policy.rules]]\nallow = [\"tool:*\"]\n";

#[test]
fn with_keys_a_rule_decides_and_who_reads_does_not_change() {
    let with = |first: &str| POLICY.replacen("[policy]\n", first, 1);
    for policy in
        [with("[policy]\n"), with("[policy]\ndefault = \"allow\"\n"), with("[policy]\nmode = \"shadow\"\n")]
    {
        let gateway = Gateway::start(&policy);
        let key = |role: &str| gateway.with_token(&gateway.add_key(&[role, "--role", role]));
        let (ops, reader, restarter, other) = (key("ops"), key("reader"), key("restarter"), key("other"));
        until("the keys are known", || other.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
        let reads = [
            "/api/status",
            "/api/servers",
            "/api/servers/demo",
            "/api/calls",
            "/api/logs",
            "/api/log/level",
            "/api/openapi.json",
        ];
        for path in reads {
            let codes = [&ops, &reader, &restarter, &other].map(|caller| get(caller, path).status);
            assert_eq!(codes, [200, 200, 404, 404], "{path} {policy}");
            assert_eq!(get(&gateway.nobody(), path).status, 401, "{path}");
        }
        let codes = [&ops, &reader, &restarter, &other].map(|caller| post(caller, RESTART).status);
        assert_eq!(codes, [200, 404, 200, 404], "{policy}");
        // The log says who it was.
        gateway.logs("path=/api/servers/demo/restart way=credential subject=restarter");
        let level =
            |caller: &Caller| caller.send("PUT", "/api/log/level", &[], "{\"level\":\"info\"}").status;
        assert_eq!([&ops, &reader, &restarter, &other].map(level), [200, 404, 404, 404]);
        assert_eq!(post(&gateway.nobody(), RESTART).status, 401);
        // Nobody is told what there is by what may be done with it.
        assert_eq!([post(&other, "/api/status").status, post(&reader, "/api/status").status], [404, 405]);
    }
    // Without rules nobody may, however good the key is.
    let gateway = Gateway::start("");
    let key = gateway.with_token(&gateway.add_key(&["ann"]));
    until("the key is known", || key.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    assert_eq!([get(&key, "/api/status").status, post(&key, RESTART).status], [404, 404]);
}

#[test]
fn with_keys_commands_use_the_socket_or_a_key() {
    let gateway = Gateway::start(POLICY);
    let folder = gateway.folder.path();
    // Whoever can open the socket runs the gateway.
    assert_eq!(json_said(folder, &["status"])["running"], true);
    assert!(said(folder, &["restart", "demo"]).contains("Restarted"));
    assert_eq!(note(&gateway)["token"], Value::Null, "keys are for that");
    let key = |role: &str| format!("Authorization: Bearer {}", gateway.add_key(&[role, "--role", role]));
    let (reader, ops) = (key("reader"), key("ops"));
    let url = url(&gateway);
    until("the keys are known", || {
        tidegate(folder, &["status", "--url", &url, "-H", &reader]).status.success()
    });
    assert!(said(folder, &["list", "--url", &url, "-H", &reader]).contains("demo"));
    let (code, why) = refused(folder, &["restart", "demo", "--url", &url, "-H", &reader]);
    assert!(code == Some(2) && why.contains("does not restart servers, or not for you"), "{why}");
    assert!(said(folder, &["restart", "demo", "--url", &url, "-H", &ops]).contains("Restarted"));
    let (code, why) = refused(folder, &["status", "--url", &url]);
    assert!(code == Some(2) && why.contains("wants to know who asks"), "{why}");
}

#[test]
fn where_other_machines_come_without_keys_there_is_none() {
    let gateway = Gateway::start_exactly(&format!("public_url = \"https://mcp.example.com\"\n{SERVERS}"));
    let nobody = gateway.nobody();
    for path in ["/api/status", "/api/calls", "/api/openapi.json", "/metrics"] {
        assert_eq!(get(&nobody, path).status, 404, "{path}");
    }
    assert_eq!(post(&nobody, RESTART).status, 404);
    assert_eq!((get(&nobody, "/health").status, &note(&gateway)["url"]), (200, &Value::Null));
    assert_eq!(json_said(gateway.folder.path(), &["status"])["running"], true, "the socket is there");
}

#[test]
fn bad_requests_are_told_what_is_wrong() {
    let gateway = Gateway::start_exactly(DEMO);
    let operator = gateway.with_token(note(&gateway)["token"].as_str().unwrap());
    for (method, path, body, status, part) in [
        ("GET", "/api/nothing", "", 404, "not found"),
        ("GET", "/api", "", 404, "not found"),
        ("GET", "/api/servers/nobody", "", 404, "there is no server \"nobody\""),
        ("GET", "/api/servers/dmeo", "", 404, "did you mean \"demo\"?"),
        ("DELETE", "/api/servers/demo", "", 405, "use GET, HEAD"),
        ("GET", "/api/servers/demo/restart", "", 405, "use POST"),
        ("PATCH", "/api/log/level", "", 405, "use GET, HEAD, PUT"),
        ("GET", "/api/status?x=1", "", 400, "unknown parameter \"x\""),
        ("GET", "/api/logs?limit=0", "", 400, "limit must be a number from 1 to"),
        ("GET", "/api/logs?level=loud", "", 400, "level must be one of error, warn"),
        ("GET", "/api/logs?limit=1&limit=2", "", 400, "limit is there twice"),
        ("GET", "/api/logs?after=-1", "", 400, "after must be a number"),
        ("GET", "/api/calls?limit=9999", "", 400, "limit must be a number from 1 to 1000"),
        ("PUT", "/api/log/level", "", 400, "must be JSON"),
        ("PUT", "/api/log/level", "{}", 400, "the body must be {\"level\""),
        ("PUT", "/api/log/level", "[]", 400, "the body must be {\"level\""),
        ("PUT", "/api/log/level", "{\"level\":\"loud\"}", 400, "level: use error, warn"),
        ("PUT", "/api/log/level", "{\"level\":\"info\",\"x\":1}", 400, "unknown member \"x\""),
        ("POST", "/api/servers/demo/restart?now=1", "", 400, "unknown parameter \"now\""),
    ] {
        let answer = operator.send(method, path, &[], body);
        let why = answer.json()["error"].as_str().unwrap_or_default().to_owned();
        assert_eq!(answer.status, status, "{method} {path}: {answer:?}");
        assert!(why.contains(part), "{method} {path}: {why}");
    }
    let large = format!("{{\"level\":\"{}\"}}", "x".repeat(20_000));
    assert_eq!(operator.send("PUT", "/api/log/level", &[], &large).status, 413);
    let document = get(&gateway.nobody(), "/api/openapi.json").json();
    assert_eq!(
        (&document["openapi"], &document["paths"]["/api/logs"]["get"]["operationId"]),
        (&json!("3.1.0"), &json!("listLogs"))
    );
}
