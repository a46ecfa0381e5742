//! What is heard: changes are told to those whose they are, in both eras.

use serde_json::json;

use super::features::remember;
use crate::http::{Stream, until};
use crate::rig::{ANN, CID, Caller, Gateway, MOVED};

const GRAPH: &str = "memory://knowledge-graph";

/// Somebody who listens for changes of the graph.
struct Listener {
    name: String,
    stream: Stream,
}

/// Listens as a client of 2026-07-28.
fn modern(who: &Caller, name: &str) -> Listener {
    let wanted = json!({"notifications": {"resourceSubscriptions": [GRAPH]}});
    let mut stream = who.open_modern("subscriptions/listen", wanted);
    stream.until("acknowledged");
    Listener { name: format!("{name}, 2026-07-28"), stream }
}

/// Listens as a client of 2025-11-25.
fn legacy(who: &Caller, name: &str) -> Listener {
    let session = who.session();
    let mut stream = who.stream(&session, &[]);
    assert_eq!(stream.status(), 200);
    let subscribed = who.in_session(&session, "resources/subscribe", json!({"uri": GRAPH}));
    assert!(subscribed.is_fine(), "{subscribed:?}");
    Listener { name: format!("{name}, 2025-11-25"), stream }
}

impl Listener {
    /// How often it has heard of a change so far.
    fn heard(&self) -> usize {
        self.stream.text().matches("notifications/resources/updated").count()
    }

    fn hears(&mut self) {
        self.stream.until("notifications/resources/updated");
    }
}

#[test]
fn changes_are_told_within_a_tenant() {
    let gateway = Gateway::start("");
    let (ann, cid, moved) = (gateway.as_user(ANN), gateway.as_user(CID), gateway.as_user(MOVED));
    // The memory is opened by whoever calls first.
    remember(&ann);
    remember(&cid);
    let mut anns = [modern(&ann, "Ann"), legacy(&ann, "Ann")];
    let mut others = [modern(&cid, "Cid"), legacy(&cid, "Cid"), modern(&moved, "Ann of another tenant")];
    remember(&ann);
    for listener in &mut anns {
        listener.hears();
    }
    for listener in &others {
        assert_eq!(listener.heard(), 0, "{}", listener.name);
    }
    // What they hear is their own: had there been something of Ann's, it would have come before.
    remember(&cid);
    for listener in &mut others {
        listener.hears();
        assert_eq!(listener.heard(), 1, "{}: {}", listener.name, listener.stream.text());
    }
    let before: Vec<usize> = anns.iter().map(Listener::heard).collect();
    remember(&ann);
    for (listener, before) in anns.iter_mut().zip(before) {
        until("the next change is told", || {
            listener.stream.ends_within(std::time::Duration::from_millis(50));
            listener.heard() > before
        });
    }
}
