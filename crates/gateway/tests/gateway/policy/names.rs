//! Tools under other names than a rule has: what decides is the name that is listed, and there is no other.

use serde_json::json;
use tidegate_config::PinMode;

use super::{World, listed, role, rule};

#[tokio::test]
async fn a_tool_that_is_withheld_is_said_to_be_to_those_who_may_call_it() {
    let folder = tempfile::tempdir().unwrap();
    let world = World::with(super::roles(), |settings| {
        settings.tools.pin = PinMode::Locked;
        settings.tools.lock_file = folder.path().join("tidegate.lock");
    })
    .await;
    for (who, tool, said) in [
        ("admin", "reef_wipe", "withheld"),
        ("dev", "reef_read", "withheld"),
        // Not even with arguments that would not do.
        ("dev", "reef_write", "withheld"),
        ("dev", "reef_wipe", "Unknown tool"),
        ("guest", "reef_read", "Unknown tool"),
        ("nobody", "vault_read", "Unknown tool"),
        // What nobody has seen cannot be approved.
        ("admin", "reef_hidden", "Unknown tool"),
    ] {
        let reply = role(who).ask(&world.gateway, "tools/call", json!({"name": tool})).await;
        let text = super::text(&role(who), &reply);
        assert!(text.contains(said), "{who}: {tool}: {text}");
        assert_eq!(listed(&role(who), &world.gateway, "tools/list").await, [""; 0]);
    }
    assert_eq!(world.done.take().into_keys().filter(|what| !what.contains(' ')).count(), 0);
    world.gateway.close().await;
}
