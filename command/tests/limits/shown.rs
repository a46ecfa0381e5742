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
