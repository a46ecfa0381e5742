//! Clients that go away, over real connections: what stops, and what runs on.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_edge::http::Settings;
use tidegate_service::Notice;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::socket::{Sent, open, serve, serve_with, wait_for};
use crate::common::*;

fn never(id: u64, meta: Value) -> Value {
    modern(id, "tools/call", json!({"name": "never", "_meta": meta}))
}

#[tokio::test]
async fn a_modern_call_stops_with_its_connection() {
    let stub = Stub::new();
    let to = serve(&stub).await;
    // Before anything was answered, with and without a place for notifications.
    for meta in [json!({}), json!({"progressToken": 1})] {
        let before = stub.counts().stopped;
        let sent = Sent::modern(to, &never(1, meta)).await;
        stub.until("the call to run", |c| c.running == 1).await;
        drop(sent);
        stub.until("the call to stop", move |c| c.stopped == before + 1).await;
    }
    // In the middle of its stream.
    let message = modern(
        1,
        "tools/call",
        json!({"name": "progress", "arguments": {"wait": true}, "_meta": {"progressToken": 1}}),
    );
    let mut sent = Sent::modern(to, &message).await;
    sent.until("notifications/progress").await;
    drop(sent);
    stub.until("the call to stop", |c| c.stopped == 3 && c.running == 0).await;
}

#[tokio::test]
async fn a_subscription_ends_with_its_connection() {
    let stub = Stub::new();
    let to = serve(&stub).await;
    let listen = modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let mut sent = Sent::modern(to, &listen).await;
    sent.until("acknowledged").await;
    stub.tell(&Notice::ToolsChanged);
    sent.until("list_changed").await;
    drop(sent);
    wait_for("the subscription to end", || stub.subscriptions() == 0).await;
}

#[tokio::test]
async fn a_bare_call_stops_with_its_connection() {
    let stub = Stub::new();
    let to = serve(&stub).await;
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "never"}});
    let sent = Sent::new(to, "POST", &[], &message.to_string()).await;
    stub.until("the call to run", |c| c.running == 1).await;
    drop(sent);
    stub.until("the call to stop", |c| c.stopped == 1).await;
}

#[tokio::test]
async fn a_legacy_call_runs_on_and_can_be_resumed() {
    let stub = Stub::new();
    let to = serve(&stub).await;
    let session = open(to).await;
    let headers = [("mcp-session-id", &*session), ("mcp-protocol-version", "2025-11-25")];
    // Nobody waits for this one any more; it is done all the same.
    let slow = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "slow"}});
    let sent = Sent::new(to, "POST", &headers, &slow.to_string()).await;
    stub.until("the call to run", |c| c.running == 1).await;
    drop(sent);
    let params = json!({"name": "progress", "arguments": {"wait": true}, "_meta": {"progressToken": 1}});
    let progress = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params});
    let mut sent = Sent::new(to, "POST", &headers, &progress.to_string()).await;
    let seen = sent.until("notifications/progress").await;
    let id = seen.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(sent);
    // A ping shows that the server has had time to notice.
    let ping = json!({"jsonrpc": "2.0", "id": 3, "method": "ping"}).to_string();
    Sent::new(to, "POST", &headers, &ping).await.until("result").await;
    assert_eq!((stub.counts().running, stub.counts().stopped), (2, 0));
    stub.release(2);
    stub.until("both to finish", |c| c.finished == 2).await;
    let resume = [headers[0], headers[1], ("last-event-id", &*id)];
    let rest = Sent::new(to, "GET", &resume, "").await.until("done").await;
    assert!(!rest.contains("notifications/progress"), "only what comes after: {rest}");
}

#[tokio::test]
async fn the_standalone_stream_ends_with_its_connection() {
    let stub = Stub::new();
    // How long a client may be away before nobody listens for it depends on this.
    let settings = Settings { session_idle: Duration::from_secs(1), ..Settings::default() };
    let (to, _server) = serve_with(&stub, settings).await;
    let session = open(to).await;
    let mut sent = Sent::new(to, "GET", &[("mcp-session-id", &session)], "").await;
    sent.until("-0-0").await;
    wait_for("the subscription", || stub.subscriptions() == 1).await;
    stub.tell(&Notice::ToolsChanged);
    sent.until("list_changed").await;
    drop(sent);
    wait_for("the subscription to end", || stub.subscriptions() == 0).await;
}

#[tokio::test]
async fn a_connection_whose_reader_stalls_is_closed() {
    let stub = Stub::new();
    let settings =
        Settings { max_connections: 1, stalled: Duration::from_millis(100), ..Settings::default() };
    let (to, _server) = serve_with(&stub, settings).await;
    let big = modern(1, "tools/call", json!({"name": "big", "arguments": {"n": 24 << 20}}));
    let stalled = Sent::modern(to, &big).await;
    stub.until("the result to be there", |c| c.finished == 1).await;
    // There is room for one connection: this one is served once the other is closed.
    let list = modern(1, "tools/list", json!({}));
    Sent::modern(to, &list).await.until("echo").await;
    drop(stalled);
}

#[tokio::test]
async fn a_shutdown_lets_running_calls_finish() {
    let stub = Stub::new();
    let (to, server) = serve_with(&stub, Settings { drain: PATIENCE, ..Settings::default() }).await;
    let mut slow = Sent::modern(to, &modern(1, "tools/call", json!({"name": "slow"}))).await;
    stub.until("the call to run", |c| c.running == 1).await;
    server.shut_down();
    wait_for("the listener to close", || std::net::TcpStream::connect(to).is_err()).await;
    assert!(!server.ended.is_finished());
    stub.release(1);
    slow.until("done").await;
    in_time("the end of the server", server.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_shutdown_closes_what_does_not_end() {
    let stub = Stub::new();
    let (to, server) =
        serve_with(&stub, Settings { drain: Duration::from_millis(1), ..Settings::default() }).await;
    let mut never = Sent::modern(to, &never(1, json!({}))).await;
    let mut listening =
        Sent::modern(to, &modern(2, "subscriptions/listen", json!({"notifications": {}}))).await;
    listening.until("acknowledged").await;
    stub.until("the call to run", |c| c.running == 1).await;
    server.shut_down();
    in_time("the end of the server", server.ended).await.unwrap().unwrap();
    let mut rest = Vec::new();
    for connection in [&mut never, &mut listening] {
        let _ = in_time("the end of a connection", connection.0.read_to_end(&mut rest)).await;
    }
    stub.until("the call to stop", |c| c.running == 0).await;
    wait_for("the subscription to end", || stub.subscriptions() == 0).await;
}

#[tokio::test]
async fn other_paths_are_not_there() {
    let stub = Stub::new();
    let to = serve(&stub).await;
    let mut stream = TcpStream::connect(to).await.unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n").await.unwrap();
    let answer = Sent(stream).until("}").await;
    assert!(answer.starts_with("HTTP/1.1 404"), "{answer}");
}
