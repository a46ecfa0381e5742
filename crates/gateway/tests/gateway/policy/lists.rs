//! What is listed, said and counted: what somebody may do, and nothing else.

use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use tidegate_config::ToolMode;
use tidegate_protocol::Symbol;
use tidegate_server::{CacheHint, Resource, Scope, Server};

use super::{World, caller_of, compiled, listed, policy, role, roles, rule};
use crate::rig::{local, settings, started};

#[tokio::test]
async fn lists_have_what_may_be_done() {
    let world = World::start(roles()).await;
    let all = |server: &str| {
        vec![
            ["read", "write", "wipe", "long", "longer"].map(|own| format!("{server}_{own}")).to_vec(),
            ["review", "ask", "plot"].map(|own| format!("{server}_{own}")).to_vec(),
            ["open", "secret"].map(|own| format!("{server}://{own}")).to_vec(),
            ["notes/{id}", "diaries/{id}"].map(|own| format!("{server}://{own}")).to_vec(),
        ]
    };
    let (reef, vault) = (all("reef"), all("vault"));
    let both: Vec<Vec<String>> =
        reef.iter().zip(&vault).map(|(reef, vault)| [&reef[..], &vault[..]].concat()).collect();
    let some = |lists: [&[&str]; 4]| lists.map(super::owned).to_vec();
    for (who, expected, own) in [
        (
            "admin",
            both,
            &["reef://notes/admin", "reef://diaries/admin", "vault://notes/admin", "vault://diaries/admin"][..],
        ),
        (
            "dev",
            some([
                &["reef_read", "reef_write", "reef_long"],
                &["reef_review", "reef_ask"],
                &["reef://open"],
                &["reef://notes/{id}"],
            ]),
            &["reef://notes/dev"],
        ),
        ("guest", some([&["vault_read"], &[], &[], &[]]), &[]),
        ("nobody", some([&[], &[], &[], &[]]), &[]),
    ] {
        for is_modern in [true, false] {
            let caller = caller_of(who, is_modern);
            let methods = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
            for (method, mut expected) in methods.into_iter().zip(expected.clone()) {
                if method == "resources/list" {
                    expected.extend(super::owned(own));
                }
                assert_eq!(listed(&caller, &world.gateway, method).await, expected, "{who}: {method}");
            }
        }
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn nobody_is_asked_for_what_is_theirs_who_may_not_have_it() {
    let world = World::start(roles()).await;
    for (who, is_asked) in [("dev", true), ("nobody", false)] {
        world.done.take();
        let page = role(who).get(&world.gateway, "resources/list", json!({})).await;
        let asked = world.done.take().keys().any(|what| what.ends_with("own resources"));
        assert_eq!(asked, is_asked, "{who}");
        assert!(
            who == "dev" || page.get("nextCursor").is_none(),
            "that there is more says that there is something"
        );
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn the_gateways_own_tools_are_for_those_who_are_known() {
    let world = World::with(roles(), |settings| settings.tools.mode = ToolMode::Search).await;
    for (who, count) in [("admin", 2), ("dev", 2), ("guest", 2), ("nobody", 0)] {
        assert_eq!(listed(&role(who), &world.gateway, "tools/list").await.len(), count, "{who}");
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn discovery_says_what_may_be_done() {
    let world = World::start(roles()).await;
    for (who, counts) in [
        ("admin", json!({"reef": 5, "vault": 5})),
        ("dev", json!({"reef": 3})),
        ("guest", json!({"vault": 1})),
        ("nobody", json!({})),
    ] {
        for is_modern in [true, false] {
            let about = caller_of(who, is_modern).get(&world.gateway, "server/discover", json!({})).await;
            let servers = about["_meta"]["dev.tidegate/servers"].as_object().unwrap();
            let seen: serde_json::Map<_, _> =
                servers.iter().map(|(name, one)| (name.clone(), one["tools"].clone())).collect();
            assert_eq!(json!(seen), counts, "{who}");
            let said = about["instructions"].as_str().unwrap_or_default();
            for server in ["reef", "vault"] {
                let knows = counts.get(server).is_some();
                assert_eq!(said.contains(&format!("How to use {server}")), knows, "{who}: {said}");
                let rest = about.to_string().replace(said, "");
                assert_eq!(rest.contains(server), knows, "{who}: {about}");
            }
        }
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn old_clients_find_in_the_capabilities_what_may_be_done() {
    let world = World::with(roles(), |settings| settings.tools.in_capabilities = true).await;
    for (who, count) in [("admin", 10), ("dev", 3), ("guest", 1), ("nobody", 0)] {
        let about = caller_of(who, false).get(&world.gateway, "server/discover", json!({})).await;
        let tools = about["capabilities"]["tools"].as_object().unwrap();
        assert_eq!(tools.keys().filter(|name| *name != "listChanged").count(), count, "{who}");
    }
    world.gateway.close().await;
}

#[tokio::test]
async fn a_cursor_is_good_for_its_view_and_its_policy() {
    let world = World::with(roles(), |settings| settings.tools.page_bytes = 1).await;
    // The same person with another role.
    let (admin, mut dev) = (role("admin"), role("dev"));
    dev.0.principal = admin.0.principal.clone();
    for method in ["tools/list", "prompts/list", "resources/list"] {
        let page = admin.get(&world.gateway, method, json!({})).await;
        let params = json!({"cursor": page["nextCursor"]});
        admin.get(&world.gateway, method, params.clone()).await;
        let refused = dev.fails(&world.gateway, method, params).await;
        assert_eq!(refused.symbol(), Symbol::InvalidCursor, "{method}");
    }
    let cursor = json!({"cursor": dev.get(&world.gateway, "tools/list", json!({})).await["nextCursor"]});
    dev.get(&world.gateway, "tools/list", cursor.clone()).await;
    world.reload(super::without_devs()).await;
    let refused = dev.fails(&world.gateway, "tools/list", cursor).await;
    assert_eq!(refused.symbol(), Symbol::InvalidCursor);
    world.gateway.close().await;
}

#[tokio::test]
async fn a_cursor_does_not_outlive_the_day_when_everybody_must_be_known() {
    let open = policy([rule("all", 1, &[]).allow(&["*_read", "*_write"])]);
    let world = World::with(open, |settings| {
        settings.tools.page_bytes = 1;
        settings.auth = None;
    })
    .await;
    let nobody = role("nobody");
    let cursor = json!({"cursor": nobody.get(&world.gateway, "tools/list", json!({})).await["nextCursor"]});
    nobody.get(&world.gateway, "tools/list", cursor.clone()).await;
    let settings = tidegate_config::Settings { auth: Some(Default::default()), ..world.settings.clone() };
    world.gateway.reload(settings).await.unwrap();
    let refused = nobody.fails(&world.gateway, "tools/list", cursor).await;
    assert_eq!(refused.symbol(), Symbol::InvalidCursor);
    world.gateway.close().await;
}

#[tokio::test]
async fn what_a_policy_decides_about_is_for_no_shared_cache() {
    let public = CacheHint { ttl: Duration::from_secs(60), scope: Scope::Public };
    for has_policy in [true, false] {
        let server = Server::new("s", "1").cache(public).resource(Resource::text("s://a", "a", "a"));
        let mut settings = settings([local("s", server)]);
        let rules = policy([rule("all", 1, &["admin"]).allow(&["*"])]);
        settings.policy = has_policy.then(|| Arc::new(compiled(&rules)));
        let gateway = started(settings).await;
        let expected = if has_policy { "private" } else { "public" };
        for (method, params) in [("resources/read", json!({"uri": "s://a"})), ("resources/list", json!({}))] {
            let result = role("admin").get(&gateway, method, params).await;
            assert_eq!(result["cacheScope"], expected, "{method}");
        }
        gateway.close().await;
    }
}
