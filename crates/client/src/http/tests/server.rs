//! A server that says exactly what a test wants it to say.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A request as it came.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    /// The connection it came over, counted from 1.
    pub(super) connection: usize,
    /// All of it up to the blank line.
    pub(super) head: String,
    pub(super) body: String,
}

impl Seen {
    /// `POST /mcp`.
    pub(super) fn line(&self) -> &str {
        self.head.split(" HTTP/1.1").next().unwrap_or_default()
    }

    /// The values of a header.
    pub(super) fn all(&self, name: &str) -> Vec<&str> {
        let named = |line: &'_ &str| line.split(':').next().is_some_and(|n| n.eq_ignore_ascii_case(name));
        self.head.lines().filter(named).map(|line| line[name.len() + 1..].trim()).collect()
    }
}

/// A running server and what it has seen.
pub(super) struct Server {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    _task: JoinSet<()>,
}

impl Server {
    /// Answers each request with what `answer` says, given its number from 0. No answer closes the connection, as does
    /// one with `connection: close`.
    pub(super) async fn start(answer: impl Fn(usize, &Seen) -> String + Send + Sync + 'static) -> Server {
        let answer = Arc::new(answer);
        Server::by_hand(move |mut stream, connection, seen| {
            let answer = answer.clone();
            async move {
                while let Some(request) = read(&mut stream, connection).await {
                    let number = {
                        let mut seen = seen.lock().unwrap();
                        seen.push(request.clone());
                        seen.len() - 1
                    };
                    let text = answer(number, &request);
                    let _ = stream.write_all(text.as_bytes()).await;
                    if text.is_empty() || text.contains("connection: close") {
                        break;
                    }
                }
            }
        })
        .await
    }

    /// Does with each connection what `serve` does.
    pub(super) async fn by_hand<F: Future<Output = ()> + Send + 'static>(
        serve: impl Fn(TcpStream, usize, Arc<Mutex<Vec<Seen>>>) -> F + Send + 'static,
    ) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut task = JoinSet::new();
        let all = seen.clone();
        task.spawn(async move {
            let mut connections = JoinSet::new();
            for number in 1.. {
                let (stream, _) = listener.accept().await.unwrap();
                connections.spawn(serve(stream, number, all.clone()));
            }
        });
        Server { address, seen, _task: task }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// The requests so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap().clone()
    }

    /// The first lines of the requests so far.
    pub(super) fn lines(&self) -> Vec<String> {
        self.seen().iter().map(|one| one.line().to_owned()).collect()
    }
}

/// The next request, if one comes.
pub(super) async fn read(stream: &mut TcpStream, connection: usize) -> Option<Seen> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = memchr::memmem::find(&bytes, b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    };
    let head = String::from_utf8(bytes[..end].to_vec()).ok()?;
    let mut seen = Seen { connection, head, body: String::new() };
    let length: usize = seen.all("content-length").first().map_or(0, |n| n.parse().unwrap());
    while bytes.len() < end + 4 + length {
        if stream.read_buf(&mut bytes).await.ok()? == 0 {
            return None;
        }
    }
    seen.body = String::from_utf8(bytes[end + 4..].to_vec()).ok()?;
    Some(seen)
}

/// An answer with these header lines and this body.
pub(super) fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len())
}

/// An answer that is JSON.
pub(super) fn json(body: &str) -> String {
    answer("200 OK", "content-type: application/json\r\n", body)
}

/// A body in chunks.
pub(super) fn chunked(pieces: &[&str]) -> String {
    let chunks: String = pieces.iter().map(|p| format!("{:x}\r\n{p}\r\n", p.len())).collect();
    format!("{chunks}0\r\n\r\n")
}
