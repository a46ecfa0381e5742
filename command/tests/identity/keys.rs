//! Keys: those that callers have, and those that tokens are signed with. How they come, change and go.

use std::os::unix::fs::PermissionsExt as _;
use std::process::Output;

use serde_json::{Value, json};

use crate::http::until;
use crate::issuer::{Issuer, Published, encode};
use crate::rig::{Caller, Gateway};

fn is_let_in(caller: &Caller) -> bool {
    caller.modern("tools/list", json!({})).status == 200
}

fn text(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned()).concat()
}

/// `tidegate_[0-9A-Za-z]{8}_[0-9A-Za-z]{49}`, as docs/security.md tells scanners.
fn looks_like_a_key(text: &str) -> bool {
    let parts: Vec<&str> = text.split('_').collect();
    let is_word =
        |part: &str, length| part.len() == length && part.chars().all(|c| c.is_ascii_alphanumeric());
    matches!(parts[..], ["tidegate", id, secret] if is_word(id, 8) && is_word(secret, 49))
}

#[test]
fn an_api_key_is_shown_once_and_kept_as_a_digest() {
    let gateway = Gateway::start("");
    let key = gateway.add_key(&["report", "--tenant", "reef", "--role", "reader"]);
    assert!(looks_like_a_key(&key), "{} characters", key.len());
    until("the key is known", || is_let_in(&gateway.with_token(&key)));

    let path = gateway.folder.path().join("keys.toml");
    assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let secret = key.rsplit('_').next().unwrap();
    let kept = std::fs::read_to_string(&path).unwrap();
    let listed = text(&gateway.keys(&["list"]));
    assert!(listed.contains("report") && listed.contains("reef"), "{listed}");
    for (what, text) in [("the file", kept), ("the list", listed), ("the log", gateway.log())] {
        assert!(!text.contains(secret), "{what}: {text}");
    }
    // One character is another key.
    for wrong in [swapped(&key), key[..key.len() - 1].to_owned(), format!("{key}A"), key.to_uppercase()] {
        assert!(!is_let_in(&gateway.with_token(&wrong)));
    }
}

/// The same with another last character.
fn swapped(key: &str) -> String {
    let (start, last) = key.split_at(key.len() - 1);
    format!("{start}{}", if last == "A" { "B" } else { "A" })
}

#[test]
fn a_revoked_key_is_refused_everywhere() {
    let gateway = Gateway::start("[demo]\npace = \"10s\"\n");
    let key = gateway.add_key(&["report", "--tenant", "reef"]);
    let staying = gateway.add_key(&["other", "--tenant", "reef"]);
    let (report, other) = (gateway.with_token(&key), gateway.with_token(&staying));
    until("both keys are known", || is_let_in(&report) && is_let_in(&other));
    let session = report.session();
    let count = json!({"name": "demo_count", "arguments": {"to": 100}});
    let listen = json!({"notifications": {"toolsListChanged": true}});
    // What is open: the stream of a session, a subscription, and calls of both eras that take a quarter of an hour.
    let mut stream = report.stream(&session, &[]);
    let mut subscription = report.open_modern("subscriptions/listen", listen.clone());
    subscription.until("acknowledged");
    assert_eq!(stream.status(), 200);
    let mut modern = report.open_modern("tools/call", count.clone());
    let mut legacy = report.open_in_session(&session, "tools/call", count.clone());
    let mut others = other.open_modern("subscriptions/listen", listen);
    others.until("acknowledged");

    let revoked = gateway.keys(&["revoke", "report"]);
    assert!(revoked.status.success(), "{}", text(&revoked));
    until("the key is refused", || report.modern("tools/list", json!({})).status == 401);
    for (what, open) in [
        ("the stream of a session", &mut stream),
        ("a subscription", &mut subscription),
        ("a modern call", &mut modern),
        ("a legacy call", &mut legacy),
    ] {
        open.read_to_end();
        let text = open.text();
        assert!(!text.contains("Counted to"), "{what}: {text}");
    }
    assert_eq!(modern.answer().status, 401, "{:?}", modern.answer());
    assert_eq!(report.in_session(&session, "tools/list", json!({})).status, 401);
    assert_eq!(report.end(&session).status, 401);
    // Nobody else notices.
    assert!(is_let_in(&other));
    assert!(!others.ends_within(std::time::Duration::from_millis(300)), "{}", others.text());
}

#[test]
fn a_rotated_key_is_the_same_caller() {
    let gateway = Gateway::start("");
    let old = gateway.add_key(&["report", "--tenant", "reef"]);
    until("the key is known", || is_let_in(&gateway.with_token(&old)));
    let session = gateway.with_token(&old).session();
    let rotated = gateway.keys(&["rotate", "report"]);
    assert!(rotated.status.success(), "{}", text(&rotated));
    let new = String::from_utf8(rotated.stdout).unwrap().trim_end().to_owned();
    assert!(looks_like_a_key(&new) && new != old);
    until("the new one is known", || is_let_in(&gateway.with_token(&new)));
    until("the old one is refused", || !is_let_in(&gateway.with_token(&old)));
    let goes_on = gateway.with_token(&new).in_session(&session, "tools/list", json!({}));
    assert!(goes_on.is_fine(), "{goes_on:?}");

    // With a time of grace both are good.
    let rotated = gateway.keys(&["rotate", "report", "--grace", "1h"]);
    let newest = String::from_utf8(rotated.stdout).unwrap().trim_end().to_owned();
    until("the newest is known", || is_let_in(&gateway.with_token(&newest)));
    assert!(is_let_in(&gateway.with_token(&new)));
}

#[test]
fn a_key_ends_when_it_says_and_opens_what_it_says() {
    let gateway = Gateway::start("[endpoints.research]\nservers = [\"demo\"]\n");
    let brief = gateway.add_key(&["brief", "--tenant", "reef", "--expires", "3s"]);
    until("the key is known", || is_let_in(&gateway.with_token(&brief)));
    until("the key has ended", || !is_let_in(&gateway.with_token(&brief)));

    let narrow = gateway.add_key(&["narrow", "--tenant", "reef", "--endpoint", "research"]);
    until("the key is known", || is_let_in(&gateway.with_token(&narrow).at("/research/mcp")));
    assert!(!is_let_in(&gateway.with_token(&narrow)), "it is for another endpoint");
}

#[test]
fn a_key_and_a_token_of_the_same_name_are_two_people() {
    let gateway = Gateway::start("");
    let key = gateway.add_key(&["ann", "--tenant", "reef"]);
    let by_key = gateway.with_token(&key);
    until("the key is known", || is_let_in(&by_key));
    let session = gateway.as_user(crate::rig::ANN).session();
    assert_eq!(by_key.in_session(&session, "tools/list", json!({})).status, 404);
    let session = by_key.session();
    let by_token = gateway.as_user(crate::rig::ANN);
    assert_eq!(by_token.in_session(&session, "tools/list", json!({})).status, 404);
}

/// Files that are none, each of which stops the start and is ignored later on.
const NO_KEY_FILE: [&str; 6] = [
    "this is no TOML",
    "[[keys]]\nname = \"no hash\"\n",
    "[[keys]]\nid = \"AAAAAAAA\"\nname = \"short\"\nhash = \"sha256:00\"\ncreated = \"2026-01-01T00:00:00Z\"\n",
    "keys = 7\n",
    "unknown = true\n",
    "\u{0}\u{1}\u{2}",
];

#[test]
fn a_key_file_that_does_not_parse_stops_the_start() {
    let config = format!("{}{}", crate::rig::SERVERS, crate::rig::AUTH);
    for file in NO_KEY_FILE {
        let (folder, issuers) = Gateway::folder(&config);
        crate::rig::write(folder.path(), "keys.toml", file);
        let Err((code, said)) = Gateway::try_start_in((folder, issuers), vec![]) else {
            panic!("it starts with {file:?}")
        };
        assert_ne!(code, 0);
        assert!(said.contains("keys.toml"), "{file:?}: {said}");
    }
    let (folder, issuers) = Gateway::folder(&config);
    let path = folder.path().join("keys.toml");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o666)).unwrap();
    let Err((_, said)) = Gateway::try_start_in((folder, issuers), vec![]) else {
        panic!("it starts with a file that everybody can write")
    };
    assert!(said.contains("keys.toml"), "{said}");
}

#[test]
fn a_key_file_that_does_not_parse_any_more_changes_nothing() {
    let gateway = Gateway::start("");
    let key = gateway.add_key(&["report", "--tenant", "reef"]);
    until("the key is known", || is_let_in(&gateway.with_token(&key)));
    let good = std::fs::read_to_string(gateway.folder.path().join("keys.toml")).unwrap();
    gateway.write("keys.toml", "this is no TOML");
    gateway.logs("keys.toml");
    assert!(is_let_in(&gateway.with_token(&key)), "the last good one stays");
    gateway.write("keys.toml", &good.replace("report", "renamed"));
    let another = gateway.add_key(&["another", "--tenant", "reef"]);
    until("a good file counts again", || is_let_in(&gateway.with_token(&another)));
}

/// A gateway whose only issuer publishes its keys at a URL; and a way to make tokens.
fn with_issuer(issuer: &Issuer, jwks: &str) -> Gateway {
    let name = &issuer.name;
    Gateway::start_exactly(&format!(
        "[servers.demo]\nbuiltin = \"demo\"\n[[auth.jwt]]\nissuer = \"{name}\"\n{jwks}"
    ))
}

fn token(gateway: &Gateway, issuer: &Issuer, header: impl FnOnce(&mut Value)) -> String {
    let mut own = issuer.header();
    header(&mut own);
    issuer.sign(&own, &issuer.claims("ann", &gateway.url("")))
}

#[test]
fn a_new_key_of_the_issuer_is_found_and_a_flood_is_not_passed_on() {
    let published = Published::start();
    let first = Issuer::new("https://id.example.com", "first");
    published.put("/jwks", 200, &first.jwks());
    let gateway = with_issuer(&first, &format!("jwks = \"{}/jwks\"\n", published.origin));
    until("the first key is good", || is_let_in(&gateway.with_token(&token(&gateway, &first, |_| {}))));

    let second = Issuer::new("https://id.example.com", "second");
    published.put("/jwks", 200, &json!({"keys": [first.jwk(), second.jwk()]}));
    until("the second key is found", || is_let_in(&gateway.with_token(&token(&gateway, &second, |_| {}))));
    assert!(is_let_in(&gateway.with_token(&token(&gateway, &first, |_| {}))), "and the first is still good");

    let before = published.asked("/jwks");
    for n in 0..200 {
        let unknown = token(&gateway, &first, |header| header["kid"] = format!("made-up-{n}").into());
        assert!(!is_let_in(&gateway.with_token(&unknown)));
    }
    let asked = published.asked("/jwks") - before;
    assert!(asked <= 5, "200 made-up keys, and the issuer was asked {asked} times");
    assert!(is_let_in(&gateway.with_token(&token(&gateway, &second, |_| {}))), "others are served meanwhile");
}

#[test]
fn an_issuer_that_goes_away_takes_nobody_with_it() {
    let published = Published::start();
    let issuer = Issuer::new("https://id.example.com", "first");
    published.put("/jwks", 200, &issuer.jwks());
    let gateway = with_issuer(&issuer, &format!("jwks = \"{}/jwks\"\n", published.origin));
    until("the key is good", || is_let_in(&gateway.with_token(&token(&gateway, &issuer, |_| {}))));
    for (status, document) in [(500, json!({})), (200, json!("nothing")), (200, json!({"keys": []}))] {
        published.put("/jwks", status, &document);
        let unknown = token(&gateway, &issuer, |header| header["kid"] = "made-up".into());
        assert!(!is_let_in(&gateway.with_token(&unknown)));
        // An empty set is an answer, too: the issuer may have taken its keys back. Nothing else is.
        if status != 200 || document == json!("nothing") {
            assert!(is_let_in(&gateway.with_token(&token(&gateway, &issuer, |_| {}))), "{document}");
        }
    }
}

#[test]
fn keys_are_found_through_the_metadata_of_the_issuer_alone() {
    for (is_its_own, path) in [
        (true, "/.well-known/oauth-authorization-server"),
        (true, "/.well-known/openid-configuration"),
        (false, "/.well-known/oauth-authorization-server"),
    ] {
        let published = Published::start();
        let issuer = Issuer::new(&published.origin, "first");
        let claimed =
            if is_its_own { published.origin.clone() } else { "https://evil.example.com".to_owned() };
        published.put(
            path,
            200,
            &json!({"issuer": claimed, "jwks_uri": format!("{}/keys", published.origin)}),
        );
        published.put("/keys", 200, &issuer.jwks());
        let gateway = with_issuer(&issuer, "");
        let good = token(&gateway, &issuer, |_| {});
        match is_its_own {
            true => until(path, || is_let_in(&gateway.with_token(&good))),
            false => {
                assert!(!is_let_in(&gateway.with_token(&good)), "RFC 8414, 3.3: it says that it is another")
            }
        }
    }
}

#[test]
fn a_key_of_another_kind_is_no_secret() {
    // Somebody has put a shared secret among the public keys, and an EC key for encryption.
    let issuer = Issuer::new("https://id.example.com", "first");
    let secret = b"a secret of 32 bytes, or nearly.";
    let published = Published::start();
    let mut for_encryption = issuer.jwk();
    for_encryption["use"] = "enc".into();
    for_encryption["alg"] = "ECDH-ES".into();
    let shared = json!({"kty": "oct", "kid": "shared", "alg": "HS256", "k": encode(secret)});
    published.put("/jwks", 200, &json!({"keys": [shared, for_encryption]}));
    let gateway = with_issuer(&issuer, &format!("jwks = \"{}/jwks\"\n", published.origin));
    let header = json!({"alg": "HS256", "typ": "at+jwt", "kid": "shared"});
    let message = crate::issuer::message(&header, &issuer.claims("ann", &gateway.url("")));
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, secret);
    let signed = format!("{message}.{}", encode(ring::hmac::sign(&key, message.as_bytes()).as_ref()));
    assert!(!is_let_in(&gateway.with_token(&signed)));
    assert!(
        !is_let_in(&gateway.with_token(&token(&gateway, &issuer, |_| {}))),
        "its key is for something else"
    );
}

#[test]
fn a_jwks_file_that_does_not_parse_stops_the_start_and_later_changes_nothing() {
    let config = format!("{}{}", crate::rig::SERVERS, crate::rig::AUTH);
    let (folder, issuers) = Gateway::folder(&config);
    crate::rig::write(folder.path(), "reef.json", "no JSON");
    let Err((_, said)) = Gateway::try_start_in((folder, issuers), vec![]) else { panic!("it starts") };
    assert!(said.contains("reef.json"), "{said}");

    let gateway = Gateway::start("");
    let ann = gateway.as_user(crate::rig::ANN);
    assert!(is_let_in(&ann));
    gateway.write("reef.json", "no JSON");
    // Whatever is read again is read with the configuration.
    let file = gateway.folder.path().join("tidegate.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    gateway.write("tidegate.toml", &format!("{text}\n# changed\n"));
    gateway.logs("reef.json");
    assert!(is_let_in(&gateway.as_user(crate::rig::ANN)));
}
