//! Connections that only take up room, and what a shutdown waits for.

use std::time::Duration;

use serde_json::json;
use tidegate_edge::http::Settings;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::socket::{Sent, open, serve_with, to_the_end, wait_for};
use crate::common::*;

const SHORT: Duration = Duration::from_millis(100);

fn list() -> serde_json::Value {
    modern(1, "tools/list", json!({}))
}

/// A connection on which a request was answered, kept alive.
async fn idle(to: std::net::SocketAddr) -> Sent {
    let mut idle = Sent::modern(to, &list()).await;
    idle.until("cacheScope").await;
    idle
}

#[tokio::test]
async fn an_idle_connection_is_closed_and_a_stream_is_not() {
    let stub = Stub::new();
    let settings = Settings { connection_idle: SHORT, ..Settings::default() };
    let (to, _server) = serve_with(&stub, settings).await;
    let mut listening =
        Sent::modern(to, &modern(1, "subscriptions/listen", json!({"notifications": {}}))).await;
    listening.until("acknowledged").await;
    let slow = Sent::modern(to, &modern(1, "tools/call", json!({"name": "slow"}))).await;
    let mut idle = idle(to).await;
    to_the_end(&mut idle.0).await;
    tokio::time::sleep(3 * SHORT).await;
    stub.release(1);
    let mut slow = slow;
    slow.until("done").await;
    assert_eq!(stub.subscriptions(), 1, "a quiet stream is not idle");
}

#[tokio::test]
async fn a_request_that_never_comes_is_not_waited_for() {
    let stub = Stub::new();
    let (to, _server) = serve_with(&stub, Settings { request_within: SHORT, ..Settings::default() }).await;
    for half in ["", "POST /mcp HTTP/1.1\r\nhost: localhost\r\n"] {
        let mut silent = TcpStream::connect(to).await.unwrap();
        silent.write_all(half.as_bytes()).await.unwrap();
        assert_eq!(to_the_end(&mut silent).await, "");
    }
}

#[tokio::test]
async fn headers_and_bodies_have_one_deadline_each_however_often_a_byte_comes() {
    let stub = Stub::new();
    let settings = Settings { request_within: 5 * SHORT, http_sse: true, ..Settings::default() };
    let (to, _server) = serve_with(&stub, settings).await;
    let head = "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let body = format!("{head}content-length: 1000\r\n\r\n{{");
    for (begun, byte, answer) in [(head, "a", ""), (&*body, " ", "HTTP/1.1 408 ")] {
        let (mut read, mut write) = TcpStream::connect(to).await.unwrap().into_split();
        write.write_all(begun.as_bytes()).await.unwrap();
        let trickle = tokio::spawn(async move {
            while write.write_all(byte.as_bytes()).await.is_ok() {
                tokio::time::sleep(SHORT / 4).await;
            }
        });
        let mut all = Vec::new();
        let _ = in_time("the connection to be closed", read.read_to_end(&mut all)).await;
        let all = String::from_utf8_lossy(&all);
        assert!(all.starts_with(answer) && all.is_empty() == answer.is_empty(), "{all:?}");
        if !all.is_empty() {
            assert!(all.contains("Request timeout: the request body did not arrive within 500ms"), "{all}");
        }
        in_time("the trickle to end", trickle).await.unwrap();
    }
}

#[tokio::test]
async fn at_the_limit_the_idlest_connection_makes_room() {
    let stub = Stub::new();
    let (to, _server) = serve_with(&stub, Settings { max_connections: 3, ..Settings::default() }).await;
    let mut slow = Sent::modern(to, &modern(1, "tools/call", json!({"name": "slow"}))).await;
    let mut idlest = idle(to).await;
    tokio::time::sleep(Duration::from_millis(1100)).await;
    let mut idle_too = idle(to).await;
    let mut new = idle(to).await;
    // It is closed.
    to_the_end(&mut idlest.0).await;
    // The others still answer.
    for kept in [&mut idle_too, &mut new] {
        let body = list().to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/list\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        kept.0.write_all((head + &body).as_bytes()).await.unwrap();
        kept.until("echo").await;
    }
    stub.release(1);
    slow.until("done").await;
}

/// On one thread nobody reads what is sent here before the server is told to end.
#[tokio::test]
async fn a_shutdown_answers_what_was_sent_before_it() {
    let stub = Stub::new();
    let (to, server) = serve_with(&stub, Settings { drain: PATIENCE, ..Settings::default() }).await;
    let body = r#"{"jsonrpc":"2.0","id":"the last","method":"ping"}"#;
    let ping = format!(
        "POST /mcp HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let (mut asking, mut silent) = (Vec::new(), Vec::new());
    for _ in 0..20 {
        asking.push(idle(to).await);
        silent.push(idle(to).await);
    }
    // One that has never asked anything before.
    let new = TcpStream::connect(to).await.unwrap();
    asking.push(Sent(new));
    for sent in &asking {
        assert_eq!(sent.0.try_write(ping.as_bytes()).unwrap(), ping.len());
    }
    server.shut_down();
    for sent in &mut asking {
        let answer = sent.until("the last").await.to_ascii_lowercase();
        assert!(answer.contains("connection: close"), "it is told that this was the last: {answer}");
    }
    for sent in &mut silent {
        let mut rest = Vec::new();
        in_time("the end of a connection", sent.0.read_to_end(&mut rest)).await.unwrap();
        assert!(rest.is_empty());
    }
    in_time("the end of the server", server.ended).await.unwrap().unwrap();
}

#[tokio::test]
async fn a_shutdown_does_not_wait_for_quiet_streams() {
    let stub = Stub::new();
    let settings = Settings { drain: 2 * PATIENCE, http_sse: true, ..Settings::default() };
    let (to, server) = serve_with(&stub, settings).await;
    let session = open(to).await;
    let mut standalone = Sent::new(to, "GET", &[("mcp-session-id", &session)], "").await;
    standalone.until("-0-0").await;
    let mut listening =
        Sent::modern(to, &modern(1, "subscriptions/listen", json!({"notifications": {}}))).await;
    listening.until("acknowledged").await;
    let mut old = TcpStream::connect(to).await.unwrap();
    old.write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
        .await
        .unwrap();
    let mut old = Sent(old);
    old.until("sessionId").await;
    let mut half = TcpStream::connect(to).await.unwrap();
    half.write_all(b"POST /mcp HTTP/1.1\r\nhost:").await.unwrap();
    let _idle = idle(to).await;
    server.shut_down();
    in_time("the end of the server", server.ended).await.unwrap().unwrap();
    let last = to_the_end(&mut listening.0).await;
    assert!(last.contains(r#""resultType":"complete""#), "a subscription is ended properly: {last}");
    assert!(to_the_end(&mut standalone.0).await.ends_with("0\r\n\r\n"), "the stream has an end");
    assert!(to_the_end(&mut old.0).await.ends_with("0\r\n\r\n"));
}

#[tokio::test]
async fn a_shutdown_waits_for_the_calls_of_an_old_stream_and_no_longer() {
    let stub = Stub::new();
    let settings = Settings { drain: 2 * PATIENCE, http_sse: true, ..Settings::default() };
    let (to, server) = serve_with(&stub, settings).await;
    let mut old = TcpStream::connect(to).await.unwrap();
    old.write_all(b"GET /sse HTTP/1.1\r\nhost: localhost\r\naccept: text/event-stream\r\n\r\n")
        .await
        .unwrap();
    let mut old = Sent(old);
    let said = old.until("\n\n").await;
    let path = said.lines().find_map(|line| line.strip_prefix("data: ")).unwrap().to_owned();
    let call = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "slow"}});
    for message in [initialize("2024-11-05", json!({})), call] {
        let body = message.to_string();
        let mut stream = TcpStream::connect(to).await.unwrap();
        let length = body.len();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).await.unwrap();
        Sent(stream).until("202 Accepted").await;
    }
    stub.until("the call to run", |c| c.running == 1).await;
    server.shut_down();
    wait_for("the listener to close", || std::net::TcpStream::connect(to).is_err()).await;
    tokio::time::sleep(3 * SHORT).await;
    assert!(!server.ended.is_finished(), "a call is under way");
    stub.release(1);
    old.until("done").await;
    in_time("the end of the server", server.ended).await.unwrap().unwrap();
}
