//! A provider of models to test with: it speaks the wire formats of Anthropic and OpenAI, and fails in their ways.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{Response, StatusCode};
use futures_util::stream::{self, Stream, StreamExt};
use serde_json::{Value, json};
use tidegate_memory::{MemoryServerSettings, Models, Provider, server_with};
use tidegate_server::ServerDoor;

use crate::rig::Folder;

/// The key that it wants.
pub(crate) const KEY: &str = "sk-very-secret-key";

/// What is answered to one request.
#[derive(Clone)]
pub(crate) enum Answer {
    /// A status with headers and a body.
    Status(u16, Vec<(&'static str, String)>, Value),
    /// A stream in pieces of so many bytes, and how it ends.
    Stream(String, usize, End),
}

/// How a stream ends.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum End {
    Well,
    /// The connection is cut.
    Cut,
    /// It goes on with what is said last, for ever.
    Never,
}

/// A request that came.
#[derive(Clone)]
pub(crate) struct Came {
    pub(crate) path: String,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Value,
}

impl Came {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

#[derive(Clone, Default)]
pub(crate) struct Fake {
    url: String,
    answers: Arc<Mutex<VecDeque<Answer>>>,
    came: Arc<Mutex<Vec<Came>>>,
    /// How many streams were begun and not dropped yet.
    pub(crate) open: Arc<AtomicUsize>,
}

impl Fake {
    /// Answers with these, one after another; the last again and again.
    pub(crate) async fn new(answers: impl IntoIterator<Item = Answer>) -> Fake {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let fake = Fake {
            url: format!("http://{}", listener.local_addr().unwrap()),
            answers: Arc::new(Mutex::new(answers.into_iter().collect())),
            ..Fake::default()
        };
        let router = Router::new().fallback(answer).with_state(fake.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        fake
    }

    pub(crate) fn came(&self) -> Vec<Came> {
        self.came.lock().unwrap().clone()
    }

    /// The body of the request that came at this place.
    pub(crate) fn body(&self, at: usize) -> Value {
        self.came()[at].body.clone()
    }

    pub(crate) fn claude(&self) -> Provider {
        Provider::anthropic(&self.url, KEY).models(["claude-test"])
    }

    pub(crate) fn gpt(&self) -> Provider {
        Provider::openai(format!("{}/v1", self.url)).models(["gpt-test"])
    }

    /// A memory whose agents are run by this.
    pub(crate) fn memory(&self, folder: &Folder, provider: Provider) -> ServerDoor {
        memory(folder, provider, |_| {})
    }
}

/// A memory whose agents are run by a provider, with other options, too.
pub(crate) fn memory(
    folder: &Folder,
    provider: Provider,
    set: impl FnOnce(&mut MemoryServerSettings),
) -> ServerDoor {
    let mut options = MemoryServerSettings::default();
    options.models = Models::new([provider]);
    options.models.pause = Duration::from_millis(1);
    set(&mut options);
    server_with(folder.store(), options)
}

async fn answer(State(fake): State<Fake>, request: Request) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 24).await.unwrap();
    let headers =
        parts.headers.iter().map(|(n, v)| (n.to_string(), v.to_str().unwrap_or_default().to_owned()));
    fake.came.lock().unwrap().push(Came {
        path: parts.uri.path().to_owned(),
        headers: headers.collect(),
        body: serde_json::from_slice(&body).unwrap_or_default(),
    });
    let answer = {
        let mut answers = fake.answers.lock().unwrap();
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    };
    match answer.expect("no answer is prepared") {
        Answer::Status(status, headers, body) => {
            let mut response = Response::builder().status(StatusCode::from_u16(status).unwrap());
            for (name, value) in headers {
                response = response.header(name, value);
            }
            response.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap()
        }
        Answer::Stream(text, size, end) => {
            let pieces: Vec<Bytes> = text.as_bytes().chunks(size).map(Bytes::copy_from_slice).collect();
            let last = pieces.last().cloned().unwrap_or_default();
            let pieces = stream::iter(pieces.into_iter().map(Ok::<_, std::io::Error>));
            let body = match end {
                End::Well => Body::from_stream(pieces),
                End::Cut => Body::from_stream(pieces.chain(stream::once(async {
                    // What was said before is on its way by then.
                    tokio::time::sleep(Duration::from_millis(30)).await;
                    Err(std::io::Error::other("cut"))
                }))),
                End::Never => Body::from_stream(counted(fake.open.clone(), pieces.chain(ticks(last)))),
            };
            Response::builder().header("content-type", "text/event-stream").body(body).unwrap()
        }
    }
}

/// The same piece, again and again.
fn ticks(piece: Bytes) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    stream::unfold(piece, |piece| async {
        tokio::time::sleep(Duration::from_millis(5)).await;
        Some((Ok(piece.clone()), piece))
    })
}

/// The stream, which is counted for as long as it lives.
fn counted<S: Stream<Item = std::io::Result<Bytes>> + Send + 'static>(
    open: Arc<AtomicUsize>,
    stream: S,
) -> impl Stream<Item = std::io::Result<Bytes>> + Send {
    struct Open(Arc<AtomicUsize>);
    impl Drop for Open {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    open.fetch_add(1, Ordering::SeqCst);
    let open = Open(open);
    stream.map(move |piece| {
        let _ = &open;
        piece
    })
}

/// An error as Anthropic and OpenAI write it.
pub(crate) fn fails(status: u16, message: &str) -> Answer {
    let error = json!({"type": "error", "error": {"type": "some_error", "message": message}});
    Answer::Status(status, Vec::new(), error)
}

/// Events of the Messages API.
pub(crate) mod claude {
    use super::*;

    pub(crate) fn events(events: &[Value]) -> String {
        let one = |event: &Value| format!("event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap());
        events.iter().map(one).collect()
    }

    fn begin() -> Value {
        let usage = json!({"input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1});
        json!({"type": "message_start", "message": {"id": "msg_1", "model": "claude-test-1", "content": [], "usage": usage}})
    }

    /// The events of a message whose blocks are texts and tools.
    pub(crate) fn message(blocks: &[Value]) -> Vec<Value> {
        let mut all = vec![begin(), json!({"type": "ping"})];
        for (index, block) in blocks.iter().enumerate() {
            let mut start = block.clone();
            let (kind, text) = match block["type"].as_str().unwrap() {
                "text" => ("text_delta", start["text"].take().as_str().unwrap().to_owned()),
                _ => ("input_json_delta", start["input"].take().to_string()),
            };
            match kind {
                "text_delta" => start["text"] = "".into(),
                _ => start["input"] = json!({}),
            }
            all.push(json!({"type": "content_block_start", "index": index, "content_block": start}));
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(5) {
                let piece: String = piece.iter().collect();
                let delta = match kind {
                    "text_delta" => json!({"type": kind, "text": piece}),
                    _ => json!({"type": kind, "partial_json": piece}),
                };
                all.push(json!({"type": "content_block_delta", "index": index, "delta": delta}));
            }
            all.push(json!({"type": "content_block_stop", "index": index}));
        }
        all.push(json!({"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 10}}));
        all.push(json!({"type": "message_stop"}));
        all
    }

    pub(crate) fn says(blocks: &[Value]) -> Answer {
        Answer::Stream(events(&message(blocks)), 11, End::Well)
    }

    /// Asks for a tool.
    pub(crate) fn calls(name: &str, input: Value) -> Answer {
        says(&[json!({"type": "tool_use", "id": "toolu_1", "name": name, "input": input})])
    }

    /// Gives the answer.
    pub(crate) fn answers(answer: Value) -> Answer {
        calls("answer", answer)
    }
}

/// Chunks of chat completions.
pub(crate) mod gpt {
    use super::*;

    fn chunks(chunks: &[Value]) -> String {
        let all: String = chunks.iter().map(|chunk| format!("data: {chunk}\r\n\r\n")).collect();
        format!("{all}data: [DONE]\r\n\r\n")
    }

    /// A text, with usage or without.
    pub(crate) fn says(text: &str, usage: bool) -> Answer {
        let characters: Vec<char> = text.chars().collect();
        let mut all: Vec<Value> = characters
            .chunks(4)
            .map(|piece| {
                let piece: String = piece.iter().collect();
                json!({"model": "gpt-test-1", "choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": null}]})
            })
            .collect();
        all.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}));
        if usage {
            all.push(json!({"choices": [], "usage": {"prompt_tokens": 30, "completion_tokens": 7}}));
        }
        Answer::Stream(chunks(&all), 9, End::Well)
    }

    /// Asks for tools, as they are written on the wire.
    pub(crate) fn calls(calls: Value) -> Answer {
        let call = json!({"choices": [{"index": 0, "delta": {"role": "assistant", "content": null, "tool_calls": calls}}]});
        let end = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": "tool_calls"}]});
        Answer::Stream(chunks(&[call, end]), 13, End::Well)
    }
}
