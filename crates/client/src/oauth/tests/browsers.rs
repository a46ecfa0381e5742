//! The browser of a person, played by a program.

use std::time::Duration;

use ::http::Request;
use bytes::Bytes;
use url::Url;

use super::world::World;
use super::{Counter, says};
use crate::oauth::allowed_addresses::AllowedAddresses;
use crate::oauth::http::{Answer, Http};
use crate::oauth::{Browser, BrowserFn, LoopbackBrowser, MemoryStore, OAuth};

async fn get(url: &str) -> Answer {
    let request = Request::get(url).body(Bytes::new()).unwrap();
    Http::new(AllowedAddresses::anywhere()).send(request).await.unwrap()
}

/// Does what a browser does: opens the page and goes where that leads.
fn person() -> LoopbackBrowser {
    LoopbackBrowser::new().with_opener(|url| {
        let url = url.to_owned();
        tokio::spawn(async move {
            let page = get(&url).await;
            get(page.headers["location"].to_str().unwrap()).await;
        });
        true
    })
}

#[tokio::test]
async fn a_login_through_a_browser() {
    let world = World::new().await;
    let store = MemoryStore::new();
    let build = || OAuth::builder(&world.mcp).browser(person()).store(store.clone()).build().unwrap();
    assert_eq!(world.call(&build()).await.unwrap(), 200);
    let page = world.last("/authorize");
    let redirect_uri = page.field("redirect_uri").to_owned();
    assert!(
        redirect_uri.starts_with("http://127.0.0.1:") && redirect_uri.ends_with("/callback"),
        "{redirect_uri}"
    );

    // The next login comes back to the same address, so that the client need not be registered again.
    world.revoke();
    world.revoke_refresh();
    assert_eq!(world.call(&build()).await.unwrap(), 200);
    assert_eq!(world.last("/authorize").field("redirect_uri"), redirect_uri);
    assert_eq!(world.seen("/register").len(), 1);

    // Unless somebody else is there by now.
    let address = redirect_uri.strip_prefix("http://").unwrap().strip_suffix("/callback").unwrap();
    let _taken = tokio::net::TcpListener::bind(address).await.unwrap();
    world.revoke();
    world.revoke_refresh();
    assert_eq!(world.call(&build()).await.unwrap(), 200);
    assert_ne!(world.last("/authorize").field("redirect_uri"), redirect_uri);
    assert_eq!(world.seen("/register").len(), 2);
}

#[tokio::test]
async fn strangers_cannot_end_a_login() {
    let visit = LoopbackBrowser::new().with_opener(|_| true).prepare(None).await.unwrap();
    let home = visit.redirect_uri().to_owned();
    let answer = tokio::spawn(visit.visit("https://as.example/authorize?state=right".to_owned()));
    let elsewhere = home.replace("/callback", "/favicon.ico");
    for (url, status) in [
        (elsewhere, 404),
        (home.clone(), 400),
        (format!("{home}?code=c"), 400),
        (format!("{home}?code=c&state=wrong"), 400),
        (format!("{home}?error=access_denied&state=wrong"), 400),
        (format!("{home}?code=c&state=right&iss=i"), 200),
    ] {
        assert!(!answer.is_finished(), "{url}");
        let page = get(&url).await;
        assert_eq!(page.status, status, "{url}");
        if status == 200 {
            let text = String::from_utf8(page.body.to_vec()).unwrap();
            assert!(text.contains("You may close this page"), "{text}");
            assert!(!text.contains("code"), "{text}");
        }
    }
    let came_back = Url::parse(&answer.await.unwrap().unwrap()).unwrap();
    assert_eq!(came_back.query(), Some("code=c&state=right&iss=i"));
}

#[tokio::test]
async fn nobody_waits_for_ever() {
    let browser = LoopbackBrowser::new().with_opener(|_| false).with_timeout(Duration::from_millis(50));
    let visit = browser.prepare(None).await.unwrap();
    let error = visit.visit("https://as.example/?state=s".to_owned()).await.unwrap_err();
    says(&error, &["nobody logged in within", "try again"]);
}

#[tokio::test]
async fn a_function_will_do() {
    let world = World::new().await;
    let shown = Counter::default();
    let counter = shown.clone();
    let browser = BrowserFn::new("http://127.0.0.1:1/back", move |url| {
        counter.up();
        async move { Ok(get(&url).await.headers["location"].to_str().unwrap().to_owned()) }
    });
    let oauth = OAuth::builder(&world.mcp).browser(browser).build().unwrap();
    assert_eq!(world.call(&oauth).await.unwrap(), 200);
    assert_eq!(shown.get(), 1);
}

#[tokio::test]
async fn an_answer_to_another_question_is_refused() {
    for answer in
        ["code=c", "code=c&state=other", "code=c&state={s}&state={s}", "state={s}", "code=&state={s}"]
    {
        let world = World::new().await;
        world.plan().iss = None;
        let browser = BrowserFn::new("http://127.0.0.1:1/back", move |url| {
            let url = Url::parse(&url).unwrap();
            let state = url.query_pairs().find(|(name, _)| name == "state").unwrap().1.into_owned();
            let came_back = format!("http://127.0.0.1:1/back?{}", answer.replace("{s}", &state));
            std::future::ready(Ok(came_back))
        });
        let oauth = OAuth::builder(&world.mcp).browser(browser).build().unwrap();
        says(&world.call(&oauth).await.unwrap_err(), &["not trusted", "log in again"]);
        assert!(world.seen("/token").is_empty(), "{answer}");
    }
}
