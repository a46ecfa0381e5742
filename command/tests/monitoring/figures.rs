//! What is measured besides calls: what is open with servers and callers, caches, bytes, limits, and the names of it all.

use std::collections::BTreeMap;

use serde_json::json;
use tidegate::edge::Eras;

use crate::http::until;
use crate::rig::{Caller, Gateway, SERVERS};
use crate::upstream::Upstream;
use crate::upstreams::workshop;
use crate::{get, metrics};

fn of_server(figures: &BTreeMap<String, f64>, series: &str, server: &str) -> f64 {
    figures[&format!("{series}{{tidegate_server=\"{server}\"}}")]
}

#[test]
fn what_is_open_with_servers_is_counted() {
    let program = env!("CARGO_BIN_EXE_tidegate");
    let gateway = Gateway::start_exactly(&format!(
        "[servers.child]\ncommand = [{program:?}, \"serve\", \"--stdio\", \"--demo\"]\n\
         [servers.old]\nurl = \"http://{}/mcp\"\n",
        workshop(Eras::Legacy)
    ));
    let caller = gateway.nobody();
    assert!(caller.call("child_add", json!({"a": 1, "b": 2})).is_fine());
    let figures = metrics(&caller);
    assert_eq!(of_server(&figures, "tidegate_server_processes", "child"), 1.0, "{figures:#?}");
    assert_eq!(of_server(&figures, "tidegate_server_processes", "old"), 0.0);
    assert_eq!(of_server(&figures, "tidegate_server_sessions", "child"), 0.0, "it is modern");
    assert!(of_server(&figures, "tidegate_server_sessions", "old") >= 1.0, "{figures:#?}");
    assert!(of_server(&figures, "tidegate_server_subscriptions", "child") >= 1.0, "{figures:#?}");

    assert_eq!(of_server(&figures, "tidegate_server_calls_parked", "old"), 0.0);
    let asked = caller.call("old_ask", json!({})).json();
    assert_eq!(asked["result"]["resultType"], "input_required", "{asked}");
    assert_eq!(of_server(&metrics(&caller), "tidegate_server_calls_parked", "old"), 1.0);
    let key = asked["result"]["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let answer = json!({"name": "old_ask", "arguments": {}, "requestState": asked["result"]["requestState"],
        "inputResponses": {key: {"action": "accept", "content": {"name": "Olga"}}}});
    assert!(caller.modern("tools/call", answer).is_fine());
    assert_eq!(of_server(&metrics(&caller), "tidegate_server_calls_parked", "old"), 0.0);

    let attempts = "mcp_client_operation_duration_seconds_count{mcp_method_name=\"tools/call\",gen_ai_tool_name=\"child_add\",\
                    tidegate_server=\"child\",tidegate_outcome=\"ok\"}";
    assert_eq!(metrics(&caller)[attempts], 1.0);
}

#[test]
fn subscriptions_and_sessions_of_callers_are_counted() {
    let gateway = Gateway::start_exactly(SERVERS);
    let caller = gateway.nobody();
    assert_eq!(metrics(&caller)["tidegate_subscriptions"], 0.0);
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let mut stream = caller.open_modern("subscriptions/listen", wanted);
    stream.until("acknowledged");
    assert_eq!(metrics(&caller)["tidegate_subscriptions"], 1.0);
    drop(stream);
    until("it is over", || metrics(&caller)["tidegate_subscriptions"] == 0.0);

    let lasted = "mcp_server_session_duration_seconds_count";
    let session = caller.session();
    assert_eq!((metrics(&caller)["tidegate_sessions"], metrics(&caller)[lasted]), (1.0, 0.0));
    assert!(caller.end(&session).status < 300);
    until("the session is over", || metrics(&caller)[lasted] == 1.0);
}

#[test]
fn bytes_of_messages_are_counted_and_nothing_else() {
    let gateway = Gateway::start_exactly(SERVERS);
    let caller = gateway.nobody();
    let bytes = || {
        ["received", "sent"]
            .map(|way| metrics(&caller)[&format!("tidegate_{way}_bytes_total{{network_transport=\"tcp\"}}")])
    };
    let [received, sent] = bytes();
    assert_eq!(bytes(), [received, sent], "pages are no messages");
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string();
    let answer = caller.send("POST", "/mcp", &[], &body);
    let expected = [received + body.len() as f64, sent + answer.body.len() as f64];
    assert_eq!(bytes(), expected, "{answer:?}");
    assert_eq!(metrics(&caller)["tidegate_sent_bytes_total{network_transport=\"pipe\"}"], 0.0);
}

#[test]
fn credentials_that_are_known_are_cache_hits() {
    let gateway = Gateway::start("");
    let key = gateway.add_key(&["olga", "--scope", "mcp"]);
    let caller = gateway.with_token(&key);
    until("the key is known", || get(&caller, "/metrics").status == 200);
    let looked_up = |caller: &Caller| {
        let figures = metrics(caller);
        ["hits", "misses"]
            .map(|what| figures[&format!("tidegate_cache_{what}_total{{tidegate_cache=\"credentials\"}}")])
    };
    let [hits, misses] = looked_up(&caller);
    assert!(misses >= 1.0, "the first one was verified");
    assert_eq!(looked_up(&caller), [hits + 1.0, misses]);
    assert_eq!(gateway.with_token("nonsense").send("GET", "/metrics", &[], "").status, 401);
    assert_eq!(looked_up(&caller), [hits + 2.0, misses + 1.0]);
}

#[test]
fn what_is_left_of_limits_is_shown_and_not_to_whom() {
    let gateway = Gateway::start_exactly(&format!(
        "{SERVERS}[limits]\ntenant = false\nuser = {{ rate = \"4/h\", concurrent = 5 }}\ntool = {{ rate = \"100/h\" }}\n"
    ));
    let caller = gateway.nobody();
    let left = |what: &str, scope: &str| {
        metrics(&caller)
            .get(&format!("tidegate_limit_{what}_left_ratio{{tidegate_scope=\"{scope}\"}}"))
            .copied()
    };
    assert_eq!((left("rate", "user"), left("places", "user")), (Some(1.0), Some(1.0)));
    for _ in 0..4 {
        assert!(caller.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    }
    assert!(!caller.call("demo_add", json!({"a": 1, "b": 2})).is_fine(), "there were four");
    // It fills up again, slowly.
    assert!(left("rate", "user").unwrap() < 0.01 && left("rate", "tool").unwrap() < 0.97);
    assert_eq!((left("rate", "tenant"), left("places", "tool"), left("rate", "server")), (None, None, None));
}

#[test]
fn percolate_has_names_of_its_own() {
    let gateway = Gateway::start_exactly(&format!("[telemetry]\nnames = \"percolate\"\n{SERVERS}"));
    let caller = gateway.nobody();
    assert!(caller.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    let call = "{mcp_tool_name=\"demo_add\",tidegate_server=\"demo\",tidegate_outcome=\"ok\"}";
    until("it is counted", || metrics(&caller).contains_key(&format!("mcp_tool_duration_ms_count{call}")));
    let figures = metrics(&caller);
    assert_eq!(figures["mcp_tool_error_rate{mcp_tool_name=\"demo_add\"}"], 0.0, "{figures:#?}");
    assert!(figures.keys().all(|series| !series.starts_with("tidegate_cache_")), "{figures:#?}");
    assert!(figures.keys().all(|series| {
        !series.starts_with("mcp_server_operation") || !series.contains("mcp_method_name=\"tools/call\"")
    }));
}

/// Neither callers nor servers make the figures grow without bound.
#[test]
fn ten_thousand_names_of_tools() {
    let upstream = Upstream::start((0..10_000).map(|at| format!("tool_{at}")).collect());
    let gateway = Gateway::start_exactly(&format!(
        "[servers.many]\nurl = \"http://{}/mcp\"\nprefix = \"\"\n",
        upstream.address
    ));
    let caller = gateway.nobody();
    until("they are listed", || {
        let listed = metrics(&caller).get("tidegate_server_tools{tidegate_server=\"many\"}").copied();
        listed == Some(10_000.0)
    });
    // Each name is called once, and some that nobody has.
    let session = caller.session();
    let known = (0..1_200).map(|at| format!("tool_{at}"));
    for name in known.chain((0..100).map(|at| format!("made_up_{at}"))) {
        caller.in_session(&session, "tools/call", json!({"name": name, "arguments": {}}));
    }
    let figures = metrics(&caller);
    let count = |start: &str| figures.keys().filter(|series| series.starts_with(start)).count();
    for histogram in ["mcp_server_operation_duration_seconds", "mcp_client_operation_duration_seconds"] {
        let series = count(&format!("{histogram}_count"));
        assert!((1_000..1_020).contains(&series), "{histogram}: {series}");
    }
    assert!(!figures.keys().any(|series| series.contains("made_up")));
    let calls: f64 = figures
        .iter()
        .filter(|(series, _)| {
            series.starts_with("mcp_server_operation_duration_seconds_count{mcp_method_name=\"tools/call\"")
        })
        .map(|(_, count)| count)
        .sum();
    assert_eq!(calls, 1_300.0, "none is lost");
    assert!(get(&caller, "/metrics").body.len() < 16 << 20);
}
