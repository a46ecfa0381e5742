//! Logins with a browser: what is asked for, as whom, and what comes back.

use serde_json::json;

use super::says;
use super::world::{REDIRECT_URI, Special, World};
use crate::Authorizer;
use crate::oauth::{Client, ClientAuth, MemoryStore, Scopes, Secret, TokenStore};

#[tokio::test]
async fn a_login_asks_for_what_the_specification_says() {
    let world = World::new().await;
    world.plan().challenge = r#"Bearer resource_metadata="{prm}", scope="read""#.to_owned();
    let oauth = world.builder().build().unwrap();
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    let page = world.last("/authorize");
    for (name, value) in [
        ("response_type", "code"),
        ("client_id", "client-1"),
        ("redirect_uri", REDIRECT_URI),
        ("code_challenge_method", "S256"),
        ("scope", "read"),
        ("resource", &world.mcp),
    ] {
        assert_eq!(page.field(name), value, "{name}");
    }
    assert!(page.field("state").len() >= 16 && page.field("code_challenge").len() == 43);
    let token = world.last("/token");
    for (name, value) in [
        ("grant_type", "authorization_code"),
        ("client_id", "client-1"),
        ("redirect_uri", REDIRECT_URI),
        ("resource", &world.mcp),
    ] {
        assert_eq!(token.field(name), value, "{name}");
    }
    let registration = world.last("/register").body;
    assert_eq!(registration["redirect_uris"], json!([REDIRECT_URI]));
    assert_eq!(registration["grant_types"], json!(["authorization_code", "refresh_token"]));
    assert_eq!(registration["application_type"], "native");
    assert_eq!(registration["token_endpoint_auth_method"], "none");
    // The token is used from now on.
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert_eq!(world.seen("/authorize").len(), 1);
}

#[tokio::test]
async fn scopes_are_chosen_in_order() {
    for (challenge, described, offered, wanted, expected) in [
        (Some("a"), Some("b c"), None, "", "a"),
        (None, Some("b c"), None, "", "b c"),
        (None, None, None, "", ""),
        (None, Some("b"), Some("offline_access b"), "", "b offline_access"),
        (None, None, Some("offline_access"), "", ""),
        (Some("a"), Some("b"), None, "w", "a w"),
        (None, Some("b"), None, "w", "w"),
    ] {
        let world = World::new().await;
        {
            let mut plan = world.plan();
            if let Some(scopes) = challenge {
                plan.challenge = format!(r#"Bearer scope="{scopes}""#);
            }
            let list = |scopes: &str| json!({"scopes_supported": scopes.split(' ').collect::<Vec<_>>()});
            plan.resource = described.map_or(json!({}), list);
            plan.server = offered.map_or(json!({}), list);
        }
        let oauth = world.builder().scopes(Scopes::parse(wanted)).build().unwrap();
        world.call(&oauth).await.unwrap();
        let page = world.last("/authorize");
        assert_eq!(page.field("scope"), expected);
        assert_eq!(page.fields.contains_key("scope"), !expected.is_empty());
    }
}

#[tokio::test]
async fn clients_prove_themselves_as_registered() {
    for (takes, registered, header, secret, id) in [
        (json!(["none"]), json!({"client_secret": "useless"}), false, "", "client-1"),
        (json!(["client_secret_basic"]), json!({"client_secret": "s"}), true, "", ""),
        (json!(["client_secret_post"]), json!({"client_secret": "s"}), false, "s", "client-1"),
        (
            json!(["none", "client_secret_basic", "client_secret_post"]),
            json!({"client_secret": "s", "token_endpoint_auth_method": "client_secret_post"}),
            false,
            "s",
            "client-1",
        ),
    ] {
        let world = World::new().await;
        {
            let mut plan = world.plan();
            plan.server = json!({"token_endpoint_auth_methods_supported": takes});
            plan.registration = registered;
        }
        world.call(&world.builder().build().unwrap()).await.unwrap();
        let token = world.last("/token");
        assert_eq!(token.header("authorization").starts_with("Basic "), header, "{takes}");
        assert_eq!((token.field("client_secret"), token.field("client_id")), (secret, id), "{takes}");
    }
}

#[tokio::test]
async fn a_configured_client_needs_no_registration_and_stays_with_its_server() {
    let world = World::new().await;
    world.plan().server = json!({"registration_endpoint": null});
    let client = Client::with_secret("known", "s").issued_by(&world.issuer);
    let oauth = world.builder().client(client.clone()).build().unwrap();
    world.call(&oauth).await.unwrap();
    assert_eq!(world.last("/authorize").field("client_id"), "known");
    assert_eq!(world.last("/token").header("authorization"), "Basic a25vd246cw==");

    let elsewhere = world.builder().client(client.issued_by("https://other.example")).build().unwrap();
    says(&world.call(&elsewhere).await.unwrap_err(), &["known", "https://other.example", &world.issuer]);
    assert_eq!(world.seen("/token").len(), 1);
}

#[tokio::test]
async fn a_configured_client_belongs_to_whom_it_was_first_shown() {
    let world = World::new().await;
    let client = Client::new("known", ClientAuth::SecretPost(Secret::new("s")));
    let oauth = world.builder().client(client).build().unwrap();
    world.call(&oauth).await.unwrap();
    world.plan().issuers = vec![world.other.clone()];
    world.revoke();
    says(&world.call(&oauth).await.unwrap_err(), &["known", &world.issuer, &world.other]);
    assert_eq!(world.seen("/token").len(), 1);
}

#[tokio::test]
async fn a_client_that_was_given_for_one_login_is_remembered() {
    let world = World::new().await;
    world.plan().server = json!({"registration_endpoint": null});
    let store = MemoryStore::new();
    let client = Client::with_secret("known", "s");
    world.builder().client(client).store(store.clone()).build().unwrap().login().await.unwrap();
    // For using the token, for renewing it, and for logging in again.
    let later = || world.builder().store(store.clone()).build().unwrap();
    assert_eq!(world.call(&later()).await.unwrap(), 200);
    assert_eq!(world.seen("/token").len(), 1);
    world.revoke();
    assert_eq!(world.call(&later()).await.unwrap(), 200);
    assert_eq!(world.last("/token").field("grant_type"), "refresh_token");
    world.revoke();
    world.revoke_refresh();
    assert_eq!(world.call(&later()).await.unwrap(), 200);
    assert_eq!(world.last("/token").field("grant_type"), "authorization_code");
    assert!(world.seen("/token").iter().all(|seen| seen.header("authorization") == "Basic a25vd246cw=="));
    // Another client does not use it.
    let other = world.builder().store(store.clone()).client(Client::public("other")).interactive(false);
    says(&world.call(&other.build().unwrap()).await.unwrap_err(), &["run: tidegate login"]);
}

#[tokio::test]
async fn a_described_client_is_used_where_it_can_be() {
    let url = "https://client.example/me.json";
    for (supported, used) in [(true, true), (false, false)] {
        let world = World::new().await;
        world.plan().server = json!({"client_id_metadata_document_supported": supported});
        world.call(&world.builder().client_metadata_url(url).build().unwrap()).await.unwrap();
        assert_eq!(world.last("/token").field("client_id") == url, used);
        assert_eq!(world.seen("/register").is_empty(), used);
    }
    let world = World::new().await;
    assert!(world.builder().client_metadata_url("http://client.example/me.json").build().is_err());
    assert!(world.builder().client_metadata_url("https://client.example").build().is_err());
}

#[tokio::test]
async fn answers_of_others_are_not_trusted() {
    for (advertised, iss, trusted) in [
        (Some(true), Some("{issuer}"), true),
        (None, None, true),
        (None, Some("{issuer}"), true),
        (Some(true), None, false),
        (Some(true), Some("https://evil.example"), false),
        (None, Some("https://evil.example"), false),
        (Some(true), Some("{issuer}/"), false),
    ] {
        // An error from somebody else is not even shown.
        for denies in [None, Some("access_denied")] {
            let world = World::new().await;
            {
                let mut plan = world.plan();
                plan.iss = iss;
                plan.denies = denies;
                plan.server = json!({"authorization_response_iss_parameter_supported": advertised});
            }
            let outcome = world.call(&world.builder().build().unwrap()).await;
            assert_eq!(world.seen("/token").is_empty(), !(trusted && denies.is_none()));
            match (outcome, trusted, denies) {
                (Ok(status), true, None) => assert_eq!(status, 200),
                (Err(error), true, Some(_)) => says(&error, &["access_denied", "said so"]),
                (Err(error), false, _) => {
                    says(&error, &["not trusted"]);
                    assert!(!error.detail().contains("access_denied"));
                }
                (outcome, ..) => panic!("{advertised:?} {iss:?} {denies:?}: {outcome:?}"),
            }
        }
    }
}

#[tokio::test]
async fn no_login_without_pkce() {
    for (methods, assume, allowed) in [
        (json!(["plain", "S256"]), false, true),
        (json!(["plain"]), true, false),
        (json!(null), false, false),
        (json!(null), true, true),
    ] {
        let world = World::new().await;
        world.plan().server = json!({"code_challenge_methods_supported": methods});
        let outcome = world.call(&world.builder().assume_pkce(assume).build().unwrap()).await;
        assert_eq!(outcome.is_ok(), allowed, "{methods} {assume}");
        assert_eq!(world.seen("/authorize").is_empty(), !allowed);
    }
}

#[tokio::test]
async fn a_server_may_move_to_another_authorization_server() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let oauth = world.builder().store(store.clone()).build().unwrap();
    world.call(&oauth).await.unwrap();
    world.plan().issuers = vec![world.other.clone()];
    world.revoke();
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    let other = world.other.strip_prefix("http://").unwrap();
    assert_eq!(world.last("/register").host, other);
    // Neither the refresh token nor the client of the first one were shown to the second one.
    let shown: Vec<_> = world.seen("/token").into_iter().filter(|seen| seen.host == other).collect();
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0].field("grant_type"), "authorization_code");
    assert_ne!(shown[0].field("client_id"), world.seen("/token")[0].field("client_id"));
    let kept = store.load(&world.mcp).await.unwrap();
    assert_eq!(kept.iter().map(|own| own.issuer.as_str()).collect::<Vec<_>>(), [&world.other, &world.issuer]);

    // The next process starts with the second one.
    let again = world.builder().store(store).interactive(false).build().unwrap();
    assert_eq!(world.call(&again).await.unwrap(), 200);
    assert_eq!(world.seen("/authorize").len(), 2);
}

#[tokio::test]
async fn tokens_and_clients_outlive_the_process() {
    let world = World::new().await;
    let store = MemoryStore::new();
    world.call(&world.builder().store(store.clone()).build().unwrap()).await.unwrap();
    let again = world.builder().store(store.clone()).interactive(false).build().unwrap();
    assert_eq!(world.call(&again).await.unwrap(), 200);
    assert_eq!(world.seen("/mcp").len(), 3, "the token is used at once");
    // A new login uses the client that is registered already.
    world.revoke();
    world.revoke_refresh();
    let later = world.builder().store(store.clone()).build().unwrap();
    assert_eq!(world.call(&later).await.unwrap(), 200);
    assert_eq!((world.seen("/register").len(), world.seen("/authorize").len()), (1, 2));
    // A client whose secret has expired is none.
    let mut kept = store.load(&world.mcp).await.unwrap().remove(0);
    kept.registration.expires_at = Some(1);
    kept.tokens = None;
    store.save(&kept).await.unwrap();
    world.call(&world.builder().store(store).build().unwrap()).await.unwrap();
    assert_eq!(world.seen("/register").len(), 2);
}

#[tokio::test]
async fn logging_out_forgets() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let oauth = world.builder().store(store.clone()).build().unwrap();
    world.call(&oauth).await.unwrap();
    assert_eq!(oauth.logout().await.unwrap(), 1);
    assert_eq!(oauth.authorization().await.unwrap(), None);
    assert!(store.load(&world.mcp).await.unwrap().is_empty());
}

#[tokio::test]
async fn logging_in_by_hand() {
    let world = World::new().await;
    world.plan().challenge = r#"Bearer resource_metadata="{prm}", scope="read""#.to_owned();
    let oauth = world.builder().interactive(false).build().unwrap();
    let report = oauth.login().await.unwrap();
    assert_eq!((report.issuer.as_str(), report.server.as_str()), (&*world.issuer, &*world.mcp));
    assert_eq!((report.scopes.to_string().as_str(), report.place.as_str()), ("read", "memory"));
    assert!(report.renewable && report.expires_at.is_some());
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    // Once more, although there is a token, and as often as one likes.
    for _ in 0..4 {
        oauth.login().await.unwrap();
    }
    assert_eq!((world.seen("/authorize").len(), world.seen("/register").len()), (5, 1));
}

#[tokio::test]
async fn servers_without_login_say_so() {
    let world = World::new().await;
    {
        let mut plan = world.plan();
        plan.issuers.clear();
        plan.special.insert("/mcp", Special { status: 200, location: None, body: String::new() });
    }
    let error = world.builder().build().unwrap().login().await.unwrap_err();
    says(&error, &["does not ask for a login"]);
    assert!(world.seen("/authorize").is_empty());
}

#[tokio::test]
async fn nothing_secret_is_shown() {
    let world = World::new().await;
    world.plan().registration =
        json!({"client_secret": "secret-client", "token_endpoint_auth_method": "client_secret_basic"});
    let store = MemoryStore::new();
    let oauth = world.builder().store(store.clone()).build().unwrap();
    world.call(&oauth).await.unwrap();
    let kept = store.load(&world.mcp).await.unwrap();
    assert!(kept[0].tokens.as_ref().unwrap().access.reveal().contains("secret-"));
    let header = oauth.authorization().await.unwrap();
    for shown in [format!("{kept:?}"), format!("{oauth:?}"), format!("{store:?}"), format!("{header:?}")] {
        assert!(!shown.contains("secret-"), "{shown}");
    }
}
