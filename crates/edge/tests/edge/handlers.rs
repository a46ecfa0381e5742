//! What answers everything below a path, beside the endpoint or on a listener of its own.

use axum::body::{Body, to_bytes};
use http::Response;
use serde_json::json;
use tidegate_edge::http::{Handler, Page, Settings};

use crate::common::*;

fn settings() -> Settings {
    let echo = Handler::new("/api", |request, _| async move {
        let (head, body) = request.into_parts();
        let body = to_bytes(body, 100).await.unwrap();
        let said = format!("{} {} {}", head.method, head.uri, String::from_utf8_lossy(&body));
        Response::builder().status(201).body(Body::from(said)).unwrap()
    });
    Settings::default().handlers([echo]).pages([Page::new("/api/page", "text/plain", "page")])
}

#[tokio::test(start_paused = true)]
async fn a_handler_has_everything_below_its_path_and_nothing_else() {
    let client = Client::new(&Stub::new(), settings());
    for (method, path, body, expected) in [
        ("GET", "/api", "", Some("GET /api ")),
        ("POST", "/api/servers/a/restart?now=1", "x", Some("POST /api/servers/a/restart?now=1 x")),
        ("DELETE", "/api/", "", Some("DELETE /api/ ")),
        // A page at a path of its own comes first.
        ("GET", "/api/page", "", Some("page")),
        ("GET", "/apis", "", None),
        ("GET", "/ap", "", None),
    ] {
        let answer = client.request(method, path).body(body.to_owned()).send().await;
        let status = answer.status;
        let kept = answer.header("cache-control").to_owned();
        let text = answer.text().await;
        match expected {
            Some("page") => assert_eq!((status, &*text), (200, "page")),
            Some(expected) => {
                assert_eq!((status, &*text, &*kept), (201, expected, "no-store"), "{path}");
            }
            None => assert_eq!(status, 404, "{path}: {text}"),
        }
    }
    let answer = client.modern(&modern(1, "server/discover", json!({}))).send().await;
    assert_eq!(answer.status, 200, "the endpoint stays where it is");
}

#[tokio::test(start_paused = true)]
async fn what_guards_pages_guards_handlers() {
    let client = Client::new(&Stub::new(), settings());
    for (header, value) in [("host", "evil.example.com"), ("origin", "http://evil.example.com")] {
        let refused = client.request("POST", "/api/x").header(header, value).send().await;
        assert_eq!(refused.status, 403, "{header}");
    }
    let answer = client.request("GET", "/api/x").send().await;
    for (name, value) in [("x-content-type-options", "nosniff"), ("x-frame-options", "DENY")] {
        assert_eq!(answer.header(name), value);
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_socket_that_is_a_file_serves_pages_and_no_endpoint() {
    use tidegate_edge::http::{PageSite, serve};
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio_util::sync::CancellationToken;

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("s.sock");
    let listener = tokio::net::UnixListener::bind(&path).unwrap();
    let (settings, over) = (settings(), CancellationToken::new());
    let until = over.clone().cancelled_owned();
    let serving = tokio::spawn(serve(PageSite::new(&settings), listener, settings, until));
    for (request, expected) in [
        (
            "PUT /api/level HTTP/1.1\r\nhost: anything\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok",
            "PUT /api/level ok",
        ),
        ("GET /api/page HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "page"),
        ("GET /mcp HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", "Not found"),
    ] {
        let mut stream = tokio::net::UnixStream::connect(&path).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.contains(expected), "{answer}");
    }
    over.cancel();
    serving.await.unwrap().unwrap();
    assert!(tokio::net::UnixStream::connect(&path).await.is_err(), "nobody listens any more");
}
