//! What people without credentials are told, and where to get some.

use serde_json::{Value, json};

use crate::rig::{ANN, Gateway, request};

/// Everything that can be asked for: nothing of it is there for somebody without credentials.
const WAYS: [(&str, &str); 16] = [
    ("POST", "/mcp"),
    ("GET", "/mcp"),
    ("DELETE", "/mcp"),
    ("PUT", "/mcp"),
    ("HEAD", "/mcp"),
    ("POST", "/research/mcp"),
    ("GET", "/research/mcp"),
    ("DELETE", "/research/mcp"),
    ("GET", "/sse"),
    ("POST", "/messages"),
    ("GET", "/"),
    ("GET", "/memory"),
    ("HEAD", "/memory"),
    ("GET", "/favicon.ico"),
    ("GET", "/nowhere"),
    ("POST", "/nowhere/mcp"),
];

#[test]
fn nothing_is_open() {
    let gateway = Gateway::start("http_sse = true\n[endpoints.research]\nservers = [\"demo\"]\n");
    for (method, path) in WAYS {
        let answer = gateway.nobody().send(method, path, &[], "");
        assert_eq!(answer.status, 401, "{method} {path}: {answer:?}");
        let challenge = answer.header("www-authenticate");
        assert!(challenge.starts_with("Bearer "), "{method} {path}: {challenge}");
        // RFC 6750, 3.1: nothing is wrong with a token that was not sent.
        assert!(!challenge.contains("error="), "{method} {path}: {challenge}");
        assert!(challenge.contains("scope=\"mcp\""), "{method} {path}: {challenge}");
    }
    // And it is closed for them alone.
    assert_eq!(gateway.as_user(ANN).send("GET", "/", &[], "").status, 200);
    assert!(gateway.as_user(ANN).at("/research/mcp").modern("tools/list", json!({})).status == 401);
}

#[test]
fn metadata_says_where_to_log_in() {
    let gateway = Gateway::start("[endpoints.research]\nservers = [\"demo\"]\n");
    let origin = format!("http://{}", gateway.address);
    let well_known = "/.well-known/oauth-protected-resource";
    for (path, resource) in [
        (well_known.to_owned(), "/mcp"),
        (format!("{well_known}/mcp"), "/mcp"),
        (format!("{well_known}/research/mcp"), "/research/mcp"),
    ] {
        let answer = gateway.nobody().send("GET", &path, &[], "");
        assert_eq!(answer.status, 200, "{path}: {answer:?}");
        assert!(answer.header("content-type").starts_with("application/json"), "{path}: {answer:?}");
        let document = answer.json();
        assert_eq!(document["resource"], format!("{origin}{resource}"), "{path}");
        assert_eq!(document["scopes_supported"], json!(["mcp"]), "{path}: no more than everybody needs");
        assert_eq!(document["bearer_methods_supported"], json!(["header"]), "{path}");
        let servers = json!(["https://id.reef.example", "https://id.other.example"]);
        assert_eq!(document["authorization_servers"], servers, "{path}");
        assert_eq!(gateway.nobody().send("HEAD", &path, &[], "").status, 200, "{path}");
        assert_ne!(gateway.nobody().send("POST", &path, &[], "{}").status, 200, "{path}");
    }
    for unknown in ["/nowhere", "/nowhere/mcp", "/research", "/mcp/", "/../mcp"] {
        let answer = gateway.nobody().send("GET", &format!("{well_known}{unknown}"), &[], "");
        assert_ne!(answer.status, 200, "{unknown}: {answer:?}");
    }
    // Each endpoint names its own document.
    for (path, document) in [("/mcp", "/mcp"), ("/research/mcp", "/research/mcp")] {
        let answer = gateway.nobody().send("POST", path, &[], "{}");
        let named = format!("resource_metadata=\"{origin}{well_known}{document}\"");
        assert!(answer.header("www-authenticate").contains(&named), "{path}: {answer:?}");
    }
}

#[test]
fn api_keys_alone_have_no_metadata() {
    let gateway =
        Gateway::start_exactly("[servers.demo]\nbuiltin = \"demo\"\n[auth]\nkeys = \"keys.toml\"\n");
    let answer = gateway.nobody().send("GET", "/.well-known/oauth-protected-resource/mcp", &[], "");
    assert_ne!(answer.status, 200, "there is nobody to log in with: {answer:?}");
    let refused = gateway.nobody().modern("tools/list", Value::Object(Default::default()));
    assert_eq!(refused.status, 401);
    let challenge = refused.header("www-authenticate");
    assert!(challenge.starts_with("Bearer") && !challenge.contains("resource_metadata"), "{challenge}");
}

#[test]
fn preflights_need_no_credentials_and_give_none() {
    let gateway = Gateway::start("allow_origins = [\"https://app.example.com\"]\n");
    let preflight = |origin: &str| {
        let headers = [
            ("Origin", origin),
            ("Access-Control-Request-Method", "POST"),
            ("Access-Control-Request-Headers", "authorization, content-type"),
        ];
        request(&gateway, "OPTIONS", "/mcp", &headers, "")
    };
    let allowed = preflight("https://app.example.com");
    assert!(allowed.status < 300, "{allowed:?}");
    assert_eq!(allowed.header("access-control-allow-origin"), "https://app.example.com");
    assert!(allowed.header("access-control-allow-headers").to_ascii_lowercase().contains("authorization"));
    let refused = preflight("https://evil.example.com");
    assert_eq!(refused.header("access-control-allow-origin"), "", "{refused:?}");
    // A page may read why it was refused.
    let page = [("Origin", "https://app.example.com")];
    let refused = request(&gateway, "POST", "/mcp", &page, "{}");
    assert_eq!(refused.status, 401);
    assert_eq!(refused.header("access-control-allow-origin"), "https://app.example.com", "{refused:?}");
    assert!(
        refused.header("access-control-expose-headers").to_ascii_lowercase().contains("www-authenticate")
    );
}
