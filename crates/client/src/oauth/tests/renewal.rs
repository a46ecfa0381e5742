//! Renewing tokens: in time, once, and without losing any.

use std::time::Duration;

use serde_json::json;
use tidegate_protocol::Symbol;

use super::says;
use super::world::World;
use crate::oauth::{Client, FileStore, Grant, MemoryStore, OAuth, TokenStore};
use crate::{Authorizer, Challenge};

/// Makes what is stored look as if it had been issued long ago.
async fn age(store: &impl TokenStore, server: &str, seconds: u64) {
    let mut kept = store.load(server).await.unwrap().remove(0);
    let tokens = kept.tokens.as_mut().unwrap();
    tokens.issued_at -= seconds;
    tokens.expires_at = tokens.expires_at.map(|at| at - seconds);
    store.save(&kept).await.unwrap();
}

/// A world where somebody logged in some seconds ago.
async fn logged_in(seconds: u64) -> (World, MemoryStore) {
    let world = World::new().await;
    let store = MemoryStore::new();
    world.call(&world.builder().store(store.clone()).build().unwrap()).await.unwrap();
    age(&store, &world.mcp, seconds).await;
    (world, store)
}

fn quiet(world: &World, store: &MemoryStore) -> OAuth {
    world.builder().store(store.clone()).interactive(false).build().unwrap()
}

fn refreshes(world: &World) -> usize {
    world.seen("/token").iter().filter(|seen| seen.field("grant_type") == "refresh_token").count()
}

#[tokio::test]
async fn tokens_are_renewed_a_minute_early() {
    for (age, expected) in [(3500, 0), (3545, 1), (4000, 1)] {
        let (world, store) = logged_in(age).await;
        assert_eq!(world.call(&quiet(&world, &store)).await.unwrap(), 200);
        assert_eq!(refreshes(&world), expected, "{age}");
    }
}

#[tokio::test]
async fn a_renewal_says_who_and_what_for() {
    let (world, store) = logged_in(4000).await;
    world.plan().registration = json!({});
    assert_eq!(world.call(&quiet(&world, &store)).await.unwrap(), 200);
    let request = world.last("/token");
    assert_eq!(request.field("resource"), world.mcp);
    assert_eq!(request.field("client_id"), "client-1");
    assert!(!request.fields.contains_key("scope"));
    // Nothing was looked up for it.
    assert_eq!(world.seen("/.well-known/oauth-authorization-server").len(), 1);
}

#[tokio::test]
async fn a_secret_is_not_lost_over_a_restart() {
    let world = World::new().await;
    world.plan().registration =
        json!({"client_secret": "s", "token_endpoint_auth_method": "client_secret_basic"});
    let store = MemoryStore::new();
    world.call(&world.builder().store(store.clone()).build().unwrap()).await.unwrap();
    age(&store, &world.mcp, 4000).await;
    assert_eq!(world.call(&quiet(&world, &store)).await.unwrap(), 200);
    let request = world.last("/token");
    assert_eq!((request.field("grant_type"), request.field("client_id")), ("refresh_token", ""));
    assert_eq!(request.header("authorization"), "Basic Y2xpZW50LTE6cw==");
}

#[tokio::test]
async fn a_refused_token_is_renewed_without_a_login() {
    let (world, store) = logged_in(0).await;
    world.revoke();
    assert_eq!(world.call(&quiet(&world, &store)).await.unwrap(), 200);
    assert_eq!((refreshes(&world), world.seen("/authorize").len()), (1, 1));
}

#[tokio::test]
async fn many_who_find_it_expired_renew_it_once() {
    let (world, store) = logged_in(4000).await;
    world.plan().slow = Duration::from_millis(100);
    let oauth = quiet(&world, &store);
    let calls = (0..20).map(|_| world.call(&oauth));
    assert!(futures_util::future::join_all(calls).await.into_iter().all(|outcome| outcome.unwrap() == 200));
    assert_eq!(refreshes(&world), 1);
}

#[tokio::test]
async fn many_who_are_refused_log_in_once() {
    let world = World::new().await;
    world.plan().slow = Duration::from_millis(100);
    let oauth = world.builder().build().unwrap();
    let calls = (0..20).map(|_| world.call(&oauth));
    assert!(futures_util::future::join_all(calls).await.into_iter().all(|outcome| outcome.unwrap() == 200));
    assert_eq!((world.seen("/register").len(), world.seen("/authorize").len()), (1, 1));

    world.revoke();
    let calls = (0..20).map(|_| world.call(&oauth));
    assert!(futures_util::future::join_all(calls).await.into_iter().all(|outcome| outcome.unwrap() == 200));
    assert_eq!((refreshes(&world), world.seen("/authorize").len()), (1, 1));
}

#[tokio::test]
async fn many_who_are_refused_share_the_failure() {
    let world = World::new().await;
    {
        let mut plan = world.plan();
        plan.slow = Duration::from_millis(100);
        plan.trouble = Some((400, "invalid_request"));
    }
    let oauth = world.builder().build().unwrap();
    let calls = (0..20).map(|_| world.call(&oauth));
    for outcome in futures_util::future::join_all(calls).await {
        says(&outcome.unwrap_err(), &["invalid_request", "said so"]);
    }
    assert_eq!(world.seen("/authorize").len(), 1);
}

#[tokio::test]
async fn a_late_refusal_of_an_old_token_changes_nothing() {
    let (world, store) = logged_in(0).await;
    let oauth = quiet(&world, &store);
    let old = oauth.authorization().await.unwrap();
    world.revoke();
    world.call(&oauth).await.unwrap();
    let challenge = Challenge { status: 401, www_authenticate: vec!["Bearer".to_owned()], refused: old };
    oauth.challenged(challenge).await.unwrap();
    assert_eq!(refreshes(&world), 1);
}

#[tokio::test]
async fn processes_that_share_a_store_renew_once() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("tokens");
    let store = FileStore::at(&directory);
    let world = World::new().await;
    world.call(&world.builder().store(store.clone()).build().unwrap()).await.unwrap();
    age(&store, &world.mcp, 4000).await;
    world.plan().slow = Duration::from_millis(200);
    // Each has its own memory, as processes do; the lock is one between processes.
    let all: Vec<OAuth> = (0..4)
        .map(|_| world.builder().store(FileStore::at(&directory)).interactive(false).build().unwrap())
        .collect();
    let calls = all.iter().map(|oauth| world.call(oauth));
    assert!(futures_util::future::join_all(calls).await.into_iter().all(|outcome| outcome.unwrap() == 200));
    assert_eq!(refreshes(&world), 1);

    // The same when the server refuses it.
    world.revoke();
    let calls = all.iter().map(|oauth| world.call(oauth));
    assert!(futures_util::future::join_all(calls).await.into_iter().all(|outcome| outcome.unwrap() == 200));
    assert_eq!(refreshes(&world), 2);
}

#[tokio::test]
async fn a_renewal_goes_on_when_nobody_waits_for_it() {
    let (world, store) = logged_in(4000).await;
    world.plan().slow = Duration::from_millis(200);
    let oauth = quiet(&world, &store);
    assert!(tokio::time::timeout(Duration::from_millis(50), oauth.authorization()).await.is_err());
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert_eq!(refreshes(&world), 1);
}

#[tokio::test]
async fn a_token_that_is_still_good_is_used_while_the_authorization_server_is_down() {
    let (world, store) = logged_in(3545).await;
    world.plan().trouble = Some((503, "temporarily_unavailable"));
    let oauth = quiet(&world, &store);
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert_eq!(refreshes(&world), 1, "it is not tried again with every request");

    let (world, store) = logged_in(4000).await;
    world.plan().trouble = Some((503, "temporarily_unavailable"));
    let error = world.call(&quiet(&world, &store)).await.unwrap_err();
    assert_eq!(error.symbol(), Symbol::Unavailable, "{error}");
    world.plan().trouble = None;
    assert_eq!(world.call(&quiet(&world, &store)).await.unwrap(), 200, "the refresh token is kept");
}

#[tokio::test]
async fn what_cannot_be_renewed_leads_to_a_login() {
    for age in [0, 4000] {
        let (world, store) = logged_in(age).await;
        world.revoke();
        world.revoke_refresh();
        says(&world.call(&quiet(&world, &store)).await.unwrap_err(), &["run: tidegate login", &world.mcp]);
        assert_eq!(world.call(&world.builder().store(store).build().unwrap()).await.unwrap(), 200);
        assert_eq!((world.seen("/register").len(), world.seen("/authorize").len()), (1, 2));
        assert_eq!(refreshes(&world), 1, "a refused refresh token is not shown again");
    }
}

#[tokio::test]
async fn a_client_that_was_forgotten_is_registered_again() {
    let (world, store) = logged_in(0).await;
    world.revoke();
    world.plan().trouble = Some((401, "invalid_client"));
    let oauth = world.builder().store(store).build().unwrap();
    says(&world.call(&oauth).await.unwrap_err(), &["invalid_client"]);
    world.plan().trouble = None;
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert!(world.seen("/register").len() > 1);
}

#[tokio::test]
async fn without_a_refresh_token_it_is_used_up() {
    let world = World::new().await;
    {
        let mut plan = world.plan();
        plan.refreshes = false;
        plan.life = Some(100);
    }
    let store = MemoryStore::new();
    world.call(&world.builder().store(store.clone()).build().unwrap()).await.unwrap();
    age(&store, &world.mcp, 60).await;
    assert_eq!(world.call(&quiet(&world, &store)).await.unwrap(), 200);
    age(&store, &world.mcp, 60).await;
    says(&world.call(&quiet(&world, &store)).await.unwrap_err(), &["run: tidegate login"]);
    assert_eq!(world.call(&world.builder().store(store).build().unwrap()).await.unwrap(), 200);
}

#[tokio::test]
async fn programs_get_the_next_one_by_themselves() {
    let world = World::new().await;
    world.plan().life = Some(1);
    let client = Client::with_secret("me", "s");
    let oauth = world.builder().client(client).grant(Grant::Client).interactive(false).build().unwrap();
    world.call(&oauth).await.unwrap();
    for round in 2..5 {
        tokio::time::sleep(Duration::from_millis(1100)).await;
        assert_eq!(world.call(&oauth).await.unwrap(), 200);
        assert_eq!(world.seen("/token").len(), round);
    }
    assert_eq!(world.seen("/mcp").iter().filter(|seen| seen.header("authorization").is_empty()).count(), 1);
}
