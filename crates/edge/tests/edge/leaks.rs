//! Nothing is left behind: no task, no subscription, no session, no stream that nobody ends.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use serde_json::json;
use tidegate_edge::http::{Settings, Site};
use tidegate_edge::stdio;
use tidegate_service::Notice;
use tokio::io::AsyncWrite;
use tower::Service;

use crate::common::*;

/// Tasks of this runtime that have not ended.
fn tasks() -> usize {
    tokio::runtime::Handle::current().metrics().num_alive_tasks()
}

#[tokio::test(start_paused = true)]
async fn a_stdio_connection_leaves_no_task() {
    let stub = Stub::new();
    let before = tasks();
    let settings = stdio::Settings { drain: Duration::from_secs(1), ..stdio::Settings::default() };
    let mut pipe = Pipe::legacy(&stub, settings, "2025-11-25").await;
    pipe.call(1, "never", json!({})).await;
    pipe.call(2, "ask", json!({})).await;
    pipe.call(3, "task", json!({"script": ["working"]})).await;
    pipe.send(&modern(4, "tools/call", json!({"name": "never"}))).await;
    pipe.send(&modern(5, "subscriptions/listen", json!({"notifications": {}}))).await;
    settle().await;
    assert!(tasks() > before);
    pipe.finish().await;
    settle().await;
    assert_eq!((tasks(), stub.subscriptions(), stub.counts().running), (before, 0, 0));
}

#[tokio::test(start_paused = true)]
async fn a_session_leaves_no_task() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    // The first session starts the task that looks for idle ones.
    Session::open(&client, "2025-11-25").await.delete().send().await;
    let before = tasks();
    let session = Session::open(&client, "2025-11-25").await;
    let _changes = session.get().send().await.events();
    let _asking = session.call(1, "ask", json!({})).send().await.events();
    let waiting = tokio::spawn(session.call(2, "task", json!({"script": ["working"]})).send());
    settle().await;
    assert!(tasks() > before);
    session.delete().send().await;
    waiting.await.unwrap();
    settle().await;
    assert_eq!((tasks(), stub.subscriptions()), (before, 0));
}

#[tokio::test(start_paused = true)]
async fn an_endpoint_leaves_no_task() {
    let stub = Stub::new();
    let before = tasks();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let waiting = tokio::spawn(session.call(1, "never", json!({})).send());
    stub.until("the call to run", |c| c.running == 1).await;
    // The client's connection goes first, then the endpoint.
    waiting.abort();
    settle().await;
    assert_eq!(stub.counts().running, 1);
    drop((client, session));
    stub.until("the call to stop", |c| c.stopped == 1).await;
    tokio::time::sleep(Settings::default().session_idle).await;
    assert_eq!(tasks(), before);
}

#[tokio::test(start_paused = true)]
async fn streams_that_come_and_go_leave_no_subscription() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let mut last = None;
    for n in 0..20 {
        session.request(n, "resources/subscribe", json!({"uri": format!("mem:{n}")})).send().await;
        let mut events = session.get().send().await.events();
        settle().await;
        events.event().await;
        assert_eq!(stub.subscriptions(), 1, "{n}");
        last = Some(events);
    }
    let before = tasks();
    drop(last);
    settle().await;
    assert_eq!((stub.subscriptions(), tasks()), (1, before - 1), "the client may be back in a moment");
    tokio::time::sleep(std::time::Duration::from_secs(130)).await;
    assert_eq!(stub.subscriptions(), 0);
    // It has missed something, as far as anybody knows.
    let mut events = session.get().send().await.events();
    assert!(!events.is_quiet().await, "everything may have changed");
}

#[tokio::test(start_paused = true)]
async fn many_requests_do_not_push_the_standalone_stream_out() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { kept_streams: 4, ..Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let mut old = session.get().send().await.events();
    let running: Vec<_> = (0..20).map(|n| tokio::spawn(session.call(n, "slow", json!({})).send())).collect();
    stub.until("all to run", |c| c.running == 20).await;
    // It is still the session's: a new one takes its place, and the session's end is its end.
    let mut new = session.get().send().await.events();
    assert_eq!(old.next().await, None);
    while !new.is_quiet().await {}
    stub.tell(&Notice::ToolsChanged);
    assert_eq!(new.message().await["method"], "notifications/tools/list_changed");
    session.delete().send().await;
    assert_eq!(new.next().await, None);
    for one in running {
        one.await.unwrap();
    }
    assert_eq!(stub.counts().stopped, 20);
}

#[tokio::test(start_paused = true)]
async fn idle_sessions_are_forgotten() {
    let stub = Stub::new();
    let mut endpoint =
        Site::new(stub.door(), &Settings { session_idle: Duration::from_secs(60), ..Settings::default() });
    for n in 1..=100 {
        let hello = http::Request::post("/mcp")
            .header("host", "localhost")
            .header("content-type", "application/json");
        let hello =
            hello.body(axum::body::Body::from(initialize("2025-11-25", json!({})).to_string())).unwrap();
        endpoint.call(hello).await.unwrap();
        assert_eq!(endpoint.sessions(), n);
    }
    tokio::time::sleep(Duration::from_secs(90)).await;
    assert_eq!(endpoint.sessions(), 0);
    // The task that forgets them ends with the endpoint.
    let before = tasks();
    drop(endpoint);
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(tasks(), before - 1);
}

#[tokio::test(start_paused = true)]
async fn a_writer_that_is_stuck_is_let_go() {
    let stub = Stub::new();
    let before = tasks();
    let dropped = Arc::new(AtomicBool::new(false));
    let (input, server_input) = tokio::io::duplex(1024);
    let server =
        stdio::serve_streams(stub.door(), stdio::Settings::default(), server_input, Stuck(dropped.clone()));
    let server = tokio::spawn(server);
    let mut input = input;
    let ping = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\n";
    tokio::io::AsyncWriteExt::write_all(&mut input, ping).await.unwrap();
    settle().await;
    drop(input);
    assert_eq!(in_time("the end", server).await.unwrap(), stdio::Ended::Eof);
    settle().await;
    assert_eq!((tasks(), dropped.load(Ordering::Relaxed)), (before, true));
}

/// An output that takes nothing.
struct Stuck(Arc<AtomicBool>);

impl AsyncWrite for Stuck {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Pending
    }
}

impl Drop for Stuck {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
