//! Redirects, and other addresses of the same server.

use super::server::{Seen, answer, json};
use super::*;

fn to(status: &str, location: &str) -> String {
    answer(status, &format!("location: {location}\r\n"), "moved")
}

fn slashed(_: usize, request: &Seen) -> String {
    match request.line() {
        "POST /mcp" | "GET /mcp" | "DELETE /mcp" => to("307 Temporary Redirect", "/mcp/"),
        _ => json("{}"),
    }
}

#[tokio::test]
async fn redirects_within_the_origin_are_followed_and_remembered() {
    let server = Server::start(slashed).await;
    let client = client(&server);
    for _ in 0..2 {
        assert_eq!(outcome(&post(&client).await), "200 {}");
    }
    assert_eq!(soon(client.clone().delete(Headers::new())).await.unwrap().status, 200);
    assert_eq!(server.lines(), ["POST /mcp", "POST /mcp/", "POST /mcp/", "DELETE /mcp/"]);
    let seen = server.seen();
    // All of it again, over the same connection.
    assert_eq!(seen[0].body, seen[1].body);
    assert!(seen.iter().all(|one| one.connection == 1));
    assert_eq!(client.url().as_str(), server.url("/mcp"));
}

#[tokio::test]
async fn what_is_no_longer_there_is_forgotten() {
    let server = Server::start(|number, _| match number {
        0 => to("308 Permanent Redirect", "/worker/1"),
        2 => answer("404 Not Found", "", ""),
        _ => json("{}"),
    })
    .await;
    let client = client(&server);
    for expected in ["200 {}", "404 empty", "200 {}"] {
        assert_eq!(outcome(&post(&client).await), expected);
    }
    assert_eq!(server.lines(), ["POST /mcp", "POST /worker/1", "POST /worker/1", "POST /mcp"]);
}

#[tokio::test]
async fn other_redirects_are_not_followed() {
    let other = Server::start(|_, _| json("{}")).await;
    let elsewhere = other.url("/mcp");
    for (status, location) in [
        ("307 Temporary Redirect", elsewhere.as_str()),
        ("308 Permanent Redirect", elsewhere.as_str()),
        ("301 Moved Permanently", "/mcp/"),
        ("302 Found", "/mcp/"),
        ("303 See Other", "/mcp/"),
    ] {
        let location = location.to_owned();
        let server = Server::start(move |_, _| to(status, &location)).await;
        assert_eq!(outcome(&post(&client(&server)).await), format!("{} : moved", &status[..3]), "{status}");
        assert_eq!(server.lines(), ["POST /mcp"], "{status}");
    }
    assert!(other.seen().is_empty());
}

#[tokio::test]
async fn endless_redirects_end() {
    let server = Server::start(|number, _| to("307 Temporary Redirect", &format!("/{number}"))).await;
    assert_eq!(outcome(&post(&client(&server)).await), "307 : moved");
    assert_eq!(server.lines(), ["POST /mcp", "POST /0", "POST /1", "POST /2", "POST /3", "POST /4"]);
}

#[tokio::test]
async fn other_addresses_of_the_same_server() {
    let server = Server::start(|_, _| json("{}")).await;
    let client = client(&server);
    assert_eq!(outcome(&post(&client).await), "200 {}");
    let messages = client.at(&client.url().join("/messages?id=1").unwrap()).unwrap();
    assert_eq!(outcome(&post(&messages).await), "200 {}");
    assert_eq!(server.lines(), ["POST /mcp", "POST /messages?id=1"]);
    assert_eq!(server.seen()[1].connection, 1);
    for other in ["http://evil.example/messages", "https://127.0.0.1/", "http://127.0.0.1:1/messages"] {
        let refused = client.at(&Url::parse(other).unwrap()).unwrap_err();
        assert!(refused.detail().contains("another origin"), "{}", refused.detail());
    }
}

#[tokio::test]
async fn addresses_follow_an_upgrade_to_https() {
    let outside = Outside::of(Matcher::builder().build(), Some(network::trusting()));
    let plain = remote("http://tools.example/sse");
    let client = HttpClient::with(&plain, None, &HttpSettings::default(), outside).unwrap();
    let secure = client.0.shared.endpoint(Url::parse("https://tools.example/sse").unwrap(), None).unwrap();
    client.0.endpoint.store(Arc::new(secure));
    for (url, expected) in [
        ("http://tools.example/messages?x=1", Some("https://tools.example/messages?x=1")),
        ("https://tools.example/messages", Some("https://tools.example/messages")),
        ("http://tools.example:81/messages", None),
        ("https://other.example/messages", None),
    ] {
        let got = client.at(&Url::parse(url).unwrap()).ok();
        assert_eq!(got.as_ref().map(|c| c.url().as_str()), expected, "{url}");
    }
}
