//! Where it ends: no browser in the background, no endless logins, no endless scopes.

use serde_json::json;
use tidegate_protocol::Symbol;

use super::says;
use super::world::{Special, World};
use crate::oauth::{Client, Grant, MemoryStore, OAuth, Scopes};
use crate::{Authorizer, Challenge};

#[tokio::test]
async fn the_background_opens_no_browser() {
    let world = World::new().await;
    let secret = format!("{}?key=secret-key", world.mcp);
    let oauth = OAuth::builder(&secret).interactive(false).build().unwrap();
    let error = world.call(&oauth).await.unwrap_err();
    says(&error, &[&format!("run: tidegate login {}", world.mcp)]);
    assert!(error.is_unexecuted());
    assert!(world.seen("/authorize").is_empty() && world.seen("/register").is_empty());
    assert!(world.seen("/.well-known/oauth-authorization-server").is_empty());
}

#[tokio::test]
async fn more_scope_means_all_scopes_so_far() {
    let world = World::new().await;
    world.plan().challenge = r#"Bearer scope="read""#.to_owned();
    let store = MemoryStore::new();
    world.call(&world.builder().store(store.clone()).build().unwrap()).await.unwrap();
    world.plan().needs = Scopes::parse("write");
    // Also after a restart.
    let quiet = world.builder().store(store.clone()).interactive(false).build().unwrap();
    says(
        &world.call(&quiet).await.unwrap_err(),
        &["for the scopes write", "run: tidegate login", "--scope write"],
    );
    let oauth = world.builder().store(store).build().unwrap();
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert_eq!(world.last("/authorize").field("scope"), "read write");
    assert_eq!((world.seen("/authorize").len(), world.seen("/register").len()), (2, 1));
}

#[tokio::test]
async fn a_no_without_scopes_is_final() {
    let world = World::new().await;
    let oauth = world.builder().build().unwrap();
    world.call(&oauth).await.unwrap();
    world.plan().special.insert("/mcp", Special { status: 403, location: None, body: String::new() });
    says(&world.call(&oauth).await.unwrap_err(), &["does not allow this (HTTP 403)"]);
    assert_eq!(world.seen("/authorize").len(), 1);
}

#[tokio::test]
async fn a_server_that_always_wants_more_is_given_up() {
    let world = World::new().await;
    let oauth = world.builder().build().unwrap();
    world.call(&oauth).await.unwrap();
    let mut logins = world.seen("/authorize").len();
    let refused = || async {
        let refused = oauth.authorization().await.unwrap();
        let www_authenticate = vec![r#"Bearer error="insufficient_scope", scope="admin""#.to_owned()];
        oauth.challenged(Challenge { status: 403, www_authenticate, refused }).await
    };
    refused().await.unwrap();
    logins += 1;
    assert_eq!(world.seen("/authorize").len(), logins);
    says(&refused().await.unwrap_err(), &["scopes admin", "not granted"]);
    assert_eq!(world.seen("/authorize").len(), logins);
}

#[tokio::test]
async fn tokens_that_never_work_are_asked_for_three_times() {
    for grant in [Grant::User, Grant::Client] {
        let world = World::new().await;
        {
            let mut plan = world.plan();
            plan.refuses = true;
            plan.refreshes = false;
        }
        let client = Client::with_secret("me", "s");
        let oauth = world.builder().client(client).grant(grant).build().unwrap();
        for _ in 0..5 {
            says(&world.call(&oauth).await.unwrap_err(), &["did not help", "restart"]);
        }
        assert_eq!(world.seen("/token").len(), 3);
    }
}

#[tokio::test]
async fn a_token_that_worked_makes_up_for_many() {
    let world = World::new().await;
    world.plan().refreshes = false;
    let oauth = world.builder().build().unwrap();
    for round in 1..8 {
        assert_eq!(world.call(&oauth).await.unwrap(), 200);
        assert_eq!(world.seen("/authorize").len(), round);
        world.revoke();
    }
}

#[tokio::test]
async fn an_authorization_server_that_is_down_does_not_count() {
    let world = World::new().await;
    world.plan().trouble = Some((503, "x"));
    let client = Client::with_secret("me", "s");
    let oauth = world.builder().client(client).grant(Grant::Client).build().unwrap();
    for _ in 0..5 {
        assert_eq!(world.call(&oauth).await.unwrap_err().symbol(), Symbol::Unavailable);
    }
    world.plan().trouble = None;
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
}

#[tokio::test]
async fn refused_scopes_are_forgotten() {
    let world = World::new().await;
    {
        let mut plan = world.plan();
        plan.challenge = r#"Bearer scope="old""#.to_owned();
        plan.denies = Some("invalid_scope");
    }
    let oauth = world.builder().build().unwrap();
    says(&world.call(&oauth).await.unwrap_err(), &["invalid_scope", "other scopes"]);
    {
        let mut plan = world.plan();
        plan.challenge = r#"Bearer scope="new""#.to_owned();
        plan.denies = None;
    }
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert_eq!(world.last("/authorize").field("scope"), "new");
}

#[tokio::test]
async fn what_servers_say_is_shown_in_one_line() {
    let world = World::new().await;
    world.plan().registration =
        json!({"client_id": null, "error": "no\nway", "error_description": "x".repeat(1000)});
    let error = world.call(&world.builder().build().unwrap()).await.unwrap_err();
    says(&error, &["noway", "register one there"]);
    assert!(error.detail().len() < 500 && !error.detail().contains('\n'), "{error}");
}
