//! What operators and their tools see of a running gateway: `/metrics`, `/health`, `/ready` and `/live` of the built program.
#![cfg(unix)]

#[path = "../identity/http.rs"]
#[allow(dead_code)]
mod http;
#[path = "../identity/issuer.rs"]
#[allow(dead_code)]
mod issuer;
#[path = "../identity/message_server.rs"]
mod message_server;
#[path = "../identity/rig.rs"]
#[allow(dead_code)]
mod rig;

#[path = "../identity/upstreams.rs"]
#[allow(dead_code)]
mod upstreams;

mod alerts;
mod chaos;
mod collector;
mod explain;
mod figures;
mod log_file;
mod unread_log;
mod upstream;

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::http::{Answer, until};
use crate::rig::{Caller, Gateway, SERVERS};

fn get(caller: &Caller, path: &str) -> Answer {
    caller.send("GET", path, &[], "")
}

fn metrics(caller: &Caller) -> BTreeMap<String, f64> {
    let answer = get(caller, "/metrics");
    assert_eq!(
        (answer.status, answer.header("content-type")),
        (200, "text/plain; version=0.0.4; charset=utf-8")
    );
    let lines = answer.body.lines().filter(|line| !line.starts_with('#'));
    let read = |line: &str| {
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        (series.to_owned(), value.parse().unwrap_or_else(|_| panic!("{line}")))
    };
    lines.map(read).collect()
}

#[test]
fn calls_are_counted_and_timed_and_names_that_somebody_made_up_are_no_labels() {
    let gateway = Gateway::start_exactly(SERVERS);
    let caller = gateway.nobody();
    for _ in 0..3 {
        assert!(caller.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    }
    for at in 0..50 {
        caller.call(&format!("demo_made_up_{at}"), json!({}));
        caller.modern(&format!("vendor/made-up-{at}"), json!({}));
    }
    let count = |tool: &str, outcome: &str| {
        format!(
            "mcp_server_operation_duration_seconds_count{{mcp_method_name=\"tools/call\",gen_ai_tool_name=\"{tool}\",\
             tidegate_server=\"demo\",tidegate_outcome=\"{outcome}\"}}"
        )
    };
    until("three calls are counted", || metrics(&caller).get(&count("demo_add", "ok")) == Some(&3.0));
    let seen = metrics(&caller);
    assert!(!seen.keys().any(|series| series.contains("made")), "{seen:#?}");
    assert_eq!(seen["tidegate_errors_total{error_type=\"TOOL_NOT_FOUND\"}"], 50.0, "{seen:#?}");
    assert_eq!(seen["tidegate_server_up{tidegate_server=\"demo\"}"], 1.0);
    assert_eq!(seen["tidegate_circuit_state{tidegate_server=\"demo\"}"], 0.0);
    assert!(seen["tidegate_buffered_limit_bytes"] > 0.0 && seen["process_resident_memory_bytes"] > 1e6);
    // In the bucket of everything is everything.
    let all = count("demo_add", "ok").replace("_count{", "_bucket{").replace('}', ",le=\"+Inf\"}");
    assert_eq!(seen[&all], 3.0, "{seen:#?}");
    caller.session();
    assert_eq!(metrics(&caller)["tidegate_sessions"], 1.0);
    let open =
        caller.send("GET", "/metrics", &[("Accept", "application/openmetrics-text; version=1.0.0")], "");
    assert!(
        open.header("content-type").starts_with("application/openmetrics-text")
            && open.body.ends_with("# EOF\n")
    );
}

#[test]
fn how_it_is_is_said_to_everybody_and_why_to_those_who_may_know() {
    let gateway = Gateway::start("[policy]\n[[policy.rules]]\nallow = [\"*\"]\nroles = [\"ops\"]\n");
    let ops = gateway.with_token(&gateway.add_key(&["olga", "--role", "ops"]));
    let other = gateway.with_token(&gateway.add_key(&["bob", "--role", "dev"]));
    until("the keys are known", || get(&ops, "/metrics").status == 200 && get(&other, "/").status != 401);
    let nobody = gateway.nobody();
    for (path, status) in [("/health", "healthy"), ("/ready", "ready"), ("/live", "alive")] {
        let answer = get(&nobody, path);
        assert_eq!((answer.status, &answer.json()["status"]), (200, &json!(status)), "{path}: {answer:?}");
        assert_eq!(answer.header("cache-control"), "no-store");
        assert!(!answer.body.contains("demo"), "{answer:?}");
        assert_eq!(nobody.send("POST", path, &[], "{}").status, 405, "{path}");
    }
    assert_eq!([&nobody, &other, &ops].map(|caller| get(caller, "/metrics").status), [401, 404, 200]);
    let health = get(&ops, "/health").json();
    assert_eq!(health["circuitBreaker"], "CLOSED", "{health}");
    assert_eq!(health["servers"]["demo"]["health"], "ready", "{health}");
    assert!(health["stats"]["requestCount"].is_u64() && health["uptime"].is_u64(), "{health}");
    assert_eq!(get(&other, "/health").json().get("servers"), None);
    // A credential that is none is told so, but a probe is not in danger of it.
    let nonsense = gateway.with_token("nonsense");
    assert_eq!(["/health", "/ready", "/live"].map(|path| get(&nonsense, path).status), [401, 200, 200]);
}

#[test]
fn a_gateway_whose_servers_are_gone_is_neither_healthy_nor_ready() {
    let nowhere = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let gone = format!("[servers.gone]\nurl = \"http://{nowhere}/mcp\"\n");
    let gateway = Gateway::start_exactly(&gone);
    let caller = gateway.nobody();
    until("it is known", || get(&caller, "/health").status == 503);
    let health: Value = get(&caller, "/health").json();
    assert_eq!(
        (&health["status"], &health["servers"]["gone"]["health"]),
        (&json!("unhealthy"), &json!("down"))
    );
    let ready = get(&caller, "/ready");
    assert_eq!((ready.status, ready.header("retry-after")), (503, "1"), "{ready:?}");
    assert_eq!(get(&caller, "/live").status, 200);
    assert_eq!(metrics(&caller)["tidegate_server_up{tidegate_server=\"gone\"}"], 0.0);

    let half = Gateway::start_exactly(&format!("{gone}{SERVERS}"));
    let caller = half.nobody();
    until("it is known", || get(&caller, "/health").json()["status"] == "degraded");
    assert_eq!((get(&caller, "/health").status, get(&caller, "/ready").status), (200, 200));
}

#[test]
fn whoever_wants_no_figures_has_none() {
    let gateway = Gateway::start_exactly(&format!("[telemetry]\nmetrics = false\n{SERVERS}"));
    let caller = gateway.nobody();
    assert_eq!(get(&caller, "/metrics").status, 404);
    let health = get(&caller, "/health").json();
    assert_eq!((&health["status"], health.get("stats")), (&json!("healthy"), None));
    let nothing = Gateway::start_exactly(&format!("[telemetry]\nmetrics = false\nstories = 0\n{SERVERS}"));
    assert_eq!(get(&nothing.nobody(), "/api/calls").status, 404);
}

#[test]
fn where_others_connect_without_credentials_servers_have_no_names() {
    let gateway = Gateway::start_exactly(&format!("allow_hosts = [\"mcp.example.com\"]\n{SERVERS}"));
    let caller = gateway.nobody();
    assert_eq!(["/metrics", "/api/calls"].map(|path| get(&caller, path).status), [404, 404]);
    assert_eq!(get(&caller, "/health").json().get("servers"), None);
}

#[test]
fn no_page_is_hidden_by_the_endpoint() {
    for path in ["/health", "/ready", "/live", "/metrics", "/api/calls"] {
        let refused = Gateway::try_start(&format!("path = \"{path}\"\n{SERVERS}"));
        let (code, said) = refused.err().expect("it does not start");
        assert!(code == 2 && said.contains("is the path of a page of the gateway"), "{code}: {said}");
    }
}

/// Every series that the dashboard and the documentation name is one that there is.
#[test]
fn the_dashboard_shows_what_is_measured() {
    let known: Vec<String> = tidegate_telemetry::names::ALL.iter().map(|one| one.prometheus()).collect();
    let dashboard: Value = serde_json::from_str(include_str!("../../../docs/grafana.json")).unwrap();
    let targets =
        dashboard["panels"].as_array().unwrap().iter().flat_map(|panel| panel["targets"].as_array().unwrap());
    let queries: String = targets.map(|target| format!("{} ", target["expr"].as_str().unwrap())).collect();
    let words = |text: &str| -> Vec<String> {
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let words = text.split(|c: char| !is_word(c)).filter(|word| word.contains('_'));
        words.map(str::to_owned).collect()
    };
    let is_series =
        |word: &str| ["mcp_", "tidegate_", "process_"].iter().any(|start| word.starts_with(start));
    let is_label = |word: &str| {
        let attributes = tidegate_telemetry::names::ALL.iter().flat_map(|one| one.attributes);
        attributes.into_iter().any(|attribute| attribute.replace('.', "_") == word)
    };
    let page = include_str!("../../../docs/operating.md");
    // Parts of the program have levels of their own in the log: `tidegate_edge=debug`.
    let is_part = |word: &str| page.contains(&format!("{word}="));
    let is_figure = |word: &&String| is_series(word) && !is_label(word) && !is_part(word);
    for word in words(&queries).iter().chain(&words(page)).filter(is_figure) {
        let family = ["_total", "_bucket", "_count", "_sum"].iter().find_map(|end| word.strip_suffix(end));
        assert!(known.iter().any(|name| name == word || Some(name.as_str()) == family), "{word}");
    }
    for name in known.iter().filter(|name| !name.ends_with("build_info") && !name.contains("start_time")) {
        assert!(page.contains(name.as_str()), "{name} is not documented");
    }
}
