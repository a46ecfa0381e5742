//! Tokens as the common identity providers make them, with the configuration that docs/security.md has for each.

use serde_json::{Value, json};

use crate::issuer::Issuer;
use crate::rig::{Gateway, command, write};

/// The part of the page about a provider: its first block of TOML.
fn documented(heading: &str) -> String {
    let page = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/security.md");
    let page = std::fs::read_to_string(page).unwrap();
    let rest = page.split_once(heading).unwrap_or_else(|| panic!("{heading}")).1;
    rest.split("```toml\n").nth(1).and_then(|block| block.split("```").next()).unwrap().to_owned()
}

/// A provider, and a token as it would give one out.
struct Provider {
    heading: &'static str,
    issuer: &'static str,
    claims: fn() -> Value,
}

const PROVIDERS: &[Provider] = &[
    Provider {
        heading: "**Keycloak** (26)",
        issuer: "https://id.example.com/realms/reef",
        claims: || {
            json!({"typ": "Bearer", "azp": "mcp-client", "aud": ["https://mcp.example.com/mcp", "account"],
                "sub": "f3a1", "scope": "openid mcp", "org_id": "reef", "sid": "s",
                "realm_access": {"roles": ["diver"]}, "resource_access": {"account": {"roles": ["view-profile"]}}})
        },
    },
    Provider {
        heading: "**Microsoft Entra ID**",
        issuer: "https://login.microsoftonline.com/99999999-8888-7777-6666-555555555555/v2.0",
        claims: || {
            json!({"aud": "11111111-2222-3333-4444-555555555555", "ver": "2.0", "sub": "pairwise", "oid": "o-1",
                "tid": "99999999-8888-7777-6666-555555555555", "scp": "mcp", "roles": ["Diver"],
                "azp": "22222222-2222-3333-4444-555555555555", "aio": "x", "uti": "y", "rh": "z"})
        },
    },
    Provider {
        heading: "**Auth0**",
        issuer: "https://reef.eu.auth0.com/",
        claims: || {
            json!({"aud": ["https://mcp.example.com/mcp", "https://reef.eu.auth0.com/userinfo"], "azp": "c",
                "sub": "auth0|5f7c8ec7c33c6c004bbafe82", "scope": "openid mcp", "org_id": "org_reef",
                "https://mcp.example.com/roles": ["diver"], "permissions": ["mcp"]})
        },
    },
    Provider {
        heading: "**Okta**",
        issuer: "https://reef.okta.com/oauth2/aus1a2b3c4d5e6f7g8h9",
        claims: || {
            json!({"ver": 1, "aud": "https://mcp.example.com/mcp", "cid": "0oa1", "uid": "00u1", "sub": "ann@reef.example",
                "scp": ["openid", "mcp"], "org_id": "reef", "groups": ["divers"]})
        },
    },
];

#[test]
fn a_token_of_each_is_let_in() {
    for Provider { heading, issuer: name, claims } in PROVIDERS {
        let documented =
            documented(heading).replace("[[auth.jwt]]", "[[auth.jwt]]\njwks = \"provider.json\"");
        let public = "public_url = \"https://mcp.example.com\"\n";
        let config = format!("{public}[servers.demo]\nbuiltin = \"demo\"\n{documented}");
        let (folder, issuers) = Gateway::folder(&config);
        let issuer = Issuer::new(name, "provider-1");
        write(folder.path(), "provider.json", &issuer.jwks().to_string());
        let gateway = match Gateway::try_start_in((folder, issuers), vec![]) {
            Ok(gateway) => gateway,
            Err((code, said)) => panic!("{heading}: {code}: {said}"),
        };
        let token = |change: &dyn Fn(&mut Value)| {
            let mut all = issuer.claims("ann", "");
            all.as_object_mut().unwrap().remove("scope");
            for (member, value) in claims().as_object().unwrap() {
                all[member] = value.clone();
            }
            change(&mut all);
            // None of these says at+jwt by itself.
            issuer.sign(&json!({"alg": "ES256", "typ": "JWT", "kid": issuer.kid}), &all)
        };
        let listed = gateway.with_token(&token(&|_| {})).modern("tools/list", json!({}));
        assert_eq!(listed.status, 200, "{heading}: {listed:?}");
        let others = ["aud", "iss"].map(|claim| {
            let token = token(&|claims: &mut Value| claims[claim] = "https://other.example.com".into());
            gateway.with_token(&token).modern("tools/list", json!({})).status
        });
        assert_eq!(others, [401, 401], "{heading}");
        for scopes in ["scope", "scp"] {
            let lacking = token(&|claims: &mut Value| {
                if claims[scopes].is_string() || claims[scopes].is_array() {
                    claims[scopes] = "other".into();
                }
            });
            let expected = if claims()[scopes].is_null() { 200 } else { 403 };
            let answer = gateway.with_token(&lacking).modern("tools/list", json!({}));
            assert_eq!(answer.status, expected, "{heading}: {scopes}: {answer:?}");
        }
    }
}

#[test]
fn what_every_keycloak_token_has_is_no_audience() {
    let (folder, _) = Gateway::folder(
        "[servers.demo]\nbuiltin = \"demo\"\n[[auth.jwt]]\nissuer = \"https://id.example.com/realms/reef\"\n\
         jwks = \"reef.json\"\naudience = \"account\"\n",
    );
    let done = command(folder.path()).arg("check").output().unwrap();
    let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(text.contains("account"), "it is said: {text}");
}
