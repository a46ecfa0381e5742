//! What whoever runs the gateway sees of calls that wait.

use super::*;
use crate::rig::SERVERS;

#[test]
fn the_page_of_this_machine_says_what_runs_and_waits() {
    let limits = "[limits]\ntenant = { concurrent = 1 }\n[demo]\npace = \"10s\"\n";
    let gateway = Gateway::start_exactly(&format!("{limits}{SERVERS}"));
    let caller = gateway.nobody();
    let page = || caller.send("GET", "/", &[], "").body;
    assert!(page().contains("<p>0 calls running, 0 waiting</p>"), "{}", page());
    let count = json!({"name": "demo_count", "arguments": {"to": 100}, "_meta": {"progressToken": 1}});
    let mut running = caller.open_modern("tools/call", count.clone());
    running.until("notifications/progress");
    let waiting = caller.open_modern("tools/call", count);
    until("one runs and one waits", || page().contains("<p>1 call running, 1 waiting</p>"));
    let page_now = page();
    assert!(page_now.contains("<td>1 of 1</td><td>1 of 100</td>"), "{page_now}");
    drop((running, waiting));
    until("nothing runs", || page().contains("<p>0 calls running, 0 waiting</p>"));
}

#[test]
fn which_limit_refused_a_call_is_in_the_log_and_in_the_trail() {
    let gateway = Gateway::start(
        "[limits]\ntenant = false\nuser = { rate = \"1/h\" }\n[audit]\nfile = \"audit.jsonl\"\n",
    );
    let ann = member(&gateway, "ann", "reef");
    let add = json!({"a": 1, "b": 2});
    assert!(ann.call("demo_add", add.clone()).is_fine());
    ann.call("demo_add", add);
    assert_eq!(ann.modern("tools/list", json!({})).status, 429);
    let limit = json!({"scope": "user", "rate": "1/h"});
    gateway.logs(r#" limit={"scope":"user","rate":"1/h"}"#);
    let refused = || {
        let trail = std::fs::read_to_string(gateway.folder.path().join("audit.jsonl")).unwrap();
        let records = trail.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        records.filter(|record| record["error"] == "RATE_LIMIT_ERROR").collect::<Vec<_>>()
    };
    until("both are recorded", || refused().len() == 2);
    for record in refused() {
        let said: Value = serde_json::from_str(record["limit"].as_str().unwrap()).unwrap();
        assert_eq!(said, limit, "{record}");
    }
    let outcomes = refused().iter().map(|record| record["outcome"].clone()).collect::<Vec<_>>();
    assert_eq!(outcomes, ["tool_error", "error"]);
}

#[test]
fn lists_are_as_long_as_they_are() {
    let limits = "[limits]\ntenant = false\nuser = { response = \"64B\" }\n";
    let gateway = Gateway::start(limits);
    let ann = member(&gateway, "ann", "reef");
    let session = ann.session();
    for answer in [ann.modern("tools/list", json!({})), ann.in_session(&session, "tools/list", json!({}))] {
        assert!(answer.is_fine() && answer.body.len() > 64, "{answer:?}");
    }
    let long = ann.call("demo_echo", json!({"message": "x".repeat(100)}));
    assert!(!long.is_fine() && !long.body.contains("xxxx"), "{long:?}");
}
