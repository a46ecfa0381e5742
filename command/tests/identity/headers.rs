//! Headers that say who calls, where to, and through whom: what counts, and what does not.

use serde_json::json;

use crate::http::Answer;
use crate::rig::{ANN, BOB, Gateway, command, request};

const LIST: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"_meta":{
    "io.modelcontextprotocol/protocolVersion":"2026-07-28",
    "io.modelcontextprotocol/clientInfo":{"name":"tests","version":"1"},
    "io.modelcontextprotocol/clientCapabilities":{}}}}"#;

/// Lists the tools with exactly these headers beside the usual ones.
fn list(gateway: &Gateway, path: &str, headers: &[(&str, &str)]) -> Answer {
    let usual = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    request(gateway, "POST", path, &[&usual, headers].concat(), LIST)
}

#[test]
fn authorization_is_one_header_with_one_credential() {
    let gateway = Gateway::start("");
    let token = gateway.token("", ANN, |_| {});
    let (bearer, bobs) = (format!("Bearer {token}"), format!("Bearer {}", gateway.token("", BOB, |_| {})));
    assert_eq!(list(&gateway, "/mcp", &[("Authorization", &bearer)]).status, 200);
    let lower = format!("bearer {token}");
    assert_eq!(list(&gateway, "/mcp", &[("authorization", &lower)]).status, 200, "RFC 7235: in any case");

    let oversized = format!("Bearer {}", "a".repeat(200 * 1024));
    let large = format!("Bearer {}", "a".repeat(20 * 1024));
    let (basic, bare) = ("Basic YW5uOnNlY3JldA==".to_owned(), token.clone());
    let (two, spaced) = (format!("{bearer}, {bearer}"), format!("Bearer {token} {token}"));
    type Given<'a> = Vec<(&'a str, &'a str)>;
    let rows: Vec<(&str, Given<'_>, &[u16])> = vec![
        ("twice the same", vec![("Authorization", &bearer), ("Authorization", &bearer)], &[400]),
        ("two people", vec![("Authorization", &bearer), ("Authorization", &bobs)], &[400]),
        ("a token and an empty one", vec![("Authorization", &bearer), ("Authorization", "")], &[400]),
        ("two in one", vec![("Authorization", &two)], &[400, 401]),
        ("a token and more", vec![("Authorization", &spaced)], &[400, 401]),
        ("larger than any token", vec![("Authorization", &large)], &[400, 401, 431]),
        ("oversized", vec![("Authorization", &oversized)], &[400, 401, 431]),
        ("another scheme", vec![("Authorization", &basic)], &[400, 401]),
        ("no scheme", vec![("Authorization", &bare)], &[400, 401]),
        ("a scheme without a token", vec![("Authorization", "Bearer")], &[400, 401]),
        ("a scheme and a space", vec![("Authorization", "Bearer ")], &[400, 401]),
        ("empty", vec![("Authorization", "")], &[400, 401]),
        ("another header", vec![("X-Authorization", &bearer)], &[401]),
        ("a proxy's header", vec![("Proxy-Authorization", &bearer)], &[401]),
        ("the header of API keys elsewhere", vec![("X-API-Key", &bare)], &[401]),
        ("a cookie", vec![("Cookie", &bearer)], &[401]),
        ("a proxy's word for it", vec![("X-Forwarded-User", "ann"), ("X-User-Id", "ann")], &[401]),
    ];
    for (what, headers, expected) in rows {
        let answer = list(&gateway, "/mcp", &headers);
        assert!(expected.contains(&answer.status), "{what}: {answer:?}");
        let is_malformed = answer.status == 400 && !answer.header("www-authenticate").is_empty();
        if is_malformed {
            assert!(
                answer.header("www-authenticate").contains("error=\"invalid_request\""),
                "{what}: {answer:?}"
            );
        }
        assert!(!format!("{}{}", answer.head, answer.body).contains(&token), "{what}");
    }
    assert!(!gateway.log().contains(token.rsplit_once('.').unwrap().1), "{}", gateway.log());
}

#[test]
fn a_token_in_the_query_is_none_and_is_not_logged() {
    let gateway = Gateway::start("");
    let token = gateway.token("", ANN, |_| {});
    for name in ["access_token", "token", "authorization", "api_key", "key"] {
        let answer = list(&gateway, &format!("/mcp?{name}={token}"), &[]);
        assert!(matches!(answer.status, 400 | 401), "{name}: {answer:?}");
        assert!(!format!("{}{}", answer.head, answer.body).contains(&token), "{name}: {answer:?}");
    }
    // RFC 6750, 2: a client must not use more than one way at a time, and a URL that has a token in it has leaked it.
    let header = format!("Bearer {token}");
    let both = list(&gateway, &format!("/mcp?access_token={token}"), &[("Authorization", &header)]);
    assert_eq!(both.status, 400, "{both:?}");
    assert!(both.header("www-authenticate").contains("error=\"invalid_request\""), "{both:?}");
    let form = [("Content-Type", "application/x-www-form-urlencoded")];
    let body = format!("access_token={token}");
    assert_ne!(request(&gateway, "POST", "/mcp", &form, &body).status, 200);
    assert!(!gateway.log().contains(&token), "{}", gateway.log());
}

#[test]
fn host_changes_nothing_that_is_said() {
    let gateway = Gateway::start("");
    let origin = format!("http://{}", gateway.address);
    let well_known = "/.well-known/oauth-protected-resource/mcp";
    for host in
        ["evil.example.com", "127.0.0.1.evil.example.com", "169.254.169.254", "localhost.evil.example"]
    {
        for path in ["/mcp", well_known] {
            let answer = request(&gateway, "GET", path, &[("Host", host)], "");
            assert!(matches!(answer.status, 400 | 403 | 421), "{host} {path}: {answer:?}");
            assert!(!answer.header("www-authenticate").contains("evil"), "{answer:?}");
            assert!(answer.json()["resource"].is_null(), "{answer:?}");
        }
    }
    // A host that is fine is still not what metadata is made of.
    let port = gateway.address.port();
    let forwarded = [
        ("X-Forwarded-Host", "evil.example.com"),
        ("X-Forwarded-Proto", "https"),
        ("X-Original-Host", "evil.example.com"),
        ("Forwarded", "host=evil.example.com;proto=https"),
    ];
    for host in [format!("localhost:{port}"), format!("127.0.0.1:{port}")] {
        let headers = [&[("Host", host.as_str())][..], &forwarded].concat();
        let document = request(&gateway, "GET", well_known, &headers, "").json();
        assert_eq!(document["resource"], format!("{origin}/mcp"), "{host}");
        let refused = request(&gateway, "POST", "/mcp", &headers, "{}");
        assert_eq!(refused.status, 401, "{refused:?}");
        let named = format!("resource_metadata=\"{origin}{well_known}\"");
        assert!(refused.header("www-authenticate").contains(&named), "{host}: {refused:?}");
    }
}

#[test]
fn public_url_is_what_is_said() {
    let config = "public_url = \"https://mcp.reef.example\"\n";
    let gateway = Gateway::start(config);
    let document = gateway.nobody().send("GET", "/.well-known/oauth-protected-resource", &[], "").json();
    assert_eq!(document["resource"], "https://mcp.reef.example/mcp");
    // Its host is one of ours, and so is its URL as an audience; the address of the socket is not.
    let as_public = |claims: &mut serde_json::Value| claims["aud"] = "https://mcp.reef.example/mcp".into();
    let token = gateway.token("", ANN, as_public);
    let bearer = format!("Bearer {token}");
    let headers = [("Host", "mcp.reef.example"), ("Authorization", bearer.as_str())];
    let answer = list(&gateway, "/mcp", &headers);
    assert_eq!(answer.status, 200, "{answer:?}");
    let by_socket = gateway.as_user(ANN).modern("tools/list", json!({}));
    assert_eq!(by_socket.status, 401, "{by_socket:?}");
}

#[test]
fn proxy_headers_count_only_from_proxies() {
    // Whoever connects is on this machine, and no proxy is: what they say of addresses is theirs alone, and is not logged as the
    // address of the caller.
    let gateway = Gateway::start("");
    let forged =
        [("X-Forwarded-For", "203.0.113.7"), ("Forwarded", "for=203.0.113.7"), ("X-Real-IP", "203.0.113.7")];
    let bad = ("Authorization", "Bearer sesame");
    assert_eq!(list(&gateway, "/mcp", &[&forged[..], &[bad]].concat()).status, 401);
    gateway.logs("refused");
    assert!(!gateway.log().contains("203.0.113.7"), "{}", gateway.log());

    // Of a proxy, the last address that is no proxy's is the caller's; what stands before it the caller wrote itself.
    let trusting = Gateway::start("trusted_proxies = [\"127.0.0.1/32\", \"10.0.0.0/8\"]\n");
    let through = [("X-Forwarded-For", "198.51.100.1, 203.0.113.7, 10.0.0.1")];
    assert_eq!(list(&trusting, "/mcp", &[&through[..], &[bad]].concat()).status, 401);
    trusting.logs("203.0.113.7");
    assert!(!trusting.log().contains("198.51.100.1"), "{}", trusting.log());
}

/// What `tidegate check` says of a configuration.
fn checked(config: &str) -> (i32, String) {
    let (folder, _issuers) = Gateway::folder(config);
    let done = command(folder.path()).arg("check").output().unwrap();
    let text = [done.stdout, done.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    (done.status.code().unwrap_or(-1), text)
}

const DEMO: &str = "[servers.demo]\nbuiltin = \"demo\"\n";
const KEYS: &str = "[auth]\nkeys = \"keys.toml\"\n";

#[test]
fn dangerous_combinations_are_refused() {
    let jwt = |fields: &str| {
        format!("{DEMO}[[auth.jwt]]\nissuer = \"https://id.example.com\"\njwks = \"reef.json\"\n{fields}")
    };
    let beyond = "listen = \"0.0.0.0:0\"\nallow_hosts = [\"mcp.example.com\"]\n";
    let rows: Vec<(&str, String, &str)> = vec![
        ("beyond this machine without [auth]", format!("{beyond}{DEMO}"), "auth"),
        ("with [auth], in clear", format!("{beyond}{DEMO}{KEYS}"), "tls"),
        ("[auth] that lets nobody in", format!("{DEMO}[auth]\n"), "auth"),
        ("no public_url", format!("{beyond}trusted_proxies = [\"10.0.0.0/8\"]\n{}", jwt("")), "public_url"),
        (
            "public_url in clear",
            format!("public_url = \"http://mcp.example.com\"\n{}", jwt("")),
            "public_url",
        ),
        (
            "public_url with a path",
            format!("public_url = \"https://mcp.example.com/x\"\n{}", jwt("")),
            "public_url",
        ),
        ("an algorithm that is none", jwt("algorithms = [\"ES256\", \"none\"]\n"), "none"),
        ("an algorithm with a shared secret", jwt("algorithms = [\"HS256\"]\n"), "HS256"),
        ("no algorithm", jwt("algorithms = []\n"), "algorithms"),
        ("clocks that differ by an hour", jwt("clock_skew = \"1h\"\n"), "clock_skew"),
        (
            "the same issuer twice",
            format!("{}[[auth.jwt]]\nissuer = \"https://id.example.com\"\n", jwt("")),
            "issuer",
        ),
        ("an issuer in clear", format!("{DEMO}[[auth.jwt]]\nissuer = \"http://id.example.com\"\n"), "http"),
        (
            "keys of an issuer in clear",
            format!(
                "{DEMO}[[auth.jwt]]\nissuer = \"https://id.example.com\"\njwks = \"http://id.example.com/jwks\"\n"
            ),
            "http",
        ),
        (
            "introspection in clear",
            format!(
                "{DEMO}[[auth.introspection]]\nissuer = \"https://id.example.com\"\nurl = \"http://id.example.com/i\"\nclient_id = \"x\"\nclient_secret = \"y\"\n"
            ),
            "http",
        ),
        (
            "a proxy that is everybody",
            format!("trusted_proxies = [\"0.0.0.0/0\"]\n{DEMO}{KEYS}"),
            "trusted_proxies",
        ),
        (
            "a proxy that is no address",
            format!("trusted_proxies = [\"proxy\"]\n{DEMO}{KEYS}"),
            "trusted_proxies",
        ),
        (
            "offline_access as a scope",
            format!("{DEMO}[auth]\nkeys = \"keys.toml\"\nscopes = [\"offline_access\"]\n"),
            "offline_access",
        ),
        (
            "a scope that is two",
            format!("{DEMO}[auth]\nkeys = \"keys.toml\"\nscopes = [\"a b\"]\n"),
            "scopes",
        ),
        ("an endpoint with a slash", format!("{DEMO}{KEYS}[endpoints.\"a/../b\"]\n"), "endpoints"),
        ("a certificate without its key", format!("{DEMO}{KEYS}[tls]\ncert = \"cert.pem\"\n"), "key"),
        ("an audience that everybody has", jwt("audience = \"account\"\n"), "account"),
    ];
    let mut accepted = Vec::new();
    for (what, config, names) in rows {
        let (code, text) = checked(&config);
        if code == 0 || !text.to_lowercase().contains(&names.to_lowercase()) {
            accepted.push(format!("{what}: {code}: {text}"));
        }
    }
    assert!(accepted.is_empty(), "{}", accepted.join("\n"));
    // And each of the parts is fine where it is not dangerous.
    for config in [format!("{DEMO}{KEYS}"), jwt(""), format!("{beyond}insecure = true\n{DEMO}")] {
        let (code, text) = checked(&config);
        assert_eq!(code, 0, "{config}: {text}");
    }
}

#[test]
fn what_is_refused_does_not_start() {
    let config = format!("{DEMO}[auth]\n");
    let refused = Gateway::try_start(&config).err().expect("it lets nobody in");
    assert_ne!(refused.0, 0, "{refused:?}");
}
