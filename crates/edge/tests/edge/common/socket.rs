//! Real connections: an endpoint on a socket, and requests that are sent to it by hand.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tidegate_edge::http::{self, Settings};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::http::initialize;
use super::{Stub, in_time};

pub(crate) async fn serve(stub: &Stub) -> SocketAddr {
    serve_with(stub, Settings::default()).await.0
}

pub(crate) async fn serve_with(stub: &Stub, settings: Settings) -> (SocketAddr, Server) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = Arc::new(Notify::new());
    let stopped = stop.clone();
    let door = stub.door();
    let ended =
        tokio::spawn(async move { http::serve_door(door, listener, settings, stopped.notified()).await });
    (address, Server { stop, ended })
}

pub(crate) struct Server {
    stop: Arc<Notify>,
    pub(crate) ended: JoinHandle<io::Result<()>>,
}

impl Server {
    pub(crate) fn shut_down(&self) {
        self.stop.notify_one();
    }
}

/// A connection on which one request was sent.
pub(crate) struct Sent(pub(crate) TcpStream);

impl Sent {
    pub(crate) async fn new(to: SocketAddr, method: &str, headers: &[(&str, &str)], body: &str) -> Sent {
        let mut stream = TcpStream::connect(to).await.unwrap();
        let mut head = format!("{method} /mcp HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\n");
        head += &format!("accept: application/json, text/event-stream\r\ncontent-length: {}\r\n", body.len());
        for (name, value) in headers {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        Sent(stream)
    }

    pub(crate) async fn modern(to: SocketAddr, message: &Value) -> Sent {
        let mut headers =
            vec![("mcp-protocol-version", "2026-07-28"), ("mcp-method", message["method"].as_str().unwrap())];
        headers.extend(message["params"]["name"].as_str().map(|name| ("mcp-name", name)));
        Sent::new(to, "POST", &headers, &message.to_string()).await
    }

    /// Reads until `text` has come, and returns everything up to there.
    #[track_caller]
    pub(crate) fn until(&mut self, text: &str) -> impl Future<Output = String> {
        in_time("bytes", async move {
            let mut all = Vec::new();
            loop {
                let so_far = String::from_utf8_lossy(&all).into_owned();
                if so_far.contains(text) {
                    return so_far;
                }
                assert_ne!(self.0.read_buf(&mut all).await.unwrap(), 0, "ended after {so_far:?}");
            }
        })
    }
}

/// Reads to the end of a connection, however it ends.
pub(crate) async fn to_the_end(stream: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let _ = in_time("the end of the connection", stream.read_to_end(&mut all)).await;
    String::from_utf8_lossy(&all).into_owned()
}

/// A session over a real connection: its id.
pub(crate) async fn open(to: SocketAddr) -> String {
    let hello = initialize("2025-11-25", json!({})).to_string();
    let head = Sent::new(to, "POST", &[], &hello).await.until("\r\n\r\n").await;
    let line = head.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).expect("a session id");
    line.to_owned()
}

pub(crate) async fn wait_for(what: &str, done: impl Fn() -> bool) {
    in_time(what, async {
        while !done() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
