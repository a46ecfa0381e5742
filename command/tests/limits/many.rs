//! Many at once: to the unit.

use super::*;

const MANY: usize = 64;

/// Everybody remembers something of their own at once. How many could.
fn remember(callers: &[&Caller]) -> usize {
    let begin = std::sync::Barrier::new(MANY);
    let remembered = |at: usize| {
        let entity = json!({"name": format!("pearl {at}"), "entityType": "pearl", "observations": []});
        begin.wait();
        let answer = callers[at % callers.len()].call("create_entities", json!({"entities": [entity]}));
        assert_eq!(answer.status, 200, "{answer:?}");
        if !answer.is_fine() {
            assert_eq!(refusal(&answer.json())["symbol"], "RATE_LIMIT_ERROR", "{answer:?}");
        }
        answer.is_fine()
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..MANY).map(|at| scope.spawn(move || remembered(at))).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).filter(|fine| *fine).count()
    })
}

fn pearls(caller: &Caller) -> usize {
    let graph = caller.call("read_graph", json!({})).json();
    graph["result"]["structuredContent"]["entities"].as_array().unwrap_or_else(|| panic!("{graph}")).len()
}

#[test]
fn each_tenant_has_exactly_what_it_may() {
    let limits = "[limits]\ntenant = false\n[[limits.rules]]\ntools = [\"create_entities\"]\ntenant = { rate = \"10/h\" }\n";
    let gateway = Gateway::start(limits);
    let (ann, bob) = (member(&gateway, "ann", "reef"), member(&gateway, "bob", "reef"));
    let cid = member(&gateway, "cid", "tide");
    assert_eq!(remember(&[&ann, &bob, &cid]), 20);
    for caller in [&ann, &bob, &cid] {
        assert_eq!(pearls(caller), 10);
    }
}

#[test]
fn no_more_wait_than_may() {
    let limits = "[limits]\ntenant = { concurrent = 1, queue = 0 }\n[demo]\npace = \"10s\"\n";
    let gateway = Gateway::start(limits);
    let (ann, cid) = (member(&gateway, "ann", "reef"), member(&gateway, "cid", "tide"));
    let count = json!({"name": "demo_count", "arguments": {"to": 100}, "_meta": {"progressToken": 1}});
    let mut running = ann.open_modern("tools/call", count);
    running.until("notifications/progress");
    assert_eq!(remember(&[&ann]), 0, "the one place is taken");
    assert!(cid.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
    // Whoever hangs up makes room.
    drop(running);
    until("there is a place", || ann.call("demo_add", json!({"a": 1, "b": 2})).is_fine());
}
