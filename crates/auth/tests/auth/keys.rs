//! API keys from the outside.

use serde_json::json;
use tidegate_auth::AuthError;
use tidegate_auth::keys::{LastUse, NewKey, Rotation};
use tidegate_config::AuthSettings;
use tidegate_service::epoch_ms;

use crate::common::{Gateway, in_time, resources};

fn ann() -> NewKey {
    NewKey { name: "ann".into(), tenant: Some("acme".into()), ..NewKey::default() }
}

#[tokio::test]
async fn a_key_says_who_calls() {
    let gateway = Gateway::start(|_| {}).await;
    let key = gateway.key(ann()).await;
    for _ in 0..2 {
        let who = gateway.tool("who").bearer(&key).send().await.who().await;
        assert_eq!(who, json!(["tidegate:keys", "ann", "acme", null]));
    }
    assert_eq!(gateway.authenticator.cached(), 1);
}

#[tokio::test]
async fn a_revoked_key_is_told_what_an_unknown_one_is() {
    let gateway = Gateway::start(|_| {}).await;
    let key = gateway.key(ann()).await;
    let stranger = Gateway::start(|_| {}).await.key(ann()).await;
    gateway.change(|file| file.revoke("ann", epoch_ms()));
    gateway.until(&key, |status| status == 401).await;
    let told = gateway.tool("who").bearer(&key).challenge().await;
    assert_eq!(told, gateway.tool("who").bearer(&stranger).challenge().await);
    assert_eq!(told, "401 Bearer error=\"invalid_token\", error_description=\"The API key is not valid\"");
}

#[tokio::test]
async fn a_rotated_key_is_the_same_somebody() {
    let gateway = Gateway::start(|_| {}).await;
    let old = gateway.key(ann()).await;
    let before = gateway.tool("who").bearer(&old).send().await.who().await;
    let new = gateway.change(|file| file.rotate("ann", Rotation::default(), epoch_ms())).reveal().to_owned();
    gateway.until(&old, |status| status == 401).await;
    assert_eq!(gateway.tool("who").bearer(&new).send().await.who().await, before);
}

#[tokio::test]
async fn a_file_that_does_not_parse_changes_nothing() {
    let gateway = Gateway::start(|_| {}).await;
    let key = gateway.key(ann()).await;
    let good = std::fs::read(gateway.keys()).unwrap();
    std::fs::write(gateway.keys(), "[[keys]]\nid = 1").unwrap();
    let settings = AuthSettings { keys: Some(gateway.keys()), ..AuthSettings::default() };
    // Neither a start nor a reload takes it.
    let started = tidegate_auth::Authenticator::start(&settings, resources(), Some(&gateway.state_dir()));
    assert!(matches!(started, Err(AuthError::Keys(_))));
    let reloaded = gateway.authenticator.reload(&settings, resources());
    assert!(reloaded.unwrap_err().to_string().contains("key 1: id must be"));
    tokio::time::sleep(std::time::Duration::from_millis(1500)).await;
    assert_eq!(gateway.tool("who").bearer(&key).send().await.status, 200);
    std::fs::write(gateway.keys(), good).unwrap();
    gateway.authenticator.reload(&settings, resources()).unwrap();
    assert_eq!(gateway.tool("who").bearer(&key).send().await.status, 200);
}

#[tokio::test]
async fn the_last_use_is_written_down() {
    let gateway = Gateway::start(|_| {}).await;
    let key = gateway.key(ann()).await;
    let id = &key[9..17];
    gateway.tool("who").bearer(&key).send().await;
    let written = async {
        while LastUse::read(&gateway.state_dir()).get(id).is_none() {
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
    };
    in_time("last use", written).await;
    let text = std::fs::read_to_string(gateway.keys()).unwrap();
    assert!(!text.contains(&key[18..]), "a gateway never writes keys");
}

#[tokio::test]
async fn settings_that_let_nobody_in_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let start = |auth: &AuthSettings, resources| {
        tidegate_auth::Authenticator::start(auth, resources, Some(folder.path()))
            .err()
            .map(|error| error.to_string())
    };
    let nothing = start(&AuthSettings::default(), resources());
    assert!(nothing.unwrap().contains("accepts no credentials"));
    let missing = AuthSettings { keys: Some(folder.path().join("none.toml")), ..AuthSettings::default() };
    assert!(start(&missing, resources()).unwrap().contains("tidegate keys add"));
}
