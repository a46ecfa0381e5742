//! What is open ends when the authorisation does.

use std::sync::atomic::Ordering;

use http_body_util::BodyExt;
use serde_json::json;
use tidegate_auth::keys::{NewKey, Rotation};
use tidegate_config::AuthSettings;
use tidegate_service::epoch_ms;

use crate::common::{Answer, Gateway, in_time, resources, unreachable_issuer};

fn ann() -> NewKey {
    NewKey { name: "ann".into(), ..NewKey::default() }
}

async fn listen(gateway: &Gateway, key: &str) -> Answer {
    let answer =
        gateway.call("/mcp", "subscriptions/listen", json!({"notifications": {}})).bearer(key).send().await;
    assert_eq!((answer.status, answer.header("content-type")), (200, "text/event-stream"));
    answer
}

/// Reads a stream to its end.
async fn ended(mut stream: Answer) {
    let all = async { while stream.body.frame().await.is_some() {} };
    in_time("end of the stream", all).await;
}

async fn until_waiting(gateway: &Gateway, count: usize) {
    let so = async {
        while gateway.waiting.load(Ordering::SeqCst) != count {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    in_time("call", so).await;
}

#[tokio::test]
async fn a_revoked_key_ends_streams_and_running_calls_of_its_holder_alone() {
    let gateway = Gateway::start(|_| {}).await;
    let anns = gateway.key(ann()).await;
    let bobs = gateway.key(NewKey { name: "bob".into(), ..NewKey::default() }).await;
    let stream = listen(&gateway, &anns).await;
    let mut other = listen(&gateway, &bobs).await;
    let running = tokio::spawn(gateway.tool("wait").bearer(&anns).send());
    let bobs_call = tokio::spawn(gateway.tool("wait").bearer(&bobs).send());
    until_waiting(&gateway, 2).await;
    gateway.change(|file| file.revoke("ann", epoch_ms()));
    ended(stream).await;
    let answer = in_time("answer", running).await.unwrap();
    assert_eq!(answer.status, 401);
    assert!(answer.header("www-authenticate").contains("error=\"invalid_token\""));
    until_waiting(&gateway, 1).await;
    // Bob goes on.
    assert_eq!(gateway.tool("who").bearer(&bobs).send().await.status, 200);
    assert!(!bobs_call.is_finished());
    let first = in_time("event", other.body.frame()).await;
    assert!(first.is_some_and(|frame| frame.is_ok()));
    bobs_call.abort();
}

#[tokio::test]
async fn a_key_that_expires_ends_streams_and_lets_calls_finish() {
    let gateway = Gateway::start(|_| {}).await;
    // Long enough for the gateway to notice the key first.
    let key = gateway.key(NewKey { expires_ms: Some(epoch_ms() + 4000), ..ann() }).await;
    let stream = listen(&gateway, &key).await;
    let running = tokio::spawn(gateway.tool("wait").bearer(&key).send());
    until_waiting(&gateway, 1).await;
    ended(stream).await;
    gateway.until(&key, |status| status == 401).await;
    assert!(!running.is_finished());
    running.abort();
}

#[tokio::test]
async fn a_rotation_with_grace_ends_streams_when_the_grace_does() {
    let gateway = Gateway::start(|_| {}).await;
    let old = gateway.key(ann()).await;
    let stream = listen(&gateway, &old).await;
    let how = Rotation { grace_ms: 2000, expires_ms: None };
    let new = gateway.change(|file| file.rotate("ann", how, epoch_ms())).reveal().to_owned();
    gateway.until(&new, |status| status != 401).await;
    ended(stream).await;
    gateway.until(&old, |status| status == 401).await;
    assert_eq!(gateway.tool("who").bearer(&new).send().await.status, 200);
}

#[tokio::test]
async fn a_session_ends_with_the_last_key_of_its_principal() {
    let gateway = Gateway::start(|_| {}).await;
    let key = gateway.key(ann()).await;
    let initialize = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let opened = gateway.ask("POST", "/mcp").bearer(&key).body(&initialize).send().await;
    assert_eq!(opened.status, 200);
    let session = opened.header("mcp-session-id").to_owned();
    let get = |key: &str| {
        let ask = gateway.get("/mcp").bearer(key).header("mcp-session-id", &session);
        ask.header("mcp-protocol-version", "2025-11-25")
    };
    let stream = get(&key).send().await;
    assert_eq!(stream.status, 200);
    // Another principal has no such session.
    let bobs = gateway.key(NewKey { name: "bob".into(), ..NewKey::default() }).await;
    assert_eq!(get(&bobs).send().await.status, 404);
    // With another key of the same principal it goes on; the stream of the old one does not.
    let new = gateway.change(|file| file.rotate("ann", Rotation::default(), epoch_ms())).reveal().to_owned();
    ended(stream).await;
    let again = get(&new).send().await;
    assert_eq!(again.status, 200);
    gateway.change(|file| file.revoke("ann", epoch_ms()));
    ended(again).await;
}

#[tokio::test]
async fn a_reload_ends_what_it_does_not_allow_any_more() {
    let gateway = Gateway::start(|_| {}).await;
    let key = |name: &str, scopes: &[&str]| {
        let scopes = Some(scopes.iter().map(|one| one.to_string()).collect());
        NewKey { name: name.into(), scopes, ..NewKey::default() }
    };
    let lacks = gateway.key(key("ann", &["other"])).await;
    let has = gateway.key(key("bob", &["mcp"])).await;
    let (without, with) = (listen(&gateway, &lacks).await, listen(&gateway, &has).await);
    let mut settings = AuthSettings { keys: Some(gateway.keys()), ..AuthSettings::default() };
    settings.scopes.required = vec!["mcp".into()];
    gateway.authenticator.reload(&settings, resources()).unwrap();
    ended(without).await;
    assert_eq!(gateway.tool("who").bearer(&lacks).send().await.status, 403);
    assert_eq!(gateway.tool("who").bearer(&has).send().await.status, 200);
    // Without the file nobody's key is good.
    let none = AuthSettings { introspection: vec![unreachable_issuer()], ..AuthSettings::default() };
    gateway.authenticator.reload(&none, resources()).unwrap();
    ended(with).await;
    assert_eq!(gateway.tool("who").bearer(&has).send().await.status, 401);
}
