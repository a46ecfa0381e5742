//! Each kind of bad token gets the refusal that it deserves, and good ones of every algorithm are read.

use std::io::Write;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Value, json};
use tempfile::NamedTempFile;
use tidegate_config::{ClaimSettings, JwksSource};

use super::{ISSUER, Signer, claims, now, settings, token, verifier};
use crate::jwt::{JwtVerifier, LONGEST_TOKEN, SetupError, peek_issuer};
use crate::{Refusal, Verified};

/// A file with these keys.
pub(super) fn key_file(keys: &[Value]) -> NamedTempFile {
    let mut file = NamedTempFile::new().unwrap();
    file.write_all(json!({ "keys": keys }).to_string().as_bytes()).unwrap();
    file
}

/// A verifier with the RSA key as `rsa`, and the key.
fn with_rsa() -> (JwtVerifier, Signer) {
    let signer = Signer::rsa();
    let file = key_file(&[signer.jwk("rsa")]);
    (verifier(ISSUER, JwksSource::File(file.path().to_owned())), signer)
}

async fn refused(verifier: &JwtVerifier, token: &str) -> Refusal {
    verifier.verify(token).await.expect_err("it should have been refused")
}

#[tokio::test]
async fn every_algorithm_of_the_list_is_verified() {
    let keys = [
        (Signer::rsa(), "r", &["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"][..]),
        (Signer::p256(), "p256", &["ES256"]),
        (Signer::p384(), "p384", &["ES384"]),
        (Signer::ed25519(), "ed", &["EdDSA"]),
    ];
    let file = key_file(&keys.iter().map(|(signer, kid, _)| signer.jwk(kid)).collect::<Vec<_>>());
    let verifier = verifier(ISSUER, JwksSource::File(file.path().to_owned()));
    for (signer, kid, algorithms) in &keys {
        for algorithm in *algorithms {
            let good = token(signer, algorithm, kid, &claims(ISSUER, json!({})));
            let Verified { identity, audiences, .. } = verifier.verify(&good).await.unwrap();
            assert_eq!(identity.principal.subject.as_deref(), Some("ann"), "{algorithm}");
            assert_eq!(audiences, ["https://mcp.example.com/mcp".into()]);
            let no_kid = signer
                .token_of(&json!({ "alg": algorithm }).to_string(), &claims(ISSUER, json!({})).to_string());
            assert!(verifier.verify(&no_kid).await.is_ok(), "{algorithm} without a kid");
            let (message, _) = good.rsplit_once('.').unwrap();
            let (_, signature) = no_kid.rsplit_once('.').unwrap();
            assert_eq!(refused(&verifier, &format!("{message}.{signature}")).await, Refusal::BadSignature);
        }
    }
    for (kid, algorithm) in
        [("p256", "ES384"), ("p384", "ES256"), ("p256", "RS256"), ("r", "ES256"), ("ed", "ES256")]
    {
        let (signer, ..) = keys.iter().find(|(_, own, _)| *own == kid).unwrap();
        let confused = token(signer, algorithm, kid, &claims(ISSUER, json!({})));
        assert_eq!(refused(&verifier, &confused).await, Refusal::AlgorithmNotAllowed, "{kid} {algorithm}");
    }
}

#[tokio::test]
async fn bad_claims() {
    let (verifier, signer) = with_rsa();
    for (more, expected) in [
        (json!({ "exp": now() - 61 }), Refusal::Expired),
        (json!({ "exp": 0 }), Refusal::Expired),
        (json!({ "exp": (now() + 300).to_string() }), Refusal::Malformed),
        (json!({ "exp": null }), Refusal::Malformed),
        (json!({ "exp": 1e300 }), Refusal::Malformed),
        (json!({ "exp": -5 }), Refusal::Malformed),
        (json!({ "nbf": now() + 120 }), Refusal::NotYetValid),
        (json!({ "nbf": (now() + 120).to_string() }), Refusal::Malformed),
        (json!({ "nbf": [now()] }), Refusal::Malformed),
        (json!({ "iat": now() + 120 }), Refusal::NotYetValid),
        (json!({ "iss": "https://evil.example.com" }), Refusal::WrongIssuer),
        (json!({ "iss": format!("{ISSUER}/") }), Refusal::WrongIssuer),
        (json!({ "iss": ISSUER.to_uppercase() }), Refusal::WrongIssuer),
        (json!({ "iss": [ISSUER] }), Refusal::Malformed),
        (json!({ "aud": [] }), Refusal::MissingAudience),
        (json!({ "nonce": "n" }), Refusal::NotAnAccessToken),
        (json!({ "at_hash": "h" }), Refusal::NotAnAccessToken),
        (json!({ "token_use": "id" }), Refusal::NotAnAccessToken),
        (json!({ "typ": "ID" }), Refusal::NotAnAccessToken),
        (json!({ "typ": "Refresh" }), Refusal::NotAnAccessToken),
        (
            json!({ "events": { "http://schemas.openid.net/event/backchannel-logout": {} } }),
            Refusal::NotAnAccessToken,
        ),
        (json!({ "sub": "" }), Refusal::MissingSubject),
    ] {
        let bad = token(&signer, "RS256", "rsa", &claims(ISSUER, more.clone()));
        assert_eq!(refused(&verifier, &bad).await, expected, "{more}");
    }
    for (missing, expected) in [
        ("exp", Refusal::MissingClaim("exp")),
        ("iss", Refusal::WrongIssuer),
        ("aud", Refusal::MissingAudience),
        ("sub", Refusal::MissingSubject),
    ] {
        let mut claims = claims(ISSUER, json!({}));
        claims.as_object_mut().unwrap().remove(missing);
        assert_eq!(refused(&verifier, &token(&signer, "RS256", "rsa", &claims)).await, expected, "{missing}");
    }
    // Within the skew both are still good.
    for more in [json!({ "exp": now() - 30 }), json!({ "nbf": now() + 30, "iat": now() + 30 })] {
        assert!(verifier.verify(&token(&signer, "RS256", "rsa", &claims(ISSUER, more))).await.is_ok());
    }
}

#[tokio::test]
async fn a_token_for_somebody_else_says_so() {
    let (verifier, signer) = with_rsa();
    let other = token(
        &signer,
        "RS256",
        "rsa",
        &claims(ISSUER, json!({ "aud": ["https://other.example.com", "account"] })),
    );
    let verified = verifier.verify(&other).await.unwrap();
    assert!(!verified.audiences.contains(&"https://mcp.example.com/mcp".into()));
}

#[tokio::test]
async fn forged_tokens() {
    let (verifier, signer) = with_rsa();
    let good_claims = claims(ISSUER, json!({}));
    let good = token(&signer, "RS256", "rsa", &good_claims);
    let forged = token(&Signer::other_rsa(), "RS256", "rsa", &good_claims);
    assert_eq!(refused(&verifier, &forged).await, Refusal::BadSignature);
    // Other claims under the signature of a good token.
    let mut parts: Vec<&str> = good.split('.').collect();
    let admin = URL_SAFE_NO_PAD.encode(claims(ISSUER, json!({ "sub": "admin" })).to_string());
    parts[1] = &admin;
    assert_eq!(refused(&verifier, &parts.join(".")).await, Refusal::BadSignature);
    // No signature, a short one, a long one, one with a bit more.
    let (message, signature) = good.rsplit_once('.').unwrap();
    for signature in ["", "AAAA", &"A".repeat(2000), &format!("{signature}AAAA")] {
        assert_eq!(
            refused(&verifier, &format!("{message}.{signature}")).await,
            Refusal::BadSignature,
            "{signature}"
        );
    }
    assert_eq!(refused(&verifier, &format!("{message}.!")).await, Refusal::Malformed);
    assert_eq!(refused(&verifier, &format!("{good}=")).await, Refusal::Malformed);
    assert_eq!(refused(&verifier, &format!("{good}.")).await, Refusal::Malformed);
}

#[tokio::test]
async fn no_algorithm_and_shared_secrets() {
    let (verifier, signer) = with_rsa();
    let payload = URL_SAFE_NO_PAD.encode(claims(ISSUER, json!({})).to_string());
    for name in ["none", "None", "NONE", "nOnE", "none ", " none", "", "null"] {
        let header = URL_SAFE_NO_PAD.encode(json!({ "alg": name, "kid": "rsa" }).to_string());
        for signature in ["", "AAAA"] {
            let token = format!("{header}.{payload}.{signature}");
            assert_eq!(refused(&verifier, &token).await, Refusal::AlgorithmNotAllowed, "{name:?}");
        }
    }
    // The public key as a secret, in the forms that libraries have taken for one.
    let jwk = signer.jwk("rsa");
    let n = URL_SAFE_NO_PAD.decode(jwk["n"].as_str().unwrap()).unwrap();
    let forms = [n, jwk["n"].as_str().unwrap().as_bytes().to_vec(), jwk.to_string().into_bytes()];
    for (name, method) in [
        ("HS256", ring::hmac::HMAC_SHA256),
        ("HS384", ring::hmac::HMAC_SHA384),
        ("HS512", ring::hmac::HMAC_SHA512),
    ] {
        for secret in &forms {
            let header = URL_SAFE_NO_PAD.encode(json!({ "alg": name, "kid": "rsa" }).to_string());
            let message = format!("{header}.{payload}");
            let signature = ring::hmac::sign(&ring::hmac::Key::new(method, secret), message.as_bytes());
            let token = format!("{message}.{}", URL_SAFE_NO_PAD.encode(signature));
            assert_eq!(refused(&verifier, &token).await, Refusal::AlgorithmNotAllowed, "{name}");
        }
    }
    // A set that has the public key as a secret as well does not help.
    let k = jwk["n"].clone();
    let file = key_file(&[jwk, json!({ "kty": "oct", "k": k, "kid": "oct", "alg": "HS256" })]);
    let verifier = super::verifier(ISSUER, JwksSource::File(file.path().to_owned()));
    let good = token(&signer, "RS256", "oct", &claims(ISSUER, json!({})));
    assert_eq!(refused(&verifier, &good).await, Refusal::UnknownKey);
}

#[tokio::test]
async fn keys_in_the_header_are_ignored() {
    let (verifier, _) = with_rsa();
    let thief = Signer::p256();
    let payload = claims(ISSUER, json!({})).to_string();
    let jwk = thief.jwk("mine");
    for (header, expected) in [
        (json!({ "alg": "ES256", "jwk": jwk }), Refusal::UnknownKey),
        (json!({ "alg": "ES256", "jwk": jwk, "kid": "mine" }), Refusal::UnknownKey),
        (json!({ "alg": "ES256", "jku": "http://127.0.0.1:1/jwks", "kid": "mine" }), Refusal::UnknownKey),
        (json!({ "alg": "ES256", "x5u": "http://127.0.0.1:1/cert", "kid": "mine" }), Refusal::UnknownKey),
        (json!({ "alg": "ES256", "x5c": ["AAAA"], "kid": "mine" }), Refusal::UnknownKey),
        (json!({ "alg": "ES256", "jwk": jwk, "kid": "rsa" }), Refusal::AlgorithmNotAllowed),
        (json!({ "alg": "ES256", "kid": "../../../../dev/null" }), Refusal::UnknownKey),
        (json!({ "alg": "ES256", "kid": "x' OR '1'='1" }), Refusal::UnknownKey),
    ] {
        let token = thief.token_of(&header.to_string(), &payload);
        assert_eq!(refused(&verifier, &token).await, expected, "{header}");
    }
}

#[tokio::test]
async fn headers_that_are_not_those_of_an_access_token() {
    let (verifier, signer) = with_rsa();
    let payload = claims(ISSUER, json!({})).to_string();
    for (header, expected) in [
        (json!({ "alg": "RS256", "kid": "rsa", "typ": "oauth-id-jag+jwt" }), Refusal::NotAnAccessToken),
        (json!({ "alg": "RS256", "kid": "rsa", "typ": "logout+jwt" }), Refusal::NotAnAccessToken),
        (json!({ "alg": "RS256", "kid": "rsa", "crit": ["exp"], "exp": 1 }), Refusal::Malformed),
        (json!({ "alg": "RS256", "kid": "rsa", "crit": ["b64"], "b64": false }), Refusal::Malformed),
    ] {
        assert_eq!(
            refused(&verifier, &signer.token_of(&header.to_string(), &payload)).await,
            expected,
            "{header}"
        );
    }
}

#[tokio::test]
async fn json_that_two_readers_read_differently_or_not_at_all() {
    let (verifier, signer) = with_rsa();
    let header = r#"{"alg":"RS256","kid":"rsa"}"#;
    let exp = now() + 300;
    let good = format!(r#"{{"iss":"{ISSUER}","sub":"ann","aud":"x","exp":{exp}}}"#);
    assert!(verifier.verify(&signer.token_of(header, &good)).await.is_ok());
    let end = &good[1..];
    for payload in [
        format!(r#"{{"sub":"admin",{end}"#),
        format!(r#"{{"su\u0062":"admin",{end}"#),
        format!(r#"{{"exp":1,{end}"#),
        format!(r#"{{"iss":"https://evil.example.com",{end}"#),
        format!(r#"{{"x":{{"a":1,"a":2}},{end}"#),
        format!(r#"{{"x":{}{},{end}"#, "[".repeat(3000), "]".repeat(3000)),
        format!("{good}{good}"),
        "[]".to_owned(),
        "null".to_owned(),
        String::new(),
    ] {
        assert_eq!(
            refused(&verifier, &signer.token_of(header, &payload)).await,
            Refusal::Malformed,
            "{payload}"
        );
    }
    for header in [
        r#"{"alg":"RS256","kid":"rsa","kid":"rsa"}"#,
        r#"{"alg":"none","alg":"RS256","kid":"rsa"}"#,
        r#"{"alg":"RS256","kid":"rsa","x":{"a":1,"a":1}}"#,
    ] {
        assert_eq!(refused(&verifier, &signer.token_of(header, &good)).await, Refusal::Malformed, "{header}");
    }
    let not_utf8 = URL_SAFE_NO_PAD.encode([b"{\"iss\":\"".as_slice(), &[0xff], b"\"}"].concat());
    assert_eq!(
        refused(&verifier, &format!("{}.{not_utf8}.AAAA", URL_SAFE_NO_PAD.encode(header))).await,
        Refusal::Malformed
    );
}

#[tokio::test]
async fn huge_tokens_cost_nothing() {
    let (verifier, signer) = with_rsa();
    let huge = token(&signer, "RS256", "rsa", &claims(ISSUER, json!({ "x": "a".repeat(LONGEST_TOKEN) })));
    assert_eq!(refused(&verifier, &huge).await, Refusal::TooLarge);
    assert_eq!(peek_issuer(&huge), None);
    assert_eq!(refused(&verifier, &".".repeat(LONGEST_TOKEN)).await, Refusal::Malformed);
    let roles: Vec<String> = (0..300).map(|role| role.to_string()).collect();
    let many = token(&signer, "RS256", "rsa", &claims(ISSUER, json!({ "scope": roles })));
    assert_eq!(refused(&verifier, &many).await, Refusal::TooLarge);
}

#[tokio::test]
async fn the_same_subject_of_two_issuers_is_two_principals() {
    let signer = Signer::rsa();
    let file = key_file(&[signer.jwk("rsa")]);
    let mut principals = Vec::new();
    for issuer in [ISSUER, "https://other.example.com"] {
        let verifier = verifier(issuer, JwksSource::File(file.path().to_owned()));
        let own = token(&signer, "RS256", "rsa", &claims(issuer, json!({})));
        assert_eq!(peek_issuer(&own).as_deref(), Some(issuer));
        principals.push(verifier.verify(&own).await.unwrap().identity.principal);
    }
    assert_ne!(principals[0], principals[1]);
    assert_eq!(principals[0].subject, principals[1].subject);
}

#[tokio::test]
async fn tenants_with_tricks() {
    let signer = Signer::rsa();
    let file = key_file(&[signer.jwk("rsa")]);
    let mut settings = settings(ISSUER, JwksSource::File(file.path().to_owned()));
    settings.claims = ClaimSettings { tenant: Some("org.id".to_owned()), ..ClaimSettings::default() };
    let verifier = JwtVerifier::new(&settings, tidegate_web::Settings::default()).unwrap();
    for (org, expected) in [
        (json!({ "id": "reef" }), Ok("reef")),
        (json!({ "id": "reef\u{0}" }), Err(Refusal::BadTenant)),
        (json!({ "id": " reef" }), Err(Refusal::BadTenant)),
        (json!({ "id": "re\u{202e}ef" }), Err(Refusal::BadTenant)),
        (json!({ "id": "" }), Err(Refusal::BadTenant)),
        (json!({ "id": 1 }), Err(Refusal::MissingTenant)),
        (json!({}), Err(Refusal::MissingTenant)),
    ] {
        let token = token(&signer, "RS256", "rsa", &claims(ISSUER, json!({ "org": org })));
        let tenant =
            verifier.verify(&token).await.map(|verified| verified.identity.principal.tenant.unwrap());
        assert_eq!(tenant, expected.map(Into::into), "{org}");
    }
}

#[tokio::test]
async fn only_algorithms_of_the_list() {
    let signer = Signer::rsa();
    let file = key_file(&[signer.jwk("rsa")]);
    let mut settings = settings(ISSUER, JwksSource::File(file.path().to_owned()));
    settings.algorithms = vec!["PS256".to_owned()];
    let verifier = JwtVerifier::new(&settings, tidegate_web::Settings::default()).unwrap();
    let claims = claims(ISSUER, json!({}));
    assert!(verifier.verify(&token(&signer, "PS256", "rsa", &claims)).await.is_ok());
    assert_eq!(
        refused(&verifier, &token(&signer, "RS256", "rsa", &claims)).await,
        Refusal::AlgorithmNotAllowed
    );
    for name in ["none", "HS256", "rs256", ""] {
        settings.algorithms = vec![name.to_owned()];
        let error = JwtVerifier::new(&settings, tidegate_web::Settings::default()).unwrap_err();
        assert_eq!(error, SetupError::Algorithm(name.to_owned()));
    }
}

#[tokio::test]
async fn nothing_of_a_token_is_in_what_is_shown() {
    let (verifier, signer) = with_rsa();
    let secret = token(&signer, "RS256", "rsa", &claims(ISSUER, json!({ "exp": 1 })));
    // In a task of its own, as a server does.
    let verifier = std::sync::Arc::new(verifier);
    let (own, sent) = (verifier.clone(), secret.clone());
    let refusal = tokio::spawn(async move { own.verify(&sent).await }).await.unwrap().unwrap_err();
    let shown = format!("{refusal} {refusal:?} {verifier:?}");
    assert!(!shown.contains("ann") && !secret.split('.').any(|part| shown.contains(part)), "{shown}");
}
