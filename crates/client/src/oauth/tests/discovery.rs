//! Finding the authorization server.

use serde_json::json;

use super::says;
use super::world::{Special, World};
use crate::oauth::OAuth;

fn redirect(to: &str) -> Special {
    Special { status: 302, location: Some(to.to_owned()), body: String::new() }
}

#[tokio::test]
async fn the_description_of_another_resource_is_not_used() {
    // Whether the server points to it or it is found by guessing.
    for challenge in [r#"Bearer resource_metadata="{prm}""#, "Bearer"] {
        let world = World::new().await;
        {
            let mut plan = world.plan();
            plan.challenge = challenge.to_owned();
            plan.resource = json!({"resource": "https://evil.example/mcp"});
        }
        let error = world.call(&world.builder().build().unwrap()).await.unwrap_err();
        says(&error, &["https://evil.example/mcp"]);
        assert!(world.seen("/authorize").is_empty() && world.seen("/register").is_empty());
    }
}

#[tokio::test]
async fn names_are_kept_to_the_letter() {
    let world = World::new().await;
    let origin = world.mcp.strip_suffix("/mcp").unwrap().to_owned();
    // No slash is added to the resource, nor one taken away.
    for resource in [origin.clone(), format!("{origin}/"), world.mcp.clone()] {
        world.plan().resource = json!({"resource": resource});
        world.call(&world.builder().build().unwrap()).await.unwrap();
        assert_eq!(world.last("/authorize").field("resource"), resource);
        assert_eq!(world.last("/token").field("resource"), resource);
    }
    // Nor to the address of a server that does not describe itself.
    world.plan().issuers.clear();
    world
        .call(&OAuth::builder(&format!("{}#x", world.mcp)).browser(browser()).build().unwrap())
        .await
        .unwrap();
    assert_eq!(world.last("/token").field("resource"), world.mcp);
}

fn browser() -> crate::oauth::FollowRedirect {
    crate::oauth::FollowRedirect::new(super::world::REDIRECT_URI)
}

#[tokio::test]
async fn an_authorization_server_that_calls_itself_otherwise_is_not_used() {
    for name in ["https://honest.example".to_owned(), "{issuer}/".to_owned()] {
        let world = World::new().await;
        world.plan().server = json!({"issuer": name.replace("{issuer}", &world.issuer)});
        let error = world.call(&world.builder().build().unwrap()).await.unwrap_err();
        says(&error, &["not trusted", &world.issuer]);
        assert!(world.seen("/register").is_empty() && world.seen("/authorize").is_empty());
    }
}

#[tokio::test]
async fn of_several_authorization_servers_the_first_that_works_is_used() {
    let world = World::new().await;
    world.plan().issuers = vec![format!("{}/nothing", world.issuer), world.other.clone()];
    assert_eq!(world.call(&world.builder().build().unwrap()).await.unwrap(), 200);
    assert_eq!(world.last("/token").host, world.other.strip_prefix("http://").unwrap());
}

#[tokio::test]
async fn servers_of_2025_03_26_are_their_own_authorization_servers() {
    for server in [json!({}), json!(null)] {
        let world = World::new().await;
        {
            let mut plan = world.plan();
            plan.challenge = "Bearer".to_owned();
            plan.issuers.clear();
            plan.iss = None;
            plan.server = server;
        }
        assert_eq!(world.call(&world.builder().build().unwrap()).await.unwrap(), 200);
        let host = world.mcp.strip_prefix("http://").unwrap().strip_suffix("/mcp").unwrap();
        for path in ["/register", "/authorize", "/token"] {
            assert_eq!(world.last(path).host, host, "{path}");
        }
    }
}

#[tokio::test]
async fn a_wrong_pointer_costs_nothing_but_time() {
    for place in ["http://192.0.2.7/prm", "https://169.254.169.254/", "javascript:alert(1)", "{prm}/missing"]
    {
        let world = World::new().await;
        world.plan().challenge = format!(r#"Bearer resource_metadata="{place}""#);
        assert_eq!(world.call(&world.builder().build().unwrap()).await.unwrap(), 200, "{place}");
    }
}

#[tokio::test]
async fn endpoints_are_checked_before_anything_is_sent_there() {
    for (field, address) in [
        ("authorization_endpoint", "javascript:alert(1)"),
        ("authorization_endpoint", "http://login.example/"),
        ("token_endpoint", "http://token.example/"),
        ("token_endpoint", "https://169.254.169.254/token"),
        ("token_endpoint", "file:///etc/passwd"),
        ("registration_endpoint", "http://register.example/"),
    ] {
        let world = World::new().await;
        world.plan().server = json!({field: address});
        let error = world.call(&world.builder().build().unwrap()).await.unwrap_err();
        says(&error, &["is not used, because", address]);
        assert!(world.seen("/token").is_empty() && world.seen("/authorize").is_empty(), "{field} {address}");
    }
    for issuer in ["http://as.example", "https://169.254.169.254", "http://127.0.0.1:1/?x=1"] {
        let world = World::new().await;
        world.plan().issuers = vec![issuer.to_owned()];
        says(
            &world.call(&world.builder().build().unwrap()).await.unwrap_err(),
            &["is not used, because", issuer],
        );
    }
}

#[tokio::test]
async fn redirects_are_few_and_safe() {
    let path = "/.well-known/oauth-authorization-server";
    let world = World::new().await;
    let document = json!({
        "issuer": world.issuer,
        "authorization_endpoint": format!("{}/authorize", world.issuer),
        "token_endpoint": format!("{}/token", world.issuer),
        "registration_endpoint": format!("{}/register", world.issuer),
        "code_challenge_methods_supported": ["S256"],
    });
    {
        let mut plan = world.plan();
        for (from, to) in [(path, "/1"), ("/1", "/2"), ("/2", "/3")] {
            plan.special.insert(from, redirect(to));
        }
        plan.special.insert("/3", Special { status: 200, location: None, body: document.to_string() });
    }
    assert_eq!(world.call(&world.builder().build().unwrap()).await.unwrap(), 200);

    world.plan().special.insert("/2", redirect("/1"));
    says(&world.call(&world.builder().build().unwrap()).await.unwrap_err(), &["redirects", "too often"]);
    let other = format!("{}/3", world.other);
    world.plan().special.insert("/2", redirect(&other));
    says(&world.call(&world.builder().build().unwrap()).await.unwrap_err(), &["redirects", &other]);
    assert_eq!(world.seen("/3").len(), 1);
}

#[tokio::test]
async fn answers_are_bounded() {
    let world = World::new().await;
    let huge = Special { status: 200, location: None, body: " ".repeat(2 << 20) };
    world.plan().special.insert("/.well-known/oauth-protected-resource/mcp", huge);
    let error = world.call(&world.builder().build().unwrap()).await.unwrap_err();
    assert!(error.detail().contains("length limit exceeded"), "{error}");
}

#[tokio::test]
async fn a_page_for_people_is_no_description() {
    let world = World::new().await;
    let page = Special { status: 200, location: None, body: "<!doctype html>".to_owned() };
    world.plan().special.insert("/.well-known/oauth-protected-resource/mcp", page);
    // As if there were nothing: the server is taken for its own authorization server.
    world.plan().iss = None;
    assert_eq!(world.call(&world.builder().build().unwrap()).await.unwrap(), 200);
    assert_ne!(world.last("/token").host, world.issuer.strip_prefix("http://").unwrap());
}
