//! Pages for browsers, beside the endpoint.

use serde_json::json;
use tidegate_edge::http::{Page, Settings};

use crate::common::*;

const HTML: &str = "text/html; charset=utf-8";

fn client(http_sse: bool) -> Client {
    let pages = [
        Page::new("/about", HTML, "<p>hello"),
        Page::new("/about/app.js", "text/javascript", "1"),
        // Never seen: the endpoint is there.
        Page::new("/mcp", HTML, "hidden"),
    ];
    Client::new(&Stub::new(), Settings { http_sse, ..Settings::default().pages(pages) })
}

#[tokio::test(start_paused = true)]
async fn pages_are_served_with_what_guards_them() {
    for http_sse in [false, true] {
        let answer = client(http_sse).request("GET", "/about").send().await;
        assert_eq!(answer.status, 200);
        let policy = answer.header("content-security-policy").to_owned();
        for part in ["default-src 'none'", "script-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"] {
            assert!(policy.contains(part), "{policy}");
        }
        assert!(!policy.contains("unsafe") && !policy.contains("http"), "{policy}");
        for (name, value) in [
            ("content-type", HTML),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-cache"),
        ] {
            assert_eq!(answer.header(name), value, "{name}");
        }
        assert_eq!(answer.text().await, "<p>hello");
    }
}

#[tokio::test(start_paused = true)]
async fn a_browser_that_has_the_page_is_told_so() {
    let client = client(false);
    let first = client.request("GET", "/about").send().await;
    let tag = first.header("etag").to_owned();
    assert_ne!(tag, "");
    let other = client.request("GET", "/about/app.js").send().await;
    assert_ne!(other.header("etag"), tag);
    for known in [tag.clone(), format!("W/{tag}"), format!("\"x\", {tag}"), "*".to_owned()] {
        let again = client.request("GET", "/about").header("if-none-match", &known).send().await;
        assert_eq!((again.status, again.header("etag")), (304, &*tag), "{known}");
        assert_eq!(again.text().await, "");
    }
    assert_eq!(client.request("GET", "/about").header("if-none-match", "\"x\"").send().await.status, 200);
}

#[tokio::test(start_paused = true)]
async fn pages_are_only_for_reading_and_only_from_here() {
    let client = client(false);
    for method in ["POST", "DELETE", "PUT"] {
        let refused = client.request(method, "/about").send().await;
        assert_eq!((refused.status, refused.header("allow")), (405, "GET, HEAD"), "{method}");
    }
    let rebound = client.request("GET", "/about").header("host", "evil.example.com").send().await;
    assert_eq!(rebound.status, 403);
    let foreign = client.request("GET", "/about").header("origin", "http://evil.example.com").send().await;
    assert_eq!(foreign.status, 403);
    assert_eq!(client.request("GET", "/about/other.js").send().await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn the_endpoint_stays_where_it_is() {
    let answer = client(false).modern(&modern(1, "server/discover", json!({}))).send().await;
    assert_eq!(answer.status, 200);
    assert!(answer.json().await["result"].is_object());
}
