//! Which answers of identity providers and authorization servers are believed.

use serde_json::json;

use super::*;
use crate::oauth::jwt::encode;

const NOW: u64 = 1_800_000_000;

fn jwt(header: &Value, claims: &Value) -> String {
    format!("{}.{}.{}", encode(header.to_string()), encode(claims.to_string()), encode("signature"))
}

fn header() -> Value {
    json!({"alg": "ES256", "typ": "oauth-id-jag+jwt"})
}

fn claims() -> Value {
    json!({
        "iss": "https://idp.example", "sub": "somebody", "aud": "https://as.example", "client_id": "me", "jti": "1",
        "exp": NOW + 60, "iat": NOW, "resource": "https://a.example/mcp", "scope": "read write",
    })
}

fn answer(token: String) -> Value {
    json!({"access_token": token, "issued_token_type": ID_JAG, "token_type": "N_A"})
}

fn changed(mut value: Value, changes: &Value) -> Value {
    for (name, change) in changes.as_object().unwrap() {
        match change {
            Value::Null => _ = value.as_object_mut().unwrap().remove(name),
            other => value[name] = other.clone(),
        }
    }
    value
}

fn check(answer: &Value, scopes: &str) -> Result<String, &'static str> {
    let expected = ExpectedClaims {
        idp: "https://idp.example",
        server: "https://as.example",
        client: "me",
        resource: "https://a.example/mcp",
        scopes: &Scopes::parse(scopes),
    };
    let given: Exchanged = serde_json::from_value(answer.clone()).map_err(|_| "malformed")?;
    given.check(&expected, NOW).map(|scopes| scopes.to_string())
}

#[test]
fn a_statement_is_about_us() {
    let good = answer(jwt(&header(), &claims()));
    assert_eq!(check(&good, "read write").unwrap(), "read write");
    // What was not asked for is the identity provider's to decide.
    assert_eq!(check(&good, "").unwrap(), "read write");
    for (changes, why) in [
        (json!({"iss": "https://evil.example"}), "another identity provider"),
        (json!({"aud": "https://evil.example"}), "another authorization server"),
        (json!({"aud": ["https://as.example", "https://evil.example"]}), "another authorization server"),
        (json!({"client_id": "you"}), "another client"),
        (json!({"resource": "https://evil.example"}), "another resource"),
        (json!({"resource": ["https://a.example/mcp", "https://evil.example"]}), "another resource"),
        (json!({"sub": " "}), "nobody"),
        (json!({"jti": ""}), "no id"),
        (json!({"exp": NOW}), "expired"),
        (json!({"iat": NOW + 61}), "future"),
        (json!({"authorization_details": [{}]}), "authorization_details"),
        (json!({"exp": null}), "cannot be read"),
        (json!({"scope": null}), "which scopes"),
        (json!({"scope": "read write admin"}), "more scopes"),
        (json!({"scope": "read  write"}), "malformed"),
        (json!({"scope": "read read"}), "malformed"),
        (json!({"scope": "read"}), "fewer scopes"),
    ] {
        let error = check(&answer(jwt(&header(), &changed(claims(), &changes))), "read write").unwrap_err();
        assert!(error.contains(why), "{changes}: {error}");
    }
    let lists =
        json!({"aud": ["https://as.example"], "resource": ["https://a.example/mcp"], "iat": NOW + 60});
    assert!(check(&answer(jwt(&header(), &changed(claims(), &lists))), "read write").is_ok());
}

#[test]
fn a_statement_is_a_statement() {
    for (changes, why) in [
        (json!({"typ": "JWT"}), "not an ID-JAG"),
        (json!({"typ": null}), "not an ID-JAG"),
        (json!({"alg": "None"}), "not signed"),
        (json!({"alg": ""}), "not signed"),
        (json!({"alg": null}), "header"),
    ] {
        let token = jwt(&changed(header(), &changes), &claims());
        let error = check(&answer(token), "read write").unwrap_err();
        assert!(error.contains(why), "{changes}: {error}");
    }
    let good = jwt(&header(), &claims());
    for (token, why) in [
        (good.rsplit_once('.').unwrap().0.to_owned(), "not a signed JWT"),
        (format!("{good}.x"), "not a signed JWT"),
        (format!("{}.", good.rsplit_once('.').unwrap().0), "not signed"),
        ("a.b.c".to_owned(), "cannot be read"),
        (String::new(), "not a signed JWT"),
    ] {
        let error = check(&answer(token.clone()), "read write").unwrap_err();
        assert!(error.contains(why) || error.contains("not signed"), "{token}: {error}");
    }
    for (changes, why) in [
        (json!({"issued_token_type": "urn:ietf:params:oauth:token-type:access_token"}), "not an ID-JAG"),
        (json!({"token_type": "Bearer"}), "not an ID-JAG"),
        (json!({"refresh_token": "r"}), "not an ID-JAG alone"),
        (json!({"resource": "https://evil.example"}), "another resource"),
        (json!({"authorization_details": [{}]}), "authorization_details"),
        (json!({"scope": "read"}), "other scopes"),
        (json!({"issued_token_type": null}), "malformed"),
    ] {
        let error = check(&changed(answer(good.clone()), &changes), "read write").unwrap_err();
        assert!(error.contains(why), "{changes}: {error}");
    }
    // Fewer scopes than were asked for are fine if both say so.
    let fewer = jwt(&header(), &changed(claims(), &json!({"scope": "read"})));
    let said = changed(answer(fewer), &json!({"scope": "read"}));
    assert_eq!(check(&said, "read write").unwrap(), "read");
}

#[test]
fn a_token_allows_no_more_than_the_statement() {
    let good = json!({"access_token": "t", "token_type": "bearer", "expires_in": 60});
    let check = |changes: &Value| {
        let token: Redeemed =
            serde_json::from_value(changed(good.clone(), changes)).map_err(|_| "malformed")?;
        token.check("https://a.example/mcp", Scopes::parse("read write"))
    };
    let scopes = |changes: &Value| check(changes).unwrap().scopes.unwrap().to_string();
    assert_eq!(scopes(&json!({})), "read write");
    assert_eq!(scopes(&json!({"scope": "write", "resource": "https://a.example/mcp"})), "write");
    for (changes, why) in [
        (json!({"token_type": "DPoP"}), "bearer"),
        (json!({"access_token": " "}), "bearer"),
        (json!({"refresh_token": "r"}), "renewed"),
        (json!({"expires_in": 0}), "expired"),
        (json!({"resource": "https://evil.example"}), "another resource"),
        (json!({"scope": "read admin"}), "more scopes"),
        (json!({"scope": ""}), "malformed"),
        (json!({"authorization_details": [{}]}), "authorization_details"),
        (json!({"token_type": null}), "malformed"),
    ] {
        let error = check(&changes).unwrap_err();
        assert!(error.contains(why), "{changes}: {error}");
    }
}

#[test]
fn settings_make_sense() {
    let endpoint = |issuer: &str, client: &str, proof: Proof| TokenEndpoint {
        http: Arc::new(Http::new(AllowedAddresses::anywhere())),
        url: Url::parse(&format!("{issuer}/token")).unwrap(),
        issuer: issuer.to_owned(),
        client_id: client.to_owned(),
        proof,
        resource: None,
        dpop: None,
    };
    let (idp, server) = ("https://idp.example", "https://as.example");
    let check = |idp: TokenEndpoint, server: TokenEndpoint, resource: &str, token: &str, scopes: &[&str]| {
        check_settings(&idp, &server, resource, &Secret::new(token), &scopes.iter().copied().collect())
    };
    let resource = "https://a.example/mcp";
    let one = || endpoint(idp, "us", Proof::None);
    let other = || endpoint(server, "me", Proof::Basic("s".into()));
    assert_eq!(check(one(), other(), resource, "t", &["read"]), Ok(()));
    assert_eq!(check(one(), endpoint("http://localhost:1", "me", Proof::None), resource, "t", &[]), Ok(()));
    for (outcome, why) in [
        (check(endpoint("http://idp.example", "us", Proof::None), other(), resource, "t", &[]), "https"),
        (check(one(), other(), "https://u:p@a.example/mcp", "t", &[]), "https"),
        (check(one(), other(), "https://a.example/mcp#x", "t", &[]), "https"),
        (check(one(), other(), "", "t", &[]), "https"),
        (check(one(), endpoint(idp, "me", Proof::None), resource, "t", &[]), "the same"),
        (check(endpoint(idp, " ", Proof::None), other(), resource, "t", &[]), "client id"),
        (check(one(), other(), resource, " ", &[]), "ID token"),
        (check(one(), endpoint(server, "me", Proof::Post("".into())), resource, "t", &[]), "secret"),
        (check(one(), other(), resource, "t", &["a\"b"]), "scope"),
    ] {
        let error = outcome.unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
