//! [`Server`]: an HTTP server of a few lines that says what it is told to, and counts.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::AbortHandle;

/// What is answered at a path.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: &'static str,
    pub(crate) body: String,
    pub(crate) after: Duration,
}

impl Answer {
    pub(crate) fn json(body: &Value) -> Answer {
        Answer { status: 200, body: body.to_string(), ..Answer::default() }
    }

    pub(crate) fn status(status: u16) -> Answer {
        Answer { status, ..Answer::default() }
    }
}

#[derive(Default)]
struct State {
    answers: HashMap<String, Answer>,
    /// Head and body of each request, in their order.
    requests: Vec<String>,
    away: bool,
    /// How many are being answered, and how many were at most.
    at_once: usize,
    most_at_once: usize,
}

pub(crate) struct Server {
    pub(crate) url: String,
    state: Arc<Mutex<State>>,
    task: AbortHandle,
}

impl Server {
    pub(crate) async fn start() -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let state = Arc::<Mutex<State>>::default();
        let shared = state.clone();
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, shared.clone()));
            }
        });
        Server { url, state, task: task.abort_handle() }
    }

    pub(crate) fn at(&self, path: &str, answer: Answer) {
        self.state.lock().unwrap().answers.insert(path.to_owned(), answer);
    }

    /// While it is away, whatever is asked gets no answer.
    pub(crate) fn away(&self, away: bool) {
        self.state.lock().unwrap().away = away;
    }

    pub(crate) fn requests(&self) -> Vec<String> {
        self.state.lock().unwrap().requests.clone()
    }

    /// How many requests were being answered at the same time, at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.state.lock().unwrap().most_at_once
    }

    /// How many requests for a path there were.
    pub(crate) fn hits(&self, path: &str) -> usize {
        self.requests().iter().filter(|head| head.split(' ').nth(1) == Some(path)).count()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(mut stream: TcpStream, state: Arc<Mutex<State>>) -> Option<()> {
    let mut request = Vec::new();
    let text = loop {
        if stream.read_buf(&mut request).await.ok()? == 0 {
            return None;
        }
        let text = String::from_utf8_lossy(&request).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let length = head.to_ascii_lowercase();
        let length =
            length.split("content-length: ").nth(1).and_then(|rest| rest.lines().next()?.parse().ok());
        if body.len() >= length.unwrap_or(0) {
            break text;
        }
    };
    let path = text.split(' ').nth(1)?.to_owned();
    let answer = {
        let mut state = state.lock().unwrap();
        state.requests.push(text);
        state.at_once += 1;
        state.most_at_once = state.most_at_once.max(state.at_once);
        if state.away {
            state.at_once -= 1;
            return None;
        }
        state.answers.get(&path).cloned().unwrap_or_else(|| Answer::status(404))
    };
    tokio::time::sleep(answer.after).await;
    state.lock().unwrap().at_once -= 1;
    let Answer { status, headers, body, .. } = answer;
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status} x\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n");
    stream.write_all(head.as_bytes()).await.ok()?;
    stream.write_all(body.as_bytes()).await.ok()?;
    stream.flush().await.ok()
}
