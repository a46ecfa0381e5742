//! Alerts of the built program: they begin when a server fails, in the log, at `/health` and at `/metrics`, and end when it is well again.

use serde_json::{Value, json};

use crate::http::until;
use crate::rig::Gateway;
use crate::upstream::Upstream;
use crate::{get, metrics};

#[test]
fn a_server_that_fails_is_an_alert_until_it_is_well_again() {
    let upstream = Upstream::start(vec!["search".to_owned()]);
    // Everything is as usual, and quick.
    let gateway = Gateway::start_exactly(&format!(
        "[servers.library]\nurl = \"http://{}/mcp\"\nretry = false\nbreaker = {{ failures = 5, open_for = \"300ms\" }}\n\
         [telemetry.health]\nmin_calls = 5\nwindow = \"2s\"\nevery = \"100ms\"\n",
        upstream.address
    ));
    let caller = gateway.nobody();
    let call = || caller.call("library_search", json!({})).is_fine();
    let health = || get(&caller, "/health").json();
    let alert = |name: &str| metrics(&caller)[&format!("tidegate_alert{{tidegate_alert_name=\"{name}\"}}")];
    assert!(call());
    assert_eq!((health()["status"].clone(), health()["alerts"].clone()), (json!("healthy"), json!({})));
    assert_eq!(["success_rate", "circuit"].map(alert), [0.0, 0.0]);

    upstream.fails(true);
    until("both alerts are on", || {
        assert!(!call(), "it does not answer");
        let alerts = health()["alerts"].clone();
        ["success_rate", "circuit"].iter().all(|name| alerts[name].is_string())
    });
    // It closes for a moment whenever a call may try, and opens again.
    until("they are figures, too", || {
        call();
        ["success_rate", "circuit"].map(alert) == [1.0, 1.0]
    });
    let said: Value = health();
    assert_eq!(said["status"], "unhealthy", "{said}");
    assert!(said["alerts"]["success_rate"].as_str().unwrap().contains("calls of the last 2 s"), "{said}");
    gateway.logs("alert: 1 circuit breaker is open: library");
    gateway.logs("% of ");

    upstream.fails(false);
    until("both are over", || {
        call();
        health()["alerts"] == json!({}) && ["success_rate", "circuit"].map(alert) == [0.0, 0.0]
    });
    until("it is well", || health()["status"] == "healthy");
    gateway.logs("over: 1 circuit breaker is open: library");
    assert!(metrics(&caller)["tidegate_circuit_opened_total{tidegate_server=\"library\"}"] >= 1.0);
}
