//! How long an authorisation lasts: a session outlives a token, and ends with its person's right to be there.

use std::time::Duration;

use serde_json::json;

use crate::http::until;
use crate::issuer::now;
use crate::rig::{ANN, AUTH, Gateway, SERVERS};

#[test]
fn a_session_goes_on_with_a_refreshed_token() {
    let gateway = Gateway::start("");
    let (before, after) = (gateway.as_user(ANN), gateway.as_user(ANN));
    let session = before.session();
    assert!(after.in_session(&session, "tools/list", json!({})).is_fine());
    assert_eq!(after.stream(&session, &[]).status(), 200);
    assert!(
        before.in_session(&session, "tools/list", json!({})).is_fine(),
        "and with the old one while it is good"
    );
    assert_eq!(after.end(&session).status, 204);
    assert_eq!(before.in_session(&session, "tools/list", json!({})).status, 404);
}

#[test]
fn streams_end_with_the_token_and_calls_finish() {
    // A second each: it begins before the end of the token, and is done after that.
    let exactly = AUTH.replace("tenant = \"org\"", "tenant = \"org\"\nclock_skew = \"0s\"");
    let gateway = Gateway::start_exactly(&format!("{SERVERS}[demo]\npace = \"1s\"\n{exactly}"));
    let session = gateway.as_user(ANN).session();
    let token = gateway.token("", ANN, |claims| claims["exp"] = (now() + 4).into());
    let brief = gateway.with_token(&token);

    let mut stream = brief.stream(&session, &[]);
    assert_eq!(stream.status(), 200);
    let mut subscription =
        brief.open_modern("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    subscription.until("acknowledged");
    let count = json!({"name": "demo_count", "arguments": {"to": 8}});
    let mut call = brief.open_modern("tools/call", count.clone());
    let mut legacy = brief.open_in_session(&session, "tools/call", count);

    until("the token has ended", || brief.modern("tools/list", json!({})).status == 401);
    stream.read_to_end();
    subscription.read_to_end();
    for counted in [&mut call, &mut legacy] {
        counted.read_to_end();
        assert!(counted.text().contains("Counted to 8"), "what was begun is finished: {}", counted.text());
    }
    // Her session is still hers.
    assert!(gateway.as_user(ANN).in_session(&session, "tools/list", json!({})).is_fine());
    let mut again = gateway.as_user(ANN).stream(&session, &[]);
    assert_eq!(again.status(), 200);
    assert!(!again.ends_within(Duration::from_millis(300)), "{}", again.text());
}

#[test]
fn an_issuer_that_is_removed_takes_its_people_with_it() {
    let gateway = Gateway::start("");
    let (ann, other) = (gateway.as_user(ANN), gateway.as_user(crate::rig::NAMESAKE));
    let session = other.session();
    let mut stream = other.stream(&session, &[]);
    assert_eq!(stream.status(), 200);
    let file = gateway.folder.path().join("tidegate.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let removed =
        "[[auth.jwt]]\nissuer = \"https://id.other.example\"\njwks = \"other.json\"\ntenant = \"org\"\n";
    assert!(text.contains(removed));
    gateway.write("tidegate.toml", &text.replace(removed, ""));
    until("its people are refused", || other.modern("tools/list", json!({})).status == 401);
    stream.read_to_end();
    assert!(ann.modern("tools/list", json!({})).is_fine());
}
