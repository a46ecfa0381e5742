//! Shadow mode: everything is decided, and nothing is hidden or refused.

use serde_json::json;
use tidegate_protocol::Symbol;

use super::records::Records;
use super::{World, in_shadow, listed, role, roles};
use crate::rig::keys;

const LISTS: [&str; 4] = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];

#[tokio::test]
async fn nothing_is_hidden_or_refused_and_the_record_says_what_would_be() {
    let world = World::start(in_shadow(roles())).await;
    let (records, guest) = Records::of("guest in the shadow", "guest");
    for method in LISTS {
        let seen = listed(&guest, &world.gateway, method).await;
        assert!(seen.iter().any(|name| name.starts_with("reef")), "{method}: {seen:?}");
    }
    let by_default = ("would_refuse", "default", Some(5));
    for (method, params, what, decision) in [
        ("tools/call", json!({"name": "reef_wipe"}), "reef_wipe", by_default),
        ("tools/call", json!({"name": "reef_buried"}), "reef_buried", by_default),
        ("tools/call", json!({"name": "vault_read"}), "vault_read", ("allowed", "guest", Some(40))),
        ("prompts/get", json!({"name": "reef_plot"}), "reef_plot", by_default),
        ("resources/read", json!({"uri": "reef://secret"}), "reef://secret", by_default),
        ("vendor/other", json!({"uri": "reef://open"}), "reef vendor/other", by_default),
    ] {
        records.take();
        world.done.take();
        guest.get(&world.gateway, method, params).await;
        assert_eq!(world.done.count(what), 1, "{what}");
        let (word, rule, line) = decision;
        let expected = format!("{method} {word} by {rule} at {line:?}");
        assert_eq!(records.decisions(), [expected], "{what}");
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn a_rule_that_would_deny_is_named() {
    let mut policy = roles();
    policy.rules.insert(0, super::rule("no wiping", 7, &[]).deny(&["*_wipe"]).0);
    let world = World::start(in_shadow(policy)).await;
    let (records, admin) = Records::of("admin in the shadow", "admin");
    assert!(listed(&admin, &world.gateway, "tools/list").await.contains(&"reef_wipe".to_owned()));
    records.take();
    admin.get(&world.gateway, "tools/call", json!({"name": "reef_wipe"})).await;
    assert_eq!(records.decisions(), ["tools/call would_refuse by no wiping at Some(7)"]);
    assert_eq!(world.done.count("reef_wipe"), 1);
    world.gateway.close().await;
}

#[tokio::test]
async fn who_is_unknown_is_refused_in_any_mode() {
    let world = World::start(in_shadow(roles())).await;
    let nobody = role("nobody");
    for method in LISTS {
        assert_eq!(keys(&nobody.get(&world.gateway, method, json!({})).await), [""; 0], "{method}");
    }
    let error = nobody.fails(&world.gateway, "tools/call", json!({"name": "reef_read"})).await;
    assert_eq!(error.symbol(), Symbol::ToolNotFound);
    world.gateway.close().await;
}
