//! What two scenarios of the public conformance suite check, which the pinned suite does not have yet:
//! `auth-token-audience-validation` (modelcontextprotocol/conformance, issue 78) and `sep-2350-server-scope-challenge` (issue 480).
//!
//! The names of the checks are those of the suite. Each is asked in both eras.

use serde_json::{Value, json};

use crate::http::Answer;
use crate::issuer::{Issuer, now};
use crate::rig::{ANN, AUTH, Caller, Gateway, REEF_ID, SERVERS};

/// The probe of the suite: what any server answers without having been prepared.
fn probe(caller: &Caller) -> [(&'static str, Answer); 2] {
    [("2026-07-28", caller.modern("server/discover", json!({}))), ("2025-11-25", caller.initialize())]
}

#[test]
fn auth_token_audience_validation() {
    let gateway = Gateway::start("");
    let signed = |change: &dyn Fn(&mut Value)| gateway.token("", ANN, change);
    let untrusted = Issuer::new(REEF_ID, "reef-1");
    let mut claims = untrusted.claims("ann", &gateway.url(""));
    claims["org"] = "reef".into();
    let checks: [(&str, Option<String>, u16); 6] = [
        ("auth-unauthenticated-request-rejected", None, 401),
        ("auth-valid-audience-token-accepted", Some(signed(&|_| {})), 200),
        (
            "auth-wrong-audience-token-rejected",
            Some(signed(&|claims| claims["aud"] = "https://another-resource.example.com/mcp".into())),
            401,
        ),
        (
            "auth-missing-audience-token-rejected",
            Some(signed(&|claims| drop(claims.as_object_mut().unwrap().remove("aud")))),
            401,
        ),
        ("auth-expired-token-rejected", Some(signed(&|claims| claims["exp"] = (now() - 600).into())), 401),
        ("auth-untrusted-token-rejected", Some(untrusted.sign(&untrusted.header(), &claims)), 401),
    ];
    for (check, token, expected) in checks {
        let caller = token.map_or(gateway.nobody(), |token| gateway.with_token(&token));
        for (revision, answer) in probe(&caller) {
            assert_eq!(answer.status, expected, "{check}, {revision}: {answer:?}");
        }
    }
}

/// The scopes of the challenge of an answer, sorted.
fn scopes(answer: &Answer) -> Vec<String> {
    let challenge = answer.header("www-authenticate");
    let value = challenge.split("scope=\"").nth(1).and_then(|rest| rest.split('"').next());
    let mut scopes: Vec<String> = value.unwrap_or_default().split(' ').map(str::to_owned).collect();
    scopes.sort_unstable();
    scopes
}

#[test]
fn sep_2350_server_scope_challenge() {
    // As in the scenario, a tool needs two scopes that everybody else does without.
    let tools = "\"files:write\" = [\"demo_add\"]\n\"tools:call\" = [\"demo_*\"]";
    let auth = AUTH.replace("\"files:write\" = [\"demo_add\"]", tools);
    let gateway = Gateway::start_exactly(&format!("{SERVERS}{auth}"));
    let with =
        |scope: &str| gateway.with_token(&gateway.token("", ANN, |claims| claims["scope"] = scope.into()));
    let metadata = format!("http://{}/.well-known/oauth-protected-resource/mcp", gateway.address);
    let add = |caller: &Caller| caller.call("demo_add", json!({"a": 1, "b": 2}));
    let read = |caller: &Caller| caller.modern("resources/read", json!({"uri": "demo://about"}));
    let prompt = |caller: &Caller| {
        caller.modern("prompts/get", json!({"name": "demo_explain", "arguments": {"topic": "tides"}}))
    };
    type Operation<'a> = &'a dyn Fn(&Caller) -> Answer;
    // Which scopes a token has, what it wants, and what the operation needs, all in one challenge.
    let all = &["files:write", "mcp", "tools:call"][..];
    let rows: [(&str, &str, Operation<'_>, &[&str]); 6] = [
        ("tools/call", "mcp", &add, all),
        ("tools/call, with one of them", "mcp tools:call", &add, all),
        ("tools/call, with the other", "mcp files:write", &add, all),
        ("resources/read", "baseline", &read, &["mcp"]),
        ("prompts/get", "baseline", &prompt, &["mcp"]),
        ("prompts/get, with a scope that looks alike", "mcp2 MCP", &prompt, &["mcp"]),
    ];
    for (what, granted, operation, needed) in rows {
        let refused = operation(&with(granted));
        assert_eq!(refused.status, 403, "sep-2350-server-http-403, {what}: {refused:?}");
        let challenge = refused.header("www-authenticate");
        assert!(challenge.starts_with("Bearer "), "{what}: {challenge}");
        assert!(challenge.contains("error=\"insufficient_scope\""), "{what}: {challenge}");
        assert!(challenge.contains(&format!("resource_metadata=\"{metadata}\"")), "{what}: {challenge}");
        assert!(!challenge.contains("offline_access"), "{what}: {challenge}");
        assert_eq!(scopes(&refused), needed, "sep-2350-server-single-challenge, {what}");

        // A token with what was asked for is enough: nobody is challenged a second time.
        let upgraded = operation(&with(&needed.join(" ")));
        assert!(upgraded.is_fine(), "{what}, upgraded: {upgraded:?}");
    }
}

#[test]
fn scope_hierarchies_count() {
    let gateway = Gateway::start("");
    for (scope, is_enough) in [
        ("mcp files:admin", true),
        ("mcp files:write", true),
        ("mcp files:read", false),
        ("mcp files:adm", false),
    ] {
        let token = gateway.token("", ANN, |claims| claims["scope"] = scope.into());
        let added = gateway.with_token(&token).call("demo_add", json!({"a": 1, "b": 2}));
        assert_eq!(added.status, if is_enough { 200 } else { 403 }, "{scope}: {added:?}");
    }
}

#[test]
fn a_legacy_client_is_challenged_too() {
    let gateway = Gateway::start("");
    let (ann, add) = (gateway.as_user(ANN), json!({"name": "demo_add", "arguments": {"a": 1, "b": 2}}));
    let session = ann.session();
    let refused = ann.in_session(&session, "tools/call", add.clone());
    assert_eq!(refused.status, 403, "{refused:?}");
    assert_eq!(scopes(&refused), ["files:write", "mcp"]);
    // The same session goes on with the better token.
    let better = gateway.token("", ANN, |claims| claims["scope"] = "mcp files:write".into());
    let added = gateway.with_token(&better).in_session(&session, "tools/call", add);
    assert!(added.is_fine(), "{added:?}");
}
