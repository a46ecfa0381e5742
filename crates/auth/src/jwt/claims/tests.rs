//! What tokens say, and what they must not.

use super::*;
use serde_json::json;

const NOW: u64 = 1_800_000_000;

fn read_as(names: &ClaimSettings, more: Value) -> Result<Verified, Refusal> {
    let mut claims = json!({ "iss": "https://id", "sub": "ann", "aud": "https://mcp", "exp": NOW + 300 });
    let object = claims.as_object_mut().unwrap();
    for (name, value) in more.as_object().unwrap() {
        // In these cases `"gone"` takes a claim away.
        if value == "gone" {
            object.remove(name)
        } else {
            object.insert(name.clone(), value.clone())
        };
    }
    let reader = ClaimReader::new("https://id", names, Duration::from_secs(60));
    reader.read(object, Required::IssuerAndExpiry, NOW * 1000)
}

fn read(more: Value) -> Result<Verified, Refusal> {
    read_as(&ClaimSettings::default(), more)
}

fn words_of(all: &[Arc<str>]) -> Vec<&str> {
    all.iter().map(|one| &**one).collect()
}

#[test]
fn what_a_token_says() {
    let names = ClaimSettings {
        tenant: Some("org.id".to_owned()),
        roles: Some("realm_access.roles".to_owned()),
        ..ClaimSettings::default()
    };
    let more = json!({
        "org": { "id": "reef" }, "realm_access": { "roles": ["a", "b c"] }, "scope": "mcp files:read", "client_id": "app",
        "act": { "sub": "agent", "act": { "sub": "service" } }, "aud": ["x", "https://mcp"], "nbf": NOW, "iat": NOW - 1,
    });
    let verified = read_as(&names, more).unwrap();
    let principal = Principal::subject("ann").in_tenant("reef").issued_by("https://id");
    assert_eq!(verified.identity.principal, principal);
    let claims = verified.identity.claims.unwrap();
    assert_eq!(words_of(claims.scopes.as_ref().unwrap()), ["mcp", "files:read"]);
    assert_eq!(words_of(&claims.roles), ["a", "b c"]);
    assert_eq!(words_of(&claims.actors), ["agent", "service"]);
    assert_eq!(claims.client.as_deref(), Some("app"));
    assert_eq!(claims.expires_ms, Some((NOW + 300) * 1000));
    assert_eq!(verified.expires_ms, Some((NOW + 360) * 1000));
    assert_eq!(words_of(&verified.audiences), ["x", "https://mcp"]);
    assert_eq!((verified.endpoints, verified.recheck_ms), (None, None));
}

#[test]
fn dates() {
    for (more, expected) in [
        (json!({}), None),
        (json!({ "exp": NOW as f64 + 0.5 }), None),
        (json!({ "exp": NOW - 59 }), None),
        (json!({ "exp": NOW - 60 }), Some(Refusal::Expired)),
        (json!({ "exp": 0 }), Some(Refusal::Expired)),
        (json!({ "exp": "gone" }), Some(Refusal::MissingClaim("exp"))),
        (json!({ "exp": format!("{}", NOW + 300) }), Some(Refusal::Malformed)),
        (json!({ "exp": null }), Some(Refusal::Malformed)),
        (json!({ "exp": true }), Some(Refusal::Malformed)),
        (json!({ "exp": [NOW + 300] }), Some(Refusal::Malformed)),
        (json!({ "exp": -1 }), Some(Refusal::Malformed)),
        (json!({ "exp": 1e300 }), Some(Refusal::Malformed)),
        (json!({ "exp": u64::MAX }), Some(Refusal::Malformed)),
        (json!({ "nbf": NOW + 60 }), None),
        (json!({ "nbf": NOW + 61 }), Some(Refusal::NotYetValid)),
        (json!({ "nbf": "0" }), Some(Refusal::Malformed)),
        (json!({ "nbf": null }), Some(Refusal::Malformed)),
        (json!({ "iat": NOW + 60 }), None),
        (json!({ "iat": NOW + 61 }), Some(Refusal::NotYetValid)),
        (json!({ "iat": {} }), Some(Refusal::Malformed)),
    ] {
        assert_eq!(read(more.clone()).err(), expected, "{more}");
    }
}

#[test]
fn what_is_missing_wrong_or_too_much() {
    let actors =
        |depth: usize| (0..depth).fold(json!({ "sub": "a" }), |act, _| json!({ "sub": "a", "act": act }));
    for (more, expected) in [
        (json!({ "iss": "gone" }), Some(Refusal::WrongIssuer)),
        (json!({ "iss": "https://id/" }), Some(Refusal::WrongIssuer)),
        (json!({ "iss": ["https://id"] }), Some(Refusal::WrongIssuer)),
        (json!({ "cnf": { "jkt": "x" } }), Some(Refusal::Bound)),
        (json!({ "aud": "gone" }), Some(Refusal::MissingAudience)),
        (json!({ "aud": "" }), Some(Refusal::MissingAudience)),
        (json!({ "aud": [] }), Some(Refusal::MissingAudience)),
        (json!({ "aud": null }), Some(Refusal::Malformed)),
        (json!({ "aud": [1] }), Some(Refusal::Malformed)),
        (json!({ "sub": "gone" }), Some(Refusal::MissingSubject)),
        (json!({ "sub": "" }), Some(Refusal::MissingSubject)),
        (json!({ "sub": 7 }), Some(Refusal::MissingSubject)),
        (json!({ "sub": "a\u{0}b" }), Some(Refusal::MissingSubject)),
        (json!({ "sub": "a".repeat(512) }), None),
        (json!({ "sub": "a".repeat(513) }), Some(Refusal::MissingSubject)),
        (json!({ "scope": 7 }), Some(Refusal::Malformed)),
        (json!({ "scope": [7] }), Some(Refusal::Malformed)),
        (json!({ "scope": "a ".repeat(256) }), None),
        (json!({ "scope": "a ".repeat(257) }), Some(Refusal::TooLarge)),
        (json!({ "scope": "a".repeat(257) }), Some(Refusal::TooLarge)),
        (json!({ "client_id": 7 }), Some(Refusal::Malformed)),
        (json!({ "act": "bob" }), Some(Refusal::Malformed)),
        (json!({ "act": {} }), Some(Refusal::Malformed)),
        (json!({ "act": actors(7) }), None),
        (json!({ "act": actors(8) }), Some(Refusal::TooLarge)),
    ] {
        assert_eq!(read(more.clone()).err(), expected, "{more}");
    }
}

#[test]
fn tokens_of_other_kinds() {
    for (more, good) in [
        (json!({ "typ": "Bearer" }), true),
        (json!({ "token_use": "access" }), true),
        (json!({ "nonce": "n" }), false),
        (json!({ "at_hash": "h" }), false),
        (json!({ "c_hash": null }), false),
        (json!({ "token_use": "id" }), false),
        (json!({ "token_use": 1 }), false),
        (json!({ "typ": "ID" }), false),
        (json!({ "typ": "Refresh" }), false),
        (json!({ "typ": "Offline" }), false),
        (json!({ "typ": "Logout" }), false),
        (json!({ "events": {} }), false),
    ] {
        assert_eq!(read(more.clone()).err(), (!good).then_some(Refusal::NotAnAccessToken), "{more}");
    }
}

#[test]
fn claims_are_found_by_their_name_or_by_a_path() {
    let more = json!({
        "https://x.example/roles": ["exact"], "a": { "b.c": { "d": ["inner"] }, "b": { "x": 1 } }, "a.b": { "e": "one two" },
        "scp": ["s1", "s2 s3"], "text": "no object",
    });
    for (path, expected) in [
        ("https://x.example/roles", &["exact"][..]),
        ("a.b.c.d", &["inner"]),
        ("a.b.e", &["one", "two"]),
        ("a.b.c.z", &[]),
        ("text.x", &[]),
        ("", &[]),
        (".", &[]),
    ] {
        let names = ClaimSettings { roles: Some(path.to_owned()), ..ClaimSettings::default() };
        let claims = read_as(&names, more.clone()).unwrap().identity.claims.unwrap();
        assert_eq!(words_of(&claims.roles), expected, "{path}");
        assert_eq!(words_of(claims.scopes.as_ref().unwrap()), ["s1", "s2 s3"]);
    }
    let names = ClaimSettings { subject: Some("who.id".to_owned()), ..ClaimSettings::default() };
    let subject = read_as(&names, json!({ "who": { "id": "bob" } })).unwrap().identity.principal.subject;
    assert_eq!(subject.as_deref(), Some("bob"));
    assert_eq!(read_as(&names, json!({})).err(), Some(Refusal::MissingSubject));
    for (claim, client) in [
        (json!({ "azp": "a", "appid": "b" }), "a"),
        (json!({ "appid": "b" }), "b"),
        (json!({ "cid": "c" }), "c"),
    ] {
        assert_eq!(read(claim).unwrap().identity.claims.unwrap().client.as_deref(), Some(client));
    }
}

#[test]
fn a_tenant_must_be_there_and_have_a_name() {
    let names = ClaimSettings { tenant: Some("org".to_owned()), ..ClaimSettings::default() };
    for (more, expected) in [
        (json!({ "org": "reef" }), None),
        (json!({}), Some(Refusal::MissingTenant)),
        (json!({ "org": 7 }), Some(Refusal::MissingTenant)),
        (json!({ "org": null }), Some(Refusal::MissingTenant)),
        (json!({ "org": ["reef"] }), Some(Refusal::MissingTenant)),
        (json!({ "org": "" }), Some(Refusal::BadTenant)),
        (json!({ "org": "reef " }), Some(Refusal::BadTenant)),
        (json!({ "org": "reef\u{200b}" }), Some(Refusal::BadTenant)),
    ] {
        assert_eq!(read_as(&names, more.clone()).err(), expected, "{more}");
    }
}

#[test]
fn the_same_subject_of_two_issuers_is_two_principals() {
    let claims = |issuer: &str| json!({ "iss": issuer, "sub": "ann", "aud": "x", "exp": NOW + 1 });
    let principal = |issuer: &str| {
        let reader = ClaimReader::new(issuer, &ClaimSettings::default(), Duration::ZERO);
        let claims = claims(issuer);
        let verified = reader.read(claims.as_object().unwrap(), Required::IssuerAndExpiry, NOW * 1000);
        verified.unwrap().identity.principal
    };
    assert_ne!(principal("https://a"), principal("https://b"));
    assert_eq!(principal("https://a"), principal("https://a"));
}
