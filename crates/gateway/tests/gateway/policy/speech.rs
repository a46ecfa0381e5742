//! What a server says outside of calls: nobody knows what it is about, so it is for those who may have everything of it.

use std::sync::Arc;

use serde_json::json;
use tidegate_service::{Notice, Outbox, Principal};

use super::{caller_of, compiled, listening, policy, rule};
use crate::rig::{settings, started, until};

#[tokio::test]
async fn log_messages_are_heard_by_those_who_may_use_any_method() {
    let say = tokio::sync::broadcast::Sender::new(16);
    let mut settings = settings([crate::logs::speaker(say.clone())]);
    settings.auth = Some(Default::default());
    let rules = [
        rule("admin", 1, &["admin"]).allow(&["*"]),
        rule("dev", 2, &["dev"]).allow(&["tool:*", "prompt:*", "resource:*", "method:vendor/*"]),
        rule("guest", 3, &["guest"]).allow(&["speaker_x"]),
        rule("ops", 4, &["ops"]).allow(&["method:*"]),
    ];
    settings.policy = Some(Arc::new(compiled(&policy(rules))));
    let gateway = started(settings).await;
    // One person with several roles, one after the other: the session in which the server speaks is theirs.
    let caller = |role: &str| {
        let mut caller = caller_of(role, false);
        caller.0.principal = Principal::subject("ann");
        caller
    };
    let listen =
        async |role: &str| listening(&caller(role), &gateway, json!({"toolsListChanged": true})).await.1;
    let (admin, ops) = (listen("admin").await, listen("ops").await);
    let hushed = [listen("dev").await, listen("guest").await, listen("nobody").await];
    // The first call opens the session.
    caller("admin").get(&gateway, "vendor/hello", json!({})).await;
    let heard = |events: &Outbox| matches!(events.try_next(), Some(Notice::Log(_)));
    until("that it is heard", async || {
        let params = json!({"level": "error", "data": "loud"});
        let _ = say.send(json!({"jsonrpc": "2.0", "method": "notifications/message", "params": params}));
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        heard(&admin)
    })
    .await;
    assert!(heard(&ops));
    for events in &hushed {
        assert!(!heard(events));
    }
    gateway.close().await;
}
