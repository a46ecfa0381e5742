//! Tools under other names than a rule has: what decides is the name that is listed, and there is no other.

use serde_json::json;
use tidegate_config::{PinMode, ToolOverride};
use tidegate_protocol::Symbol;
use tidegate_service::UNLISTED;

use super::{World, listed, policy, role, rule};
use crate::rig::keys;

#[tokio::test]
async fn a_tool_that_the_configuration_renames_has_no_other_name() {
    let rules = [rule("no wiping", 1, &[]).deny(&["destroy"]), rule("rest", 2, &[]).allow(&["*"])];
    let world = World::with(policy(rules), |settings| {
        let renamed = ToolOverride { name: Some("destroy".to_owned()), description: None };
        settings.servers[0].tools.insert("wipe".to_owned(), renamed);
        settings.servers[0] = settings.servers[0].clone().seal();
    })
    .await;
    let dev = role("dev");
    let tools = listed(&dev, &world.gateway, "tools/list").await;
    assert!(!tools.iter().any(|name| name == "destroy" || name == "reef_wipe"), "{tools:?}");
    // The server has tools that nobody lists, so it might be asked for anything with its prefix.
    for name in ["destroy", "reef_wipe"] {
        let error = dev.fails(&world.gateway, "tools/call", json!({"name": name})).await;
        assert_eq!(error.symbol(), Symbol::ToolNotFound, "{name}");
        let definition = dev.get(&world.gateway, "tools/list", json!({"_meta": {UNLISTED: name}})).await;
        assert_eq!(keys(&definition), [""; 0], "{name}");
    }
    assert_eq!(world.done.count("reef_wipe"), 0);
    world.gateway.close().await;
}

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
