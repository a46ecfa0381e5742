//! What one principal holds of the budget of the process. A process of its own, because there is one budget.

use std::convert::Infallible;

use axum::Router;
use axum::body::Body;
use http::{Request, Response};
use http_body_util::BodyExt;
use serde_json::{Value, json};
use tidegate_edge::http::{Settings, router};
use tidegate_protocol::Method;
use tidegate_service::budget::Budget;
use tidegate_service::{Call, Notice, Principal, Reply};
use tower::ServiceExt;

const SHARE: usize = 400_000;

/// Tools that say `n` bytes, and something before that if they can.
fn site() -> Router {
    Budget::of_process().set_share(SHARE);
    let door = tower::service_fn(async |call: Call| {
        let revision = call.context.revision;
        Ok::<_, Infallible>(match call.method {
            Method::Discover => Reply::complete(revision, r#""capabilities":{"tools":{}}"#),
            Method::ToolsCall => {
                if let Some(outbox) = call.context.outbox.as_ref().filter(|_| !revision.is_modern()) {
                    outbox.push(Notice::Other { method: "notifications/vendor".into(), params: None });
                }
                let n = call.params.str("name").and_then(|name| name.parse().ok()).unwrap_or(0);
                let text = format!(r#""content":[{{"type":"text","text":"{}"}}]"#, "x".repeat(n));
                Reply::complete(revision, &text)
            }
            other => Reply::method_not_found(&other),
        })
    });
    router(door, Settings::default())
}

async fn send(
    site: &Router,
    subject: Option<&str>,
    headers: &[(&str, &str)],
    body: String,
) -> Response<Body> {
    let mut request =
        Request::post("/mcp").header("host", "localhost").header("content-type", "application/json");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut request = request.body(Body::from(body)).unwrap();
    if let Some(subject) = subject {
        request.extensions_mut().insert(Principal::subject(subject));
    }
    site.clone().oneshot(request).await.unwrap()
}

/// A modern call of a tool that says `n` bytes, with so many in its arguments.
async fn call(site: &Router, subject: Option<&str>, n: usize, sent: usize) -> Response<Body> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": n.to_string(), "arguments": {"text": "y".repeat(sent)}, "_meta": meta});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let name = n.to_string();
    let headers =
        [("mcp-protocol-version", "2026-07-28"), ("mcp-method", "tools/call"), ("mcp-name", name.as_str())];
    send(site, subject, &headers, message.to_string()).await
}

async fn message(response: Response<Body>) -> Value {
    serde_json::from_slice(&response.into_body().collect().await.unwrap().to_bytes()).unwrap()
}

#[tokio::test]
async fn a_body_that_is_more_than_a_share_is_refused() {
    let site = site();
    let refused = call(&site, Some("ann"), 1, SHARE).await;
    assert_eq!((refused.status().as_u16(), refused.headers()["retry-after"].as_bytes()), (503, &b"2"[..]));
    let error = message(refused).await;
    assert!(error["error"]["message"].as_str().unwrap().starts_with("You hold as much"), "{error}");
    assert_eq!(call(&site, Some("ann"), 1, SHARE / 2).await.status(), 200);
    assert_eq!(call(&site, None, 1, SHARE).await.status(), 200, "who was not authenticated has no share");
}

#[tokio::test]
async fn who_does_not_read_answers_can_ask_no_more() {
    let site = site();
    let mut body = call(&site, Some("bob"), SHARE, 0).await.into_body();
    let mut frames = Vec::new();
    while let Some(frame) = body.frame().await {
        frames.push(frame.unwrap());
    }
    assert_eq!(call(&site, Some("bob"), 1, 0).await.status(), 503);
    assert_eq!(call(&site, Some("eve"), SHARE / 2, 0).await.status(), 200);
    drop(frames);
    assert_eq!(call(&site, Some("bob"), 1, 0).await.status(), 200);
}

#[tokio::test]
async fn what_is_kept_for_a_session_makes_room() {
    let site = site();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    }});
    let session = send(&site, Some("kim"), &[], hello.to_string()).await.headers()["mcp-session-id"].clone();
    let big =
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": SHARE.to_string()}});
    let accept = ("accept", "application/json, text/event-stream");
    let headers = [("mcp-session-id", session.to_str().unwrap()), accept];
    let stream = send(&site, Some("kim"), &headers, big.to_string()).await;
    assert_eq!(stream.headers()["content-type"], "text/event-stream");
    stream.into_body().collect().await.unwrap();
    let share = Budget::of_process().share_of(&Principal::subject("kim"));
    assert!(share.used() > SHARE, "the events are kept for whoever comes back");
    assert_eq!(call(&site, Some("kim"), 1, 0).await.status(), 200);
    assert_eq!(share.used(), 0);
}
