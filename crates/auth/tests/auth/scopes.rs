//! Scopes that everything needs, and those that some tools need.

use std::collections::BTreeMap;

use tidegate_auth::keys::NewKey;
use tidegate_config::{AuthSettings, Patterns};

use crate::common::{Gateway, unreachable_issuer};

fn scopes(auth: &mut AuthSettings) {
    auth.introspection = vec![unreachable_issuer()];
    auth.scopes.required = vec!["mcp".into()];
    auth.scopes.tools = vec![("files:write".into(), Patterns::new(["fs_write"]).unwrap())];
    auth.scopes.includes = BTreeMap::from([("files:admin".into(), vec!["files:write".into()])]);
}

fn key(name: &str, scopes: Option<&[&str]>) -> NewKey {
    let scopes = scopes.map(|all| all.iter().map(|one| one.to_string()).collect());
    NewKey { name: name.into(), scopes, ..NewKey::default() }
}

const META: &str = "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"";

#[tokio::test]
async fn without_a_base_scope_nothing_is_served() {
    let gateway = Gateway::start(scopes).await;
    let none = gateway.key(key("none", Some(&[]))).await;
    let told = gateway.tool("who").bearer(&none).challenge().await;
    assert!(
        told.starts_with(&format!("403 Bearer {META}, scope=\"mcp\", error=\"insufficient_scope\"")),
        "{told}"
    );
    assert_eq!(gateway.get("/").bearer(&none).send().await.status, 403);
}

#[tokio::test]
async fn a_tool_that_needs_more_names_all_that_it_needs() {
    let gateway = Gateway::start(scopes).await;
    let base = gateway.key(key("base", Some(&["mcp"]))).await;
    assert_eq!(gateway.tool("who").bearer(&base).send().await.status, 200);
    let refused = gateway.tool("fs_write").bearer(&base).send().await;
    let told = refused.header("www-authenticate").to_owned();
    let expected = format!("Bearer {META}, scope=\"mcp files:write\", error=\"insufficient_scope\"");
    assert_eq!(refused.status, 403);
    assert!(told.starts_with(&expected), "{told}");
    assert_eq!(
        refused.json().await["error"]["data"]["requiredScopes"],
        serde_json::json!(["mcp", "files:write"])
    );
    for (name, scopes) in [("admin", Some(&["mcp", "files:admin"][..])), ("free", None)] {
        let enough = gateway.key(key(name, scopes)).await;
        assert_eq!(gateway.tool("fs_write").bearer(&enough).send().await.status, 200, "{name}");
    }
}

#[tokio::test]
async fn with_keys_alone_scopes_are_named_too() {
    let gateway = Gateway::start(|auth| {
        scopes(auth);
        auth.introspection.clear();
    })
    .await;
    let none = gateway.key(key("none", Some(&[]))).await;
    let told = gateway.tool("who").bearer(&none).challenge().await;
    assert!(told.starts_with("403 Bearer scope=\"mcp\", error=\"insufficient_scope\""), "{told}");
}
