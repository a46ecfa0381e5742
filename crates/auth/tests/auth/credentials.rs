//! What is said to those who have no good credential.

use tidegate_auth::keys::NewKey;

use crate::common::{Gateway, unreachable_issuer};

const META: &str = "resource_metadata=\"https://mcp.example.com/.well-known/oauth-protected-resource/mcp\"";

#[tokio::test]
async fn nothing_is_served_without_a_credential() {
    let gateway = Gateway::start(|_| {}).await;
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("PUT", "/mcp"),
        ("POST", "/research/mcp"),
        ("GET", "/sse"),
        ("POST", "/messages?sessionId=x"),
        ("GET", "/"),
        ("GET", "/nowhere"),
    ] {
        // API keys alone: nowhere to get a token from.
        assert_eq!(gateway.ask(method, path).challenge().await, "401 Bearer", "{method} {path}");
    }
}

#[tokio::test]
async fn where_tokens_are_to_be_had_is_told_to_everybody() {
    let gateway = Gateway::start(|auth| {
        auth.introspection = vec![unreachable_issuer()];
        auth.scopes.required = vec!["mcp".into(), "offline_access".into()];
    })
    .await;
    assert_eq!(gateway.get("/mcp").challenge().await, format!("401 Bearer {META}, scope=\"mcp\""));
    let research = META.replace("/mcp\"", "/research/mcp\"");
    assert_eq!(
        gateway.get("/research/mcp").challenge().await,
        format!("401 Bearer {research}, scope=\"mcp\"")
    );
    // Pages belong to the default endpoint.
    assert_eq!(gateway.get("/").challenge().await, format!("401 Bearer {META}, scope=\"mcp\""));
    let basic = gateway.get("/mcp").header("authorization", "Basic YTpi").challenge().await;
    assert_eq!(basic, format!("401 Bearer {META}, scope=\"mcp\""));
}

#[tokio::test]
async fn bad_credentials_and_what_they_are_told() {
    let gateway = Gateway::start(|_| {}).await;
    let good = gateway.key(NewKey { name: "ann".into(), ..NewKey::default() }).await;
    let wrong = |why: &str| format!("401 Bearer error=\"invalid_token\", error_description=\"{why}\"");
    let invalid = |why: &str| format!("400 Bearer error=\"invalid_request\", error_description=\"{why}\"");
    let mut mistyped = good.clone();
    mistyped.replace_range(20..21, if &good[20..21] == "x" { "y" } else { "x" });
    for (credential, expected) in [
        ("tidegate_nonsense", wrong("The token is malformed")),
        (mistyped.as_str(), wrong("The token is malformed")),
        ("opaque", wrong("The token is malformed")),
        // {"alg":"none"} . {"iss":"https://evil.example.com"} .
        (
            "eyJhbGciOiJub25lIn0.eyJpc3MiOiJodHRwczovL2V2aWwuZXhhbXBsZS5jb20ifQ.",
            wrong("The token is of an issuer that is not trusted here"),
        ),
        ("a b", invalid("The Authorization header has no token in the form of RFC 6750")),
        (&"a".repeat(17_000), invalid("The Authorization header is larger than 16 KiB")),
    ] {
        assert_eq!(gateway.tool("who").bearer(credential).challenge().await, expected);
    }
    let twice = gateway.tool("who").bearer(&good).bearer(&good).challenge().await;
    assert_eq!(twice, invalid("There is more than one Authorization header: send one"));
    let query = gateway.get(&format!("/mcp?access_token={good}")).bearer(&good).send().await;
    assert_eq!(query.status, 400);
    assert!(!query.text().await.contains(&good));
    // After all that, the good one is good.
    assert_eq!(gateway.tool("who").bearer(&good).send().await.status, 200);
    assert_eq!(
        gateway.tool("who").header("authorization", &format!("bEaReR  {good}")).send().await.status,
        200
    );
}

#[tokio::test]
async fn an_issuer_that_cannot_be_asked_is_not_the_clients_fault() {
    let gateway = Gateway::start(|auth| auth.introspection = vec![unreachable_issuer()]).await;
    let answer = gateway.tool("who").bearer("opaque").send().await;
    assert_eq!(
        (answer.status, answer.header("www-authenticate"), answer.header("retry-after")),
        (503, "-", "5")
    );
}

#[tokio::test]
async fn answers_to_bad_credentials_have_none_of_them() {
    let gateway = Gateway::start(|_| {}).await;
    for credential in ["tidegate_aaaaaaaa_secret", "xyz-secret-opaque"] {
        let answer = gateway.tool("who").bearer(credential).send().await;
        let headers = format!("{:?}", answer.headers);
        let text = answer.text().await;
        assert!(!headers.contains("secret") && !text.contains("secret"), "{headers} {text}");
    }
}
