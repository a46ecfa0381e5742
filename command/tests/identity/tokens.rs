//! Tokens that are no credentials here, whatever they look like.

use ring::hmac;
use serde_json::{Value, json};

use crate::http::Answer;
use crate::issuer::{Issuer, encode, message, now};
use crate::rig::{ANN, Gateway, OTHER_ID, REEF_ID};

/// A token that is bad in one way, and good in all others.
struct Bad {
    what: &'static str,
    token: String,
}

/// The issuer, and the claims and the header of a good token.
struct Good<'a> {
    issuer: &'a Issuer,
    header: Value,
    claims: Value,
}

impl Good<'_> {
    /// A token with other claims; null takes one out.
    fn claims(&self, what: &'static str, claims: Value) -> Bad {
        Bad { what, token: self.issuer.sign(&self.header, &changed(&self.claims, &claims)) }
    }

    /// A token with another header.
    fn header(&self, what: &'static str, header: Value) -> Bad {
        Bad { what, token: self.issuer.sign(&changed(&self.header, &header), &self.claims) }
    }

    /// A token with another header and with this as its signature.
    fn signed(&self, what: &'static str, header: Value, sign: impl FnOnce(&str) -> Vec<u8>) -> Bad {
        let message = message(&changed(&self.header, &header), &self.claims);
        let signature = encode(&sign(&message));
        Bad { what, token: format!("{message}.{signature}") }
    }
}

fn changed(before: &Value, change: &Value) -> Value {
    let mut after = before.clone();
    for (name, value) in change.as_object().unwrap() {
        match value {
            Value::Null => drop(after.as_object_mut().unwrap().remove(name)),
            value => after[name] = value.clone(),
        }
    }
    after
}

fn hs256(secret: &[u8]) -> impl FnOnce(&str) -> Vec<u8> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
    move |message: &str| hmac::sign(&key, message.as_bytes()).as_ref().to_vec()
}

fn bad_tokens(gateway: &Gateway) -> Vec<Bad> {
    let issuer = &gateway.issuers[0];
    let url = gateway.url("");
    let mut claims = issuer.claims("ann", &url);
    claims["org"] = "reef".into();
    let good = Good { issuer, header: issuer.header(), claims };
    let forger = Issuer::new(REEF_ID, "reef-1");
    let stranger = Issuer::new("https://id.stranger.example", "stranger-1");
    let jwks = issuer.jwks().to_string();
    let (longest, soon) = (5 * 60, 3600);
    let own = forger.jwk();
    vec![
        good.claims("expired", json!({"exp": now() - longest - 1})),
        good.claims("expired long ago", json!({"exp": 1})),
        good.claims("not valid yet", json!({"nbf": now() + soon, "exp": now() + 2 * soon})),
        good.claims("without an end", json!({"exp": null})),
        good.claims("with an end that is no number", json!({"exp": "tomorrow"})),
        good.claims("for somebody else", json!({"aud": "https://another-resource.example.com/mcp"})),
        good.claims("for nobody", json!({"aud": null})),
        good.claims("for an empty list", json!({"aud": []})),
        good.claims("for everybody", json!({"aud": "*"})),
        good.claims("for the host alone", json!({"aud": url.replace("/mcp", "")})),
        good.claims("for a longer address", json!({"aud": format!("{url}/more")})),
        good.claims("for an address that only begins alike", json!({"aud": format!("{url}2")})),
        good.claims("for Keycloak's users", json!({"aud": "account"})),
        good.claims("of nobody", json!({"iss": null})),
        good.claims("of an unknown issuer", json!({"iss": "https://id.stranger.example"})),
        good.claims("of an issuer with a slash more", json!({"iss": format!("{REEF_ID}/")})),
        good.claims("of another issuer that is known", json!({"iss": OTHER_ID})),
        good.claims("of two issuers", json!({"iss": [REEF_ID, OTHER_ID]})),
        good.claims("about nobody", json!({"sub": null})),
        good.claims("about an empty name", json!({"sub": ""})),
        good.claims("without its tenant", json!({"org": null})),
        good.claims("with an empty tenant", json!({"org": ""})),
        good.claims("with two tenants", json!({"org": ["reef", "tide"]})),
        good.claims("an ID token, by its nonce", json!({"nonce": "n"})),
        good.claims("an ID token, by its at_hash", json!({"at_hash": "h"})),
        good.claims("an ID token, by its token_use", json!({"token_use": "id"})),
        good.header("a grant", json!({"typ": "oauth-id-jag+jwt"})),
        good.header("with an unknown key", json!({"kid": "reef-2"})),
        good.header("with an extension that must be understood", json!({"crit": ["b64"], "b64": false})),
        good.header("said to be RS256", json!({"alg": "RS256"})),
        good.signed("unsigned", json!({"alg": "none"}), |_| Vec::new()),
        good.signed("unsigned, said otherwise", json!({"alg": "nOnE"}), |_| Vec::new()),
        good.signed("signed with nothing", json!({}), |_| Vec::new()),
        good.signed("signed with zeros", json!({}), |_| vec![0; 64]),
        good.signed("signed with the public key", json!({"alg": "HS256"}), hs256(issuer.public())),
        good.signed("signed with the key set", json!({"alg": "HS256"}), hs256(jwks.as_bytes())),
        good.signed("signed with an empty secret", json!({"alg": "HS256"}), hs256(b"")),
        Bad { what: "forged", token: forger.sign(&good.header, &good.claims) },
        Bad {
            what: "forged, with its key in it",
            token: { forger.sign(&changed(&good.header, &json!({"jwk": own, "kid": null})), &good.claims) },
        },
        Bad {
            what: "forged, with its key elsewhere",
            token: {
                let header =
                    json!({"jku": "https://id.stranger.example/jwks", "x5u": "https://id.stranger.example"});
                forger.sign(&changed(&good.header, &header), &good.claims)
            },
        },
        Bad {
            what: "a stranger's",
            token: stranger.sign(&stranger.header(), &changed(&good.claims, &json!({"iss": stranger.name}))),
        },
        Bad {
            what: "cut off",
            token: {
                let whole = issuer.sign(&good.header, &good.claims);
                whole.rsplit_once('.').unwrap().0.to_owned()
            },
        },
        Bad {
            what: "changed after it was signed",
            token: {
                let whole = issuer.sign(&good.header, &good.claims);
                let signature = whole.rsplit_once('.').unwrap().1;
                let other = message(&good.header, &changed(&good.claims, &json!({"sub": "bob"})));
                format!("{other}.{signature}")
            },
        },
        Bad { what: "claims that come twice", token: twice(issuer, &good) },
        Bad { what: "no JSON", token: format!("{}.{}.{}", encode(b"no"), encode(b"no"), encode(b"no")) },
        Bad { what: "dots", token: "..".to_owned() },
        Bad { what: "a word", token: "sesame".to_owned() },
        Bad { what: "an API key that nobody has", token: format!("tidegate_AAAAAAAA_{}", "A".repeat(49)) },
    ]
}

/// `{"sub":"ann",…,"sub":"bob"}`: who reads the first and who the last do not agree on who it is.
fn twice(issuer: &Issuer, good: &Good<'_>) -> String {
    let claims = good.claims.to_string();
    let claims = format!("{},\"sub\":\"bob\"}}", claims.strip_suffix('}').unwrap());
    let message = format!("{}.{}", encode(good.header.to_string().as_bytes()), encode(claims.as_bytes()));
    issuer.sign_text(&message)
}

/// What refuses a token says so in the words of RFC 6750, and nothing more.
#[track_caller]
fn is_refused(gateway: &Gateway, what: &str, token: &str, answer: &Answer) {
    assert_eq!(answer.status, 401, "{what}: {answer:?}");
    let challenge = answer.header("www-authenticate");
    assert!(challenge.starts_with("Bearer "), "{what}: {challenge}");
    assert!(challenge.contains("error=\"invalid_token\""), "{what}: {challenge}");
    let metadata = format!("http://{}/.well-known/oauth-protected-resource/mcp", gateway.address);
    assert!(challenge.contains(&format!("resource_metadata=\"{metadata}\"")), "{what}: {challenge}");
    let all = format!("{}{}", answer.head, answer.body);
    assert!(token.len() < 8 || !all.contains(token), "{what}: {all}");
}

#[test]
fn each_kind_is_refused_in_both_eras_and_by_every_method() {
    let gateway = Gateway::start("");
    // What is refused is refused for what is bad about it: the same without that is let in.
    let good = gateway.as_user(ANN);
    assert!(good.modern("tools/list", json!({})).is_fine());
    let session = good.session();

    for Bad { what, token } in bad_tokens(&gateway) {
        let caller = gateway.with_token(&token);
        is_refused(&gateway, what, &token, &caller.modern("tools/list", json!({})));
        is_refused(&gateway, what, &token, &caller.initialize());
        is_refused(&gateway, what, &token, &caller.in_session(&session, "tools/list", json!({})));
        let mut stream = caller.stream(&session, &[]);
        assert_eq!(stream.status(), 401, "{what}");
        stream.read_to_end();
        is_refused(&gateway, what, &token, &stream.answer());
        is_refused(&gateway, what, &token, &caller.end(&session));
    }
    // None of them did anything to her session.
    assert!(good.in_session(&session, "tools/list", json!({})).is_fine());
}

#[test]
fn they_are_logged_without_what_they_say() {
    let gateway = Gateway::start("");
    for Bad { what, token } in bad_tokens(&gateway) {
        gateway.with_token(&token).modern("tools/list", json!({}));
        let log = gateway.log();
        for part in token.split('.').filter(|part| part.len() >= 16) {
            assert!(!log.contains(part), "{what}: {log}");
        }
    }
    gateway.logs("refused");
    gateway.logs("expired");
}

#[test]
fn clocks_may_differ_a_little() {
    let gateway = Gateway::start("");
    let late = gateway.token("", ANN, |claims| claims["exp"] = (now() - 20).into());
    assert!(gateway.with_token(&late).modern("tools/list", json!({})).is_fine());
    let early = gateway.token("", ANN, |claims| claims["nbf"] = (now() + 20).into());
    assert!(gateway.with_token(&early).modern("tools/list", json!({})).is_fine());
}

#[test]
fn several_audiences_are_fine_if_one_is_ours() {
    let gateway = Gateway::start("");
    let ours = gateway.url("");
    let several = gateway.token("", ANN, |claims| claims["aud"] = json!(["https://other.example", ours]));
    assert!(gateway.with_token(&several).modern("tools/list", json!({})).is_fine());
}
