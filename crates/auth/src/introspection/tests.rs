//! Opaque tokens, and an authorization server that answers well, badly or not at all.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tidegate_config::{ClaimSettings, IntrospectionSettings};
use tidegate_service::Principal;
use tidegate_service::secrets::Secret;

use super::*;
use crate::jwt::tests::{Answer, Server, eventually};

const ISSUER: &str = "https://id.example.com";

fn settings(url: &str) -> IntrospectionSettings {
    IntrospectionSettings {
        issuer: ISSUER.to_owned(),
        url: format!("{url}/introspect"),
        client_id: "tide gate".to_owned(),
        client_secret: Secret::new("a:b%c+ü"),
        audience: Vec::new(),
        claims: ClaimSettings { tenant: Some("org".to_owned()), ..ClaimSettings::default() },
    }
}

async fn start() -> (Server, IntrospectionVerifier) {
    let server = Server::start().await;
    let verifier =
        IntrospectionVerifier::new(&settings(&server.url), tidegate_web::Settings::default()).unwrap();
    (server, verifier)
}

/// An answer about a good token, with some members replaced or added; `"gone"` takes one away.
fn active(more: Value) -> Answer {
    let mut answer = json!({
        "active": true, "iss": ISSUER, "sub": "ann", "org": "reef", "aud": "https://mcp.example.com/mcp", "scope": "mcp files:read",
        "client_id": "app", "token_type": "Bearer", "exp": epoch_ms() / 1000 + 300,
    });
    let object = answer.as_object_mut().unwrap();
    for (name, value) in more.as_object().unwrap() {
        if value == "gone" {
            object.remove(name)
        } else {
            object.insert(name.clone(), value.clone())
        };
    }
    Answer::json(&answer)
}

#[tokio::test]
async fn a_good_token() {
    let (server, verifier) = start().await;
    server.at("/introspect", active(json!({})));
    let before_ms = epoch_ms();
    let verified = verifier.verify("opaque/+~token==").await.unwrap();
    let principal = Principal::subject("ann").in_tenant("reef").issued_by(ISSUER);
    assert_eq!(verified.identity.principal, principal);
    let claims = verified.identity.claims.unwrap();
    assert_eq!(claims.scopes, Some(vec!["mcp".into(), "files:read".into()]));
    assert_eq!(claims.client.as_deref(), Some("app"));
    assert_eq!(verified.audiences, ["https://mcp.example.com/mcp".into()]);
    let recheck_ms = verified.recheck_ms.unwrap();
    assert!((before_ms + 60_000..=epoch_ms() + 60_000).contains(&recheck_ms));
    let requests = server.requests();
    let (head, body) = requests[0].split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /introspect HTTP/1.1\r\n"), "{head}");
    // "tide+gate:a%3Ab%25c%2B%C3%BC"
    assert!(head.contains("authorization: Basic dGlkZStnYXRlOmElM0FiJTI1YyUyQiVDMyVCQw=="), "{head}");
    assert!(head.contains("content-type: application/x-www-form-urlencoded"), "{head}");
    assert_eq!(body, "token=opaque%2F%2B%7Etoken%3D%3D&token_type_hint=access_token");
}

#[tokio::test]
async fn what_its_server_says_about_a_token() {
    let (server, verifier) = start().await;
    let now = epoch_ms() / 1000;
    for (more, expected) in [
        (json!({ "exp": "gone" }), None),
        (json!({ "iss": "gone", "token_type": "gone" }), None),
        (json!({ "token_type": "bearer" }), None),
        (json!({ "active": false }), Some(Refusal::Inactive)),
        (json!({ "active": "true" }), Some(Refusal::KeysUnavailable)),
        (json!({ "active": 1 }), Some(Refusal::KeysUnavailable)),
        (json!({ "active": "gone" }), Some(Refusal::KeysUnavailable)),
        (json!({ "iss": "https://other.example.com" }), Some(Refusal::WrongIssuer)),
        (json!({ "iss": 1 }), Some(Refusal::WrongIssuer)),
        (json!({ "aud": "gone" }), Some(Refusal::MissingAudience)),
        (json!({ "exp": now - 100 }), Some(Refusal::Expired)),
        (json!({ "exp": now.to_string() }), Some(Refusal::Malformed)),
        (json!({ "nbf": now + 100 }), Some(Refusal::NotYetValid)),
        (json!({ "token_type": "DPoP" }), Some(Refusal::NotAnAccessToken)),
        (json!({ "token_type": 1 }), Some(Refusal::NotAnAccessToken)),
        (json!({ "token_use": "refresh_token" }), Some(Refusal::NotAnAccessToken)),
        (json!({ "typ": "Refresh" }), Some(Refusal::NotAnAccessToken)),
        (json!({ "sub": "gone", "username": "ann" }), Some(Refusal::MissingSubject)),
        (json!({ "org": "gone" }), Some(Refusal::MissingTenant)),
        (json!({ "org": "reef\u{200b}" }), Some(Refusal::BadTenant)),
        (json!({ "scope": 7 }), Some(Refusal::Malformed)),
    ] {
        server.at("/introspect", active(more.clone()));
        assert_eq!(verifier.verify("token").await.err(), expected, "{more}");
    }
}

#[tokio::test]
async fn a_server_that_does_not_answer_as_it_should_is_not_the_fault_of_callers() {
    let (server, verifier) = start().await;
    let good = active(json!({}));
    let twice = good.body.replace("\"active\":true", "\"active\":false,\"active\":true");
    assert_ne!(twice, good.body);
    let large = active(json!({ "x": "a".repeat(MOST_BYTES) }));
    let elsewhere = Answer { headers: "location: /other\r\n", ..Answer::status(307) };
    server.at("/other", good.clone());
    for answer in [
        Answer::status(401),
        Answer::status(403),
        Answer::status(400),
        Answer::status(404),
        Answer::status(500),
        elsewhere,
        Answer { status: 201, ..good.clone() },
        Answer { body: "<html>".to_owned(), ..good.clone() },
        Answer { body: "[true]".to_owned(), ..good.clone() },
        Answer { body: twice, ..good.clone() },
        large,
    ] {
        server.at("/introspect", answer.clone());
        let refusal = verifier.verify("token").await.unwrap_err();
        assert_eq!(refusal, Refusal::KeysUnavailable, "{} {:.40}", answer.status, answer.body);
    }
    assert_eq!(server.hits("/other"), 0);
    server.away(true);
    assert_eq!(verifier.verify("token").await.unwrap_err(), Refusal::KeysUnavailable);
    server.away(false);
    server.at("/introspect", good);
    assert!(verifier.verify("token").await.is_ok());
}

#[tokio::test]
async fn tokens_that_are_none_are_not_asked_about() {
    let (server, verifier) = start().await;
    for (token, expected) in [
        ("", Refusal::Malformed),
        ("a b", Refusal::Malformed),
        ("a\r\nx: y", Refusal::Malformed),
        ("ü", Refusal::Malformed),
        ("\u{7f}", Refusal::Malformed),
        (&"a".repeat(LONGEST_TOKEN + 1), Refusal::TooLarge),
    ] {
        assert_eq!(verifier.verify(token).await.unwrap_err(), expected);
    }
    assert_eq!(server.requests().len(), 0);
}

#[tokio::test]
async fn all_who_have_the_same_token_share_one_question() {
    let (server, verifier) = start().await;
    server.at("/introspect", Answer { after: Duration::from_millis(500), ..active(json!({})) });
    // The first of them gives up, which is nothing to the others.
    let first = tokio::spawn({
        let verifier = verifier.clone();
        async move { verifier.verify("token").await.is_ok() }
    });
    eventually(async || server.hits("/introspect") == 1).await;
    let others = tokio::spawn({
        let verifier = verifier.clone();
        async move { join_all((0..20).map(|_| verifier.verify("token"))).await }
    });
    tokio::task::yield_now().await;
    first.abort();
    assert!(others.await.unwrap().iter().all(Result::is_ok));
    assert_eq!(server.hits("/introspect"), 1);
    assert!(verifier.verify("token").await.is_ok());
    assert_eq!(server.hits("/introspect"), 2);
}

#[tokio::test]
async fn so_many_are_asked_about_at_once_and_no_more() {
    let (server, verifier) = start().await;
    server.at("/introspect", Answer { after: Duration::from_millis(50), ..active(json!({})) });
    let tokens: Vec<String> = (0..150).map(|token| format!("token-{token}")).collect();
    let all = join_all(tokens.iter().map(|token| verifier.verify(token))).await;
    assert!(all.iter().all(Result::is_ok));
    assert_eq!(server.hits("/introspect"), 150);
    assert!((2..=AT_ONCE).contains(&server.most_at_once()), "{}", server.most_at_once());
}

#[tokio::test]
async fn addresses_are_safe_and_secrets_are_not_shown() {
    let web = tidegate_web::Settings::default;
    for url in ["http://id.example.com", "ftp://id.example.com", "id"] {
        let error = IntrospectionVerifier::new(&settings(url), web()).unwrap_err();
        assert!(matches!(error, SetupError::Address { .. }), "{error}");
    }
    let verifier = IntrospectionVerifier::new(&settings(ISSUER), web()).unwrap();
    assert_eq!(format!("{verifier:?}"), format!("IntrospectionVerifier {{ issuer: {ISSUER:?}, .. }}"));
    assert!(verifier.0.authorization.is_sensitive());
}
