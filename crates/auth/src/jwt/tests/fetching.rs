//! Keys from a file, an address and an issuer's metadata: found, renewed, lost.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use tidegate_config::JwksSource;

use super::tokens::key_file;
use super::{Answer, ISSUER, Server, Signer, claims, eventually, settings, token, verifier, verifier_with};
use crate::Refusal;
use crate::jwt::{JwtVerifier, SetupError, Timing};

const ZERO: Duration = Duration::ZERO;
const MOMENT: Duration = Duration::from_millis(20);

fn set(keys: &[Value]) -> Answer {
    Answer::json(&json!({ "keys": keys }))
}

fn at(server: &Server) -> JwksSource {
    JwksSource::Url(format!("{}/jwks", server.url))
}

async fn with_keys(keys: &[Value]) -> Server {
    let server = Server::start().await;
    server.at("/jwks", set(keys));
    server
}

#[tokio::test]
async fn an_address() {
    let signer = Signer::rsa();
    let server = with_keys(&[signer.jwk("a")]).await;
    let verifier = verifier(ISSUER, at(&server));
    let good = token(&signer, "RS256", "a", &claims(ISSUER, json!({})));
    for _ in 0..3 {
        assert!(verifier.verify(&good).await.is_ok());
    }
    assert_eq!(server.hits("/jwks"), 1);
}

#[tokio::test]
async fn metadata_in_each_of_its_places() {
    let signer = Signer::rsa();
    for (path, place) in [
        ("", "/.well-known/oauth-authorization-server"),
        ("", "/.well-known/openid-configuration"),
        ("/", "/.well-known/openid-configuration"),
        ("/realms/a", "/.well-known/oauth-authorization-server/realms/a"),
        ("/realms/a", "/.well-known/openid-configuration/realms/a"),
        ("/realms/a", "/realms/a/.well-known/openid-configuration"),
    ] {
        let server = with_keys(&[signer.jwk("a")]).await;
        let issuer = format!("{}{path}", server.url);
        server.at(
            place,
            Answer::json(&json!({ "issuer": issuer, "jwks_uri": format!("{}/jwks", server.url) })),
        );
        let verifier = verifier(&issuer, JwksSource::Discovered);
        let good = token(&signer, "RS256", "a", &claims(&issuer, json!({})));
        assert!(verifier.verify(&good).await.is_ok(), "{place}");
    }
}

#[tokio::test]
async fn metadata_of_another_issuer_is_passed_over() {
    let signer = Signer::rsa();
    let server = with_keys(&[signer.jwk("a")]).await;
    let issuer = format!("{}/a", server.url);
    let metadata = |issuer: &str, keys: &str| {
        Answer::json(&json!({ "issuer": issuer, "jwks_uri": format!("{}{keys}", server.url) }))
    };
    server.at("/.well-known/oauth-authorization-server/a", metadata(&server.url, "/evil"));
    let first = verifier_with(&issuer, JwksSource::Discovered, |timing| timing.cool_down = ZERO);
    let good = token(&signer, "RS256", "a", &claims(&issuer, json!({})));
    assert_eq!(first.verify(&good).await.unwrap_err(), Refusal::KeysUnavailable);
    server.at("/a/.well-known/openid-configuration", metadata(&issuer, "/jwks"));
    assert!(first.verify(&good).await.is_ok());
    assert_eq!(server.hits("/evil"), 0);
}

#[tokio::test]
async fn keys_on_another_host_that_is_not_public_are_for_the_operator_to_name() {
    let signer = Signer::rsa();
    let server = with_keys(&[signer.jwk("a")]).await;
    // The name is local and the address is too, but nobody wrote the address down.
    let issuer = server.url.replace("127.0.0.1", "localhost");
    let metadata = json!({ "issuer": issuer, "jwks_uri": format!("{}/jwks", server.url) });
    server.at("/.well-known/oauth-authorization-server", Answer::json(&metadata));
    let good = token(&signer, "RS256", "a", &claims(&issuer, json!({})));
    let found = verifier(&issuer, JwksSource::Discovered);
    assert_eq!(found.verify(&good).await.unwrap_err(), Refusal::KeysUnavailable);
    assert_eq!(server.hits("/jwks"), 0);
    assert!(verifier(&issuer, at(&server)).verify(&good).await.is_ok());
}

#[tokio::test]
async fn redirects_stay_within_their_origin() {
    let signer = Signer::rsa();
    let good = token(&signer, "RS256", "a", &claims(ISSUER, json!({})));
    let server = Server::start().await;
    server.at("/keys", set(&[signer.jwk("a")]));
    server.at("/jwks", Answer { status: 302, headers: "location: /keys\r\n", ..Answer::default() });
    assert!(verifier(ISSUER, at(&server)).verify(&good).await.is_ok());

    let other = with_keys(&[signer.jwk("a")]).await;
    let away: &'static str = format!("location: {}/jwks\r\n", other.url).leak();
    server.at("/jwks", Answer { status: 302, headers: away, ..Answer::default() });
    assert_eq!(verifier(ISSUER, at(&server)).verify(&good).await.unwrap_err(), Refusal::KeysUnavailable);
    assert_eq!(other.hits("/jwks"), 0);

    server.at("/jwks", Answer { status: 302, headers: "location: /jwks\r\n", ..Answer::default() });
    assert_eq!(verifier(ISSUER, at(&server)).verify(&good).await.unwrap_err(), Refusal::KeysUnavailable);
}

#[tokio::test]
async fn a_flood_of_unknown_kids_costs_one_request() {
    let signer = Signer::p256();
    let server = with_keys(&[signer.jwk("a")]).await;
    let verifier = verifier(ISSUER, at(&server));
    let good = token(&signer, "ES256", "a", &claims(ISSUER, json!({})));
    assert!(verifier.verify(&good).await.is_ok());
    let flood: Vec<String> =
        (0..300).map(|kid| token(&signer, "ES256", &format!("x{kid}"), &claims(ISSUER, json!({})))).collect();
    for refused in join_all(flood.iter().map(|token| verifier.verify(token))).await {
        assert_eq!(refused.unwrap_err(), Refusal::UnknownKey);
    }
    for token in &flood {
        assert_eq!(verifier.verify(token).await.unwrap_err(), Refusal::UnknownKey);
    }
    assert_eq!(server.hits("/jwks"), 2, "the first keys, and one more look");
    assert!(verifier.verify(&good).await.is_ok());
    // Those of another issuer, or with another algorithm, do not even cause that.
    let fresh = with_keys(&[signer.jwk("a")]).await;
    let verifier = super::verifier(ISSUER, at(&fresh));
    assert!(verifier.verify(&good).await.is_ok());
    let foreign = token(&signer, "ES256", "x", &claims("https://other.example.com", json!({})));
    assert_eq!(verifier.verify(&foreign).await.unwrap_err(), Refusal::WrongIssuer);
    let unfit = token(&signer, "ES384", "a", &claims(ISSUER, json!({})));
    assert_eq!(verifier.verify(&unfit).await.unwrap_err(), Refusal::AlgorithmNotAllowed);
    assert_eq!(fresh.hits("/jwks"), 1);
}

#[tokio::test]
async fn an_issuer_that_changes_its_keys() {
    let (old, new) = (Signer::rsa(), Signer::other_rsa());
    let server = with_keys(&[old.jwk("old")]).await;
    let verifier = verifier_with(ISSUER, at(&server), |timing| timing.cool_down = MOMENT);
    let (of_old, of_new) = (
        token(&old, "RS256", "old", &claims(ISSUER, json!({}))),
        token(&new, "RS256", "new", &claims(ISSUER, json!({}))),
    );
    assert!(verifier.verify(&of_old).await.is_ok());
    // First it has both, then only the new one.
    server.at("/jwks", set(&[old.jwk("old"), new.jwk("new")]));
    assert!(verifier.verify(&of_new).await.is_ok());
    assert!(verifier.verify(&of_old).await.is_ok());
    assert_eq!(verifier.withdrawals(), 0);
    server.at("/jwks", set(&[new.jwk("new")]));
    tokio::time::sleep(2 * MOMENT).await;
    let unknown = token(&new, "RS256", "unknown", &claims(ISSUER, json!({})));
    assert_eq!(verifier.verify(&unknown).await.unwrap_err(), Refusal::UnknownKey);
    assert_eq!(verifier.withdrawals(), 1);
    assert_eq!(verifier.verify(&of_old).await.unwrap_err(), Refusal::UnknownKey);
    assert!(verifier.verify(&of_new).await.is_ok());
}

#[tokio::test]
async fn an_issuer_that_changes_its_keys_twice_in_a_row() {
    let signers = [Signer::rsa(), Signer::other_rsa(), Signer::p256()];
    let server = with_keys(&[signers[0].jwk("0")]).await;
    let verifier = verifier_with(ISSUER, at(&server), |timing| timing.rotating = ZERO);
    for (number, algorithm) in ["RS256", "RS256", "ES256"].into_iter().enumerate() {
        let kid = number.to_string();
        server.at("/jwks", set(&[signers[number].jwk(&kid)]));
        let good = token(&signers[number], algorithm, &kid, &claims(ISSUER, json!({})));
        assert!(verifier.verify(&good).await.is_ok(), "{number}");
    }
    // Nothing new comes of these: one more look, and then the cool-down.
    for kid in ["x", "y", "z"] {
        let unknown = token(&signers[2], "ES256", kid, &claims(ISSUER, json!({})));
        assert_eq!(verifier.verify(&unknown).await.unwrap_err(), Refusal::UnknownKey);
    }
    assert_eq!(server.hits("/jwks"), 4);
}

#[tokio::test]
async fn an_issuer_that_changes_its_only_key_without_a_word() {
    let (old, new) = (Signer::rsa(), Signer::other_rsa());
    let jwk = |signer: &Signer| {
        let mut jwk = signer.jwk("");
        jwk.as_object_mut().unwrap().remove("kid");
        jwk
    };
    let server = with_keys(&[jwk(&old)]).await;
    let verifier = verifier(ISSUER, at(&server));
    let token =
        |signer: &Signer| signer.token_of(r#"{"alg":"RS256"}"#, &claims(ISSUER, json!({})).to_string());
    assert!(verifier.verify(&token(&old)).await.is_ok());
    server.at("/jwks", set(&[jwk(&new)]));
    assert!(verifier.verify(&token(&new)).await.is_ok());
    assert_eq!(verifier.verify(&token(&old)).await.unwrap_err(), Refusal::BadSignature);
    assert_eq!(server.hits("/jwks"), 2);
}

#[tokio::test]
async fn keys_are_renewed_in_the_background() {
    let (old, new) = (Signer::rsa(), Signer::other_rsa());
    let server = with_keys(&[old.jwk("a")]).await;
    let verifier =
        verifier_with(ISSUER, at(&server), |timing| (timing.shortest, timing.usual) = (MOMENT, MOMENT));
    let of = |signer: &Signer| token(signer, "RS256", "a", &claims(ISSUER, json!({})));
    assert!(verifier.verify(&of(&old)).await.is_ok());
    server.at("/jwks", set(&[new.jwk("a")]));
    let (of_old, of_new) = (of(&old), of(&new));
    eventually(async || verifier.verify(&of_new).await.is_ok()).await;
    assert_eq!(verifier.verify(&of_old).await.unwrap_err(), Refusal::BadSignature);
    // Nobody renews the keys of a verifier that is gone.
    drop(verifier);
    tokio::time::sleep(2 * MOMENT).await;
    let hits = server.hits("/jwks");
    tokio::time::sleep(5 * MOMENT).await;
    assert_eq!(server.hits("/jwks"), hits);
}

#[tokio::test]
async fn keys_are_fetched_anew_when_somebody_says_so() {
    let (old, new) = (Signer::rsa(), Signer::other_rsa());
    let server = with_keys(&[old.jwk("a")]).await;
    let verifier = verifier(ISSUER, at(&server));
    let stolen = token(&old, "RS256", "a", &claims(ISSUER, json!({})));
    assert!(verifier.verify(&stolen).await.is_ok());
    server.at("/jwks", set(&[new.jwk("b")]));
    let withdrawals = verifier.withdrawals();
    verifier.fetch_keys_again();
    eventually(|| std::future::ready(verifier.withdrawals() > withdrawals)).await;
    assert_eq!(verifier.verify(&stolen).await.err(), Some(Refusal::UnknownKey));
}

#[tokio::test]
async fn an_issuer_that_is_away() {
    let signer = Signer::rsa();
    let server = with_keys(&[signer.jwk("a")]).await;
    server.away(true);
    let good = token(&signer, "RS256", "a", &claims(ISSUER, json!({})));
    let quick = |timing: &mut Timing| {
        (timing.first_retry, timing.last_retry) = (MOMENT, MOMENT);
        (timing.shortest, timing.usual) = (MOMENT, MOMENT);
    };
    // At start: the gateway runs, its tokens are refused, and as soon as it is back they are not.
    let patient = verifier_with(ISSUER, at(&server), quick);
    assert_eq!(patient.verify(&good).await.unwrap_err(), Refusal::KeysUnavailable);
    server.away(false);
    eventually(async || patient.verify(&good).await.is_ok()).await;
    // Later: the last keys go on for a while,
    server.away(true);
    let hits = server.hits("/jwks");
    eventually(async || server.hits("/jwks") > hits + 3).await;
    assert!(patient.verify(&good).await.is_ok());
    // and then no more, until it is back.
    server.away(false);
    let impatient = verifier_with(ISSUER, at(&server), |timing| {
        quick(timing);
        timing.last_good = MOMENT;
    });
    assert!(impatient.verify(&good).await.is_ok());
    server.away(true);
    eventually(async || impatient.verify(&good).await.err() == Some(Refusal::KeysUnavailable)).await;
    server.away(false);
    eventually(async || impatient.verify(&good).await.is_ok()).await;
}

#[tokio::test]
async fn answers_that_are_no_keys() {
    let signer = Signer::rsa();
    let good = token(&signer, "RS256", "a", &claims(ISSUER, json!({})));
    let large = json!({ "keys": [signer.jwk("a")], "x": "a".repeat(1024 * 1024) });
    for answer in [
        Answer::status(500),
        Answer::status(404),
        Answer { status: 200, body: "<html>".to_owned(), ..Answer::default() },
        Answer::json(&json!({})),
        Answer::json(&large),
        set(&vec![signer.jwk("a"); 257]),
    ] {
        let server = Server::start().await;
        server.at("/jwks", answer.clone());
        let verifier = verifier(ISSUER, at(&server));
        let refusal = verifier.verify(&good).await.unwrap_err();
        assert_eq!(refusal, Refusal::KeysUnavailable, "{} {:.40}", answer.status, answer.body);
    }
    // A set without a usable key is an answer: the issuer has none.
    let server = with_keys(&[]).await;
    assert_eq!(verifier(ISSUER, at(&server)).verify(&good).await.unwrap_err(), Refusal::UnknownKey);
}

#[tokio::test]
async fn a_slow_issuer_is_waited_for_only_so_long() {
    let signer = Signer::rsa();
    let server = Server::start().await;
    server.at("/jwks", Answer { after: Duration::from_secs(60), ..set(&[signer.jwk("a")]) });
    let verifier = verifier_with(ISSUER, at(&server), |timing| timing.patience = MOMENT);
    let good = token(&signer, "RS256", "a", &claims(ISSUER, json!({})));
    for refused in join_all((0..20).map(|_| verifier.verify(&good))).await {
        assert_eq!(refused.unwrap_err(), Refusal::KeysUnavailable);
    }
    assert_eq!(server.hits("/jwks"), 1);
}

#[tokio::test]
async fn a_file_that_changes() {
    let (old, new) = (Signer::rsa(), Signer::other_rsa());
    let file = key_file(&[old.jwk("a")]);
    let verifier = verifier(ISSUER, JwksSource::File(file.path().to_owned()));
    let of = |signer: &Signer| token(signer, "RS256", "a", &claims(ISSUER, json!({})));
    let (of_old, of_new) = (of(&old), of(&new));
    assert!(verifier.verify(&of_old).await.is_ok());
    // What does not parse, or is not there, changes nothing.
    std::fs::write(file.path(), "{").unwrap();
    tokio::time::sleep(5 * MOMENT).await;
    assert!(verifier.verify(&of_old).await.is_ok());
    std::fs::remove_file(file.path()).unwrap();
    tokio::time::sleep(5 * MOMENT).await;
    assert!(verifier.verify(&of_old).await.is_ok());
    std::fs::write(file.path(), json!({ "keys": [new.jwk("a")] }).to_string()).unwrap();
    eventually(async || verifier.verify(&of_new).await.is_ok()).await;
    assert_eq!(verifier.verify(&of_old).await.unwrap_err(), Refusal::BadSignature);
    assert_eq!(verifier.withdrawals(), 1);
    let unknown = token(&new, "RS256", "b", &claims(ISSUER, json!({})));
    assert_eq!(verifier.verify(&unknown).await.unwrap_err(), Refusal::UnknownKey);
}

#[cfg(unix)]
#[tokio::test]
async fn a_pipe_is_no_file_and_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("keys");
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let refused = JwtVerifier::new(&settings(ISSUER, JwksSource::File(pipe.clone())), Default::default());
    assert!(refused.unwrap_err().to_string().contains("not a regular file"));
    let refused = crate::keys::KeyFile::read(&pipe).unwrap_err();
    assert!(refused.to_string().contains("not a regular file"), "{refused}");
}

#[tokio::test]
async fn settings_that_cannot_work_are_refused_at_start() {
    let start = |issuer: &str, jwks: JwksSource| {
        JwtVerifier::new(&settings(issuer, jwks), tidegate_web::Settings::default()).map(|_| ())
    };
    let bad = tempfile::NamedTempFile::new().unwrap();
    let file = |content: &str| {
        std::fs::write(bad.path(), content).unwrap();
        JwksSource::File(bad.path().to_owned())
    };
    for (content, why) in [
        ("", "not a JSON Web Key Set"),
        (r#"{"keys":[]}"#, "no key that could verify"),
        (
            r#"{"keys":[{"kty":"RSA","n":"_____w","e":"AQAB"}]}"#,
            "key 1 is not used: it is an RSA key of 32 bits",
        ),
    ] {
        let error = start(ISSUER, file(content)).unwrap_err();
        assert!(matches!(error, SetupError::KeyFile { .. }) && error.to_string().contains(why), "{error}");
    }
    assert!(matches!(
        start(ISSUER, JwksSource::File("/does/not/exist".into())),
        Err(SetupError::KeyFile { .. })
    ));
    for (issuer, jwks) in [
        ("http://id.example.com", JwksSource::Discovered),
        ("id", JwksSource::Discovered),
        ("https://id.example.com?x=1", JwksSource::Discovered),
        (ISSUER, JwksSource::Url("http://id.example.com/jwks".to_owned())),
        (ISSUER, JwksSource::Url("ftp://id.example.com/jwks".to_owned())),
    ] {
        assert!(matches!(start(issuer, jwks), Err(SetupError::Address { .. })), "{issuer}");
    }
}
