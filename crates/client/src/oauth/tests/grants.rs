//! Tokens without a browser, and tokens that are bound to a key.

use serde_json::{Value, json};

use super::says;
use super::world::{Special, World};
use crate::oauth::jwt::tests::{es256_pem, verify_es256};
use crate::oauth::jwt::{SigningKey as Key, encode, now};
use crate::oauth::{Assertion, Client, ClientAuth, Enterprise, Grant, MemoryStore, SigningKey};

#[tokio::test]
async fn programs_with_a_secret() {
    for (auth, takes, header, secret) in [
        (ClientAuth::Secret("s".into()), json!(["client_secret_basic"]), "Basic bWU6cw==", ""),
        (ClientAuth::Secret("s".into()), json!(["client_secret_post"]), "", "s"),
        (ClientAuth::Secret("s".into()), json!(null), "Basic bWU6cw==", ""),
        (ClientAuth::SecretPost("s".into()), json!(null), "", "s"),
        (ClientAuth::SecretBasic("s".into()), json!(["client_secret_post"]), "Basic bWU6cw==", ""),
    ] {
        let world = World::new().await;
        {
            let mut plan = world.plan();
            // A server for programs has no login page.
            plan.server =
                json!({"token_endpoint_auth_methods_supported": takes, "authorization_endpoint": null});
            plan.challenge = r#"Bearer scope="read""#.to_owned();
        }
        let oauth = world.builder().client(Client::new("me", auth)).grant(Grant::Client).build().unwrap();
        assert_eq!(world.call(&oauth).await.unwrap(), 200);
        let request = world.last("/token");
        assert_eq!((request.header("authorization"), request.field("client_secret")), (header, secret));
        assert_eq!(request.field("grant_type"), "client_credentials");
        assert_eq!((request.field("resource"), request.field("scope")), (&*world.mcp, "read"));
    }
}

#[tokio::test]
async fn programs_with_a_key() {
    let world = World::new().await;
    let key = SigningKey::from_pem(&es256_pem()).unwrap();
    let client = Client::new("me", ClientAuth::PrivateKey(key.clone()));
    let oauth = world.builder().client(client).grant(Grant::Client).build().unwrap();
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    let request = world.last("/token");
    let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
    assert_eq!(request.field("client_assertion_type"), kind);
    let (_, claims) = verify_es256(request.field("client_assertion"), &key.public_jwk().unwrap());
    assert_eq!((&claims["sub"], &claims["aud"]), (&json!("me"), &json!(world.issuer)));
}

#[tokio::test]
async fn programs_need_a_client_and_a_proof() {
    let world = World::new().await;
    assert!(world.builder().grant(Grant::Client).build().is_err());
    let oauth = world.builder().grant(Grant::Client).client(Client::public("me")).build().unwrap();
    says(&world.call(&oauth).await.unwrap_err(), &["configure a client secret or a private key"]);
    assert!(world.seen("/token").is_empty());
}

#[tokio::test]
async fn workloads() {
    let world = World::new().await;
    world.plan().server = json!({"registration_endpoint": null, "authorization_endpoint": null});
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    std::fs::write(&path, "a.b.c\n").unwrap();
    let grant = Grant::Workload(Assertion::file(&path));
    let oauth = world.builder().client(Client::public("me")).grant(grant).build().unwrap();
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    let request = world.last("/token");
    assert_eq!(request.field("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!((request.field("assertion"), request.field("client_id")), ("a.b.c", "me"));

    // One refusal, one request.
    world.revoke();
    world.plan().trouble = Some((400, "invalid_grant"));
    says(&world.call(&oauth).await.unwrap_err(), &["invalid_grant"]);
    assert_eq!(world.seen("/token").len(), 2);
    std::fs::remove_file(&path).unwrap();
    says(&world.call(&oauth).await.unwrap_err(), &["cannot read the token in"]);
}

#[tokio::test]
async fn enterprises() {
    let world = World::new().await;
    let jag = |claims: Value| {
        let (key, _) = Key::generate().unwrap();
        key.sign(json!({"typ": "oauth-id-jag+jwt"}), &claims).unwrap()
    };
    let good = json!({
        "iss": world.other, "sub": "somebody", "aud": world.issuer, "client_id": "me", "jti": "1",
        "exp": now() + 60, "iat": now(), "resource": world.mcp,
    });
    for (changes, trusted) in [(json!({}), true), (json!({"resource": "https://evil.example"}), false)] {
        let mut claims = good.clone();
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let answer = json!({
            "access_token": jag(claims),
            "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
            "token_type": "N_A",
        });
        {
            let mut plan = world.plan();
            plan.refreshes = false;
            plan.special.insert("/idp", Special { status: 200, location: None, body: answer.to_string() });
        }
        let enterprise = Enterprise {
            idp_issuer: world.other.clone(),
            idp_token_endpoint: format!("{}/idp", world.other),
            idp_client: Client::public("at-idp"),
            id_token: Assertion::fixed("i.d.t"),
        };
        let client = Client::with_secret("me", "s");
        let oauth = world.builder().client(client).grant(Grant::Enterprise(enterprise)).build().unwrap();
        let asked = world.seen("/token").len();
        match (world.call(&oauth).await, trusted) {
            (Ok(status), true) => assert_eq!(status, 200),
            (Err(error), false) => {
                says(&error, &["not trusted"]);
                assert_eq!(world.seen("/token").len(), asked);
            }
            (outcome, _) => panic!("{changes}: {outcome:?}"),
        }
        let exchange = world.last("/idp");
        assert_eq!((exchange.field("subject_token"), exchange.field("client_id")), ("i.d.t", "at-idp"));
        assert_eq!((exchange.field("audience"), exchange.field("resource")), (&*world.issuer, &*world.mcp));
    }
}

#[tokio::test]
async fn an_enterprise_is_asked_as_the_specifications_have_it() {
    let world = World::new().await;
    world.plan().challenge = r#"Bearer resource_metadata="{prm}", scope="read write""#.to_owned();
    world.plan().refreshes = false;
    let (key, _) = Key::generate().unwrap();
    let claims = json!({
        "iss": world.other, "sub": "somebody", "aud": world.issuer, "client_id": "me", "jti": "1",
        "exp": now() + 60, "iat": now(), "resource": world.mcp, "scope": "read",
    });
    let statement = key.sign(json!({"typ": "oauth-id-jag+jwt"}), &claims).unwrap();
    let answer = json!({
        "access_token": statement, "scope": "read", "token_type": "N_A",
        "issued_token_type": "urn:ietf:params:oauth:token-type:id-jag",
    });
    world.plan().special.insert("/idp", Special { status: 200, location: None, body: answer.to_string() });
    let own = SigningKey::from_pem(&es256_pem()).unwrap();
    let enterprise = Enterprise {
        idp_issuer: world.other.clone(),
        idp_token_endpoint: format!("{}/idp", world.other),
        idp_client: Client::new("at-idp", ClientAuth::PrivateKey(own.clone())),
        id_token: Assertion::fixed("i.d.t"),
    };
    let client = Client::new("me", ClientAuth::PrivateKey(own.clone()));
    let oauth = world.builder().client(client).grant(Grant::Enterprise(enterprise)).build().unwrap();
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    let exchange = world.last("/idp");
    for (name, value) in [
        ("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange"),
        ("requested_token_type", "urn:ietf:params:oauth:token-type:id-jag"),
        ("subject_token_type", "urn:ietf:params:oauth:token-type:id_token"),
        ("subject_token", "i.d.t"),
        ("audience", &world.issuer),
        ("resource", &world.mcp),
        ("scope", "read write"),
        ("client_id", "at-idp"),
    ] {
        assert_eq!(exchange.field(name), value, "{name}");
    }
    let (_, said) = verify_es256(exchange.field("client_assertion"), &own.public_jwk().unwrap());
    assert_eq!((&said["sub"], &said["aud"]), (&json!("at-idp"), &json!(world.other)));
    // Only the statement says what for: the identity provider has left out a scope.
    let redeemed = world.last("/token");
    assert_eq!(redeemed.field("grant_type"), "urn:ietf:params:oauth:grant-type:jwt-bearer");
    assert_eq!((redeemed.field("assertion"), redeemed.field("client_id")), (&*statement, "me"));
    assert!(!redeemed.fields.contains_key("resource") && !redeemed.fields.contains_key("scope"));
    let (_, said) = verify_es256(redeemed.field("client_assertion"), &own.public_jwk().unwrap());
    assert_eq!((&said["sub"], &said["aud"]), (&json!("me"), &json!(world.issuer)));
}

#[tokio::test]
async fn an_identity_provider_may_say_no() {
    for (status, body, said) in [
        (400, r#"{"error":"invalid_grant"}"#, "invalid_grant"),
        (400, r#"{"error":"insufficient_user_authentication"}"#, "insufficient_user_authentication"),
        (200, "{}", "not trusted"),
        (200, "<html>", "not trusted"),
    ] {
        let world = World::new().await;
        world.plan().special.insert("/idp", Special { status, location: None, body: body.to_owned() });
        let enterprise = Enterprise {
            idp_issuer: world.other.clone(),
            idp_token_endpoint: format!("{}/idp", world.other),
            idp_client: Client::public("at-idp"),
            id_token: Assertion::fixed("i.d.t"),
        };
        let client = Client::with_secret("me", "s");
        let oauth = world.builder().client(client).grant(Grant::Enterprise(enterprise)).build().unwrap();
        says(&world.call(&oauth).await.unwrap_err(), &[said]);
        assert!(world.seen("/token").is_empty(), "{body}");
    }
}

#[tokio::test]
async fn tokens_bound_to_a_key() {
    for nonces in [false, true] {
        let world = World::new().await;
        {
            let mut plan = world.plan();
            plan.dpop = true;
            plan.nonces = nonces;
            plan.challenge = r#"DPoP resource_metadata="{prm}", algs="ES256""#.to_owned();
            plan.server = json!({"dpop_signing_alg_values_supported": ["ES256"]});
        }
        let store = MemoryStore::new();
        let oauth = world.builder().store(store.clone()).build().unwrap();
        assert_eq!(world.call(&oauth).await.unwrap(), 200);
        assert_eq!(world.call(&oauth).await.unwrap(), 200);
        assert_eq!(world.seen("/authorize").len(), 1, "a nonce is no reason to log in");

        // The same key after a restart, for the token and for its renewal.
        world.revoke();
        let again = world.builder().store(store).interactive(false).build().unwrap();
        assert_eq!(world.call(&again).await.unwrap(), 200);
        let proofs: Vec<_> = [world.seen("/token"), world.seen("/mcp")].concat();
        let proofs: Vec<_> =
            proofs.iter().map(|seen| seen.header("dpop")).filter(|proof| !proof.is_empty()).collect();
        let jwk = |proof: &str| {
            let header = crate::oauth::jwt::decode(proof.split('.').next().unwrap()).unwrap();
            serde_json::from_slice::<Value>(&header).unwrap()["jwk"].clone()
        };
        let mut seen = std::collections::HashSet::new();
        for proof in &proofs {
            let (_, claims) = verify_es256(proof, &jwk(proofs[0]));
            assert!(seen.insert(claims["jti"].to_string()), "a proof was used twice");
        }
        let token = world.last("/mcp").header("authorization").strip_prefix("DPoP ").unwrap().to_owned();
        let (_, claims) = verify_es256(world.last("/mcp").header("dpop"), &jwk(proofs[0]));
        assert_eq!((&claims["htm"], &claims["htu"]), (&json!("POST"), &json!(world.mcp)));
        assert_eq!(claims["ath"], encode(ring::digest::digest(&ring::digest::SHA256, token.as_bytes())));
        assert_eq!(world.seen("/authorize").len(), 1);
    }
}

#[tokio::test]
async fn keys_are_used_where_they_can_be() {
    let world = World::new().await;
    {
        let mut plan = world.plan();
        plan.challenge = "DPoP".to_owned();
        plan.server = json!({"dpop_signing_alg_values_supported": ["RS256"]});
    }
    says(&world.call(&world.builder().build().unwrap()).await.unwrap_err(), &["bound to a key", "ES256"]);
    // Who merely prefers them goes without.
    world.plan().challenge = "Bearer".to_owned();
    assert_eq!(world.call(&world.builder().dpop(true).build().unwrap()).await.unwrap(), 200);
    assert_eq!(world.last("/token").header("dpop"), "");
}
