//! Metadata of protected resources (RFC 9728).

use serde_json::json;

use crate::common::{Gateway, unreachable_issuer};

const ROOT: &str = "/.well-known/oauth-protected-resource";

#[tokio::test]
async fn each_endpoint_has_a_document_and_the_default_one_two() {
    let gateway = Gateway::start(|auth| {
        auth.introspection = vec![unreachable_issuer(), unreachable_issuer()];
        auth.scopes.required = vec!["mcp".into()];
    })
    .await;
    let default = gateway.get(ROOT).send().await;
    assert_eq!((default.status, default.header("access-control-allow-origin")), (200, "*"));
    let default = default.json().await;
    assert_eq!(
        default,
        json!({
            "resource": "https://mcp.example.com/mcp",
            "authorization_servers": ["http://127.0.0.1:9"],
            "scopes_supported": ["mcp"],
            "bearer_methods_supported": ["header"],
            "resource_name": "Tidegate",
        })
    );
    assert_eq!(gateway.get(&format!("{ROOT}/mcp")).send().await.json().await, default);
    let research = gateway.get(&format!("{ROOT}/research/mcp")).send().await.json().await;
    assert_eq!(research["resource"], "https://mcp.example.com/research/mcp");
    for (method, path, status) in [
        ("HEAD", ROOT.to_owned(), 200),
        ("POST", ROOT.to_owned(), 405),
        ("GET", format!("{ROOT}/nowhere"), 404),
        ("GET", format!("{ROOT}x"), 401),
        ("GET", "/.well-known/oauth-authorization-server".to_owned(), 404),
        ("GET", "/.well-known/openid-configuration/mcp".to_owned(), 404),
    ] {
        assert_eq!(gateway.ask(method, &path).send().await.status, status, "{method} {path}");
    }
}

#[tokio::test]
async fn a_forged_host_appears_nowhere() {
    let gateway = Gateway::start(|auth| auth.introspection = vec![unreachable_issuer()]).await;
    let mut ask = gateway.get(ROOT);
    ask = ask.header("x-forwarded-host", "evil.example.com").header("forwarded", "host=evil.example.com");
    assert!(!ask.send().await.text().await.contains("evil"));
}

#[tokio::test]
async fn keys_alone_have_no_metadata() {
    let gateway = Gateway::start(|_| {}).await;
    for path in [ROOT.to_owned(), format!("{ROOT}/mcp")] {
        assert_eq!(gateway.get(&path).send().await.status, 404, "{path}");
    }
}
