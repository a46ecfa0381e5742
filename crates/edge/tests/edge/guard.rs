//! Host and Origin: a web page must not reach a local server through DNS rebinding.

use std::sync::{Arc, Mutex};

use serde_json::json;
use tidegate_edge::http::Settings;
use tidegate_service::events::{self, Event, Kind, Recorder};

use crate::common::*;

fn settings() -> Settings {
    Settings { http_sse: true, ..Settings::default() }
}

/// The status of a modern and of a legacy request from there.
async fn status(settings: Settings, host: Option<&str>, origin: Option<&str>) -> u16 {
    let client = Client::new(&Stub::new(), settings);
    let from = |ask: Ask| {
        let ask = match host {
            Some(host) => ask.header("host", host),
            None => ask.without("host"),
        };
        match origin {
            Some(origin) => ask.header("origin", origin),
            None => ask,
        }
    };
    let modern = from(client.modern(&modern(1, "server/discover", json!({})))).send().await;
    let legacy = from(client.post(initialize("2025-11-25", json!({})).to_string())).send().await;
    assert_eq!(modern.status, legacy.status, "{host:?} {origin:?}");
    modern.status
}

#[tokio::test(start_paused = true)]
async fn hosts() {
    for (host, want) in [
        ("localhost", 200),
        ("LocalHost:3000", 200),
        ("localhost:", 200),
        ("127.0.0.1", 200),
        ("127.0.0.1:8765", 200),
        ("[::1]", 200),
        ("[::1]:8765", 200),
        ("evil.example.com", 403),
        ("evil.example.com:80", 403),
        ("localhost.evil.example.com", 403),
        ("127.0.0.1.evil.example.com", 403),
        ("127.0.0.2", 403),
        ("0.0.0.0", 403),
        ("localhost:80@evil.example.com", 403),
        ("localhost:evil", 403),
        ("user@localhost", 403),
        ("[::1]evil", 403),
        ("[::1]:80:80", 403),
        ("", 403),
        (":80", 403),
    ] {
        assert_eq!(status(settings(), Some(host), None).await, want, "{host:?}");
    }
    assert_eq!(status(settings(), None, None).await, 403);
}

#[tokio::test(start_paused = true)]
async fn origins() {
    for (origin, want) in [
        ("http://localhost", 200),
        ("http://localhost:6274", 200),
        ("https://127.0.0.1:8765", 200),
        ("http://[::1]:1", 200),
        ("http://evil.example.com", 403),
        ("https://localhost.evil.example.com", 403),
        ("http://localhost:80@evil.example.com", 403),
        ("http://evil.example.com/localhost", 403),
        ("null", 403),
        ("file://", 403),
        ("localhost", 403),
        ("", 403),
    ] {
        assert_eq!(status(settings(), Some("localhost"), Some(origin)).await, want, "{origin:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn two_of_a_kind_are_one_too_many() {
    let client = Client::new(&Stub::new(), settings());
    let ask = || client.modern(&modern(1, "server/discover", json!({})));
    let (good, evil) = ("http://localhost", "http://evil.example.com");
    for ask in [
        ask().header("origin", good).again("origin", evil),
        ask().header("origin", evil).again("origin", good),
        ask().again("host", "evil.example.com"),
        ask().header("host", "evil.example.com").again("host", "localhost"),
    ] {
        assert_eq!(ask.send().await.status, 403);
    }
}

#[tokio::test(start_paused = true)]
async fn the_host_may_stand_in_the_target() {
    let client = Client::new(&Stub::new(), settings());
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (uri, want) in [("http://localhost:80/mcp", 200), ("http://evil.example.com/mcp", 403)] {
        assert_eq!(client.request("POST", uri).without("host").body(ping).send().await.status, want, "{uri}");
    }
}

#[tokio::test(start_paused = true)]
async fn more_hosts_and_origins_on_request() {
    let public = || settings().allow_host("tools.example.com").allow_origin("https://app.example.com");
    for (host, origin, want) in [
        ("tools.example.com", None, 200),
        ("TOOLS.example.com:8443", None, 200),
        ("tools.example.com", Some("https://tools.example.com"), 200),
        ("tools.example.com", Some("https://app.example.com"), 200),
        ("localhost", Some("https://app.example.com"), 200),
        ("tools.example.com", Some("http://app.example.com"), 403),
        ("tools.example.com", Some("https://app.example.com:444"), 403),
        ("tools.example.com", Some("https://evil.example.com"), 403),
        ("app.example.com", None, 403),
    ] {
        assert_eq!(status(public(), Some(host), origin).await, want, "{host} {origin:?}");
    }
    let any = Settings { any_host: true, ..settings() };
    assert_eq!(status(any, Some("evil.example.com"), Some("null")).await, 200);
}

#[tokio::test(start_paused = true)]
async fn every_method_and_path_is_guarded() {
    let stub = Stub::new();
    let client = Client::new(&stub, settings());
    for (method, path) in [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("PUT", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/messages"),
    ] {
        let answer = client.request(method, path).header("origin", "http://evil.example.com").send().await;
        assert_eq!(answer.status, 403, "{method} {path}");
        let refused = answer.json().await;
        assert_eq!(refused.get("id"), None, "an error response without an id");
        assert_eq!(refused["error"]["code"], -32600);
    }
    assert_eq!(stub.calls(), [""; 0]);
}

/// Why requests were refused.
#[derive(Default)]
struct Notes(Mutex<Vec<String>>);

impl Recorder for Notes {
    fn wants(&self, kind: Kind) -> bool {
        kind == Kind::HostRefused
    }

    fn record(&self, event: &Event<'_>) {
        if let Event::HostRefused(it) = event {
            self.0.lock().unwrap().push(it.why.to_owned());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_operator_is_told_what_was_refused_and_how_to_allow_it() {
    let notes = Arc::new(Notes::default());
    let recorder: Arc<dyn Recorder> = notes.clone();
    events::add(recorder.clone());
    let long = format!("told.{}", "x".repeat(5000));
    let origin = "https://told.example.org";
    for (host, origin) in
        [("told.example.com:80", None), ("localhost", Some(origin)), (&long, None), ("localhost", None)]
    {
        status(settings(), Some(host), origin).await;
    }
    events::remove(&recorder);
    let mut told = notes.0.lock().unwrap().clone();
    told.retain(|one| one.contains("told."));
    told.dedup();
    assert_eq!(
        told,
        [
            "the host \"told.example.com\" is not allowed. To allow it, start the server with --allow-host \
             told.example.com or add it to allow_hosts in the configuration"
                .to_owned(),
            "the origin \"https://told.example.org\" is not allowed. To allow it, start the server with --allow-origin \
             https://told.example.org or add it to allow_origins in the configuration"
                .to_owned(),
            format!(
                "the host \"{0}\" is not allowed. To allow it, start the server with --allow-host {0} or add it to \
                 allow_hosts in the configuration",
                &long[..100]
            ),
        ]
    );
}
