//! [`Model`]: a model on loopback that follows a [script](super::script), in whatever wire format an agent speaks.
//!
//! It keeps no state of a conversation: how many results of tools a request carries says which call comes next. So retries,
//! and questions on the side that carry no tools (titles, summaries), do no harm. What was asked is kept for the verdict.

mod chat;
mod gemini;
mod messages;
mod responses;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{Method, StatusCode, Uri, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

use crate::meeting::held;

/// More than any agent has to say.
const LARGEST_REQUEST: usize = 16 << 20;

/// What an agent asked of the model.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    /// The tools that the model may call.
    pub(crate) tools: Vec<Offered>,
    /// What the calls of this conversation returned so far, as text.
    pub(crate) results: Vec<String>,
}

/// A tool that the model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offered {
    /// The group that it is in, where a wire format has groups.
    pub(crate) group: Option<String>,
    pub(crate) name: String,
    /// The schema of its arguments, as text.
    pub(crate) schema: String,
}

/// What the model answers.
#[derive(Debug)]
pub(crate) enum Answer {
    /// A call of this tool.
    Call { tool: Offered, arguments: Value },
    /// The end of the conversation.
    Text(String),
}

/// A wire format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Wire {
    /// Anthropic's Messages API.
    Messages,
    /// OpenAI's chat completions.
    Chat,
    /// OpenAI's Responses API.
    Responses,
    /// Google's `generateContent`.
    Gemini,
}

impl Wire {
    fn of(path: &str) -> Option<Wire> {
        match path {
            _ if path.ends_with("/messages") => Some(Wire::Messages),
            _ if path.ends_with("/chat/completions") => Some(Wire::Chat),
            _ if path.ends_with("/responses") => Some(Wire::Responses),
            _ if path.ends_with("enerateContent") => Some(Wire::Gemini),
            _ => None,
        }
    }

    fn read(self, request: &Value) -> Asked {
        match self {
            Wire::Messages => messages::read(request),
            Wire::Chat => chat::read(request),
            Wire::Responses => responses::read(request),
            Wire::Gemini => gemini::read(request),
        }
    }

    /// The response as one document.
    fn whole(self, answer: &Answer) -> Value {
        match self {
            Wire::Messages => messages::whole(answer),
            Wire::Chat => chat::whole(answer),
            Wire::Responses => responses::whole(answer),
            Wire::Gemini => gemini::whole(answer),
        }
    }

    /// The response as an event stream.
    fn events(self, answer: &Answer) -> String {
        match self {
            Wire::Messages => named(&messages::events(answer)),
            Wire::Chat => chat::events(answer),
            Wire::Responses => named(&responses::events(answer)),
            Wire::Gemini => format!("data: {}\n\n", gemini::whole(answer)),
        }
    }
}

/// Events that are named as their `type` says.
fn named(events: &[Value]) -> String {
    let event = |data: &Value| format!("event: {}\ndata: {data}\n\n", text(&data["type"]));
    events.iter().map(event).collect()
}

/// The model. Dropping it ends it.
pub(crate) struct Model {
    /// Where it listens, without a path.
    pub(crate) url: String,
    state: Arc<ModelState>,
    serving: JoinHandle<()>,
}

struct ModelState {
    script: Box<dyn Fn(&Asked) -> Answer + Send + Sync>,
    asked: Mutex<Vec<(Wire, bool, Asked)>>,
    strange: Mutex<Vec<String>>,
}

impl Model {
    /// Starts one that follows this script.
    pub(crate) async fn start(script: impl Fn(&Asked) -> Answer + Send + Sync + 'static) -> Model {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let script = Box::new(script);
        let state = Arc::new(ModelState { script, asked: Mutex::default(), strange: Mutex::default() });
        let router = Router::new()
            .fallback(answer)
            .layer(DefaultBodyLimit::max(LARGEST_REQUEST))
            .with_state(Arc::clone(&state));
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Model { url, state, serving }
    }

    /// What it was asked: in which format, whether a stream was wanted, and what.
    pub(crate) fn asked(&self) -> Vec<(Wire, bool, Asked)> {
        std::mem::take(&mut held(&self.state.asked))
    }

    /// What it was asked that is no business of a model's. It is also the proxy that agents have to go through, so this is
    /// where they wanted to go.
    pub(crate) fn strange(&self) -> Vec<String> {
        std::mem::take(&mut held(&self.state.strange))
    }
}

impl Drop for Model {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn answer(State(state): State<Arc<ModelState>>, method: Method, uri: Uri, body: Bytes) -> Response {
    let path = uri.path();
    let (Some(wire), Ok(request)) = (Wire::of(path), serde_json::from_slice::<Value>(&body)) else {
        return aside(&state, &method, &uri);
    };
    let streams = request["stream"] == true || path.ends_with("streamGenerateContent");
    let asked = wire.read(&request);
    let answer = (state.script)(&asked);
    held(&state.asked).push((wire, streams, asked));
    let (kind, text) = match streams {
        true => ("text/event-stream", wire.events(&answer)),
        false => ("application/json", wire.whole(&answer).to_string()),
    };
    ([(header::CONTENT_TYPE, kind)], text).into_response()
}

/// What is not a question to a model: some agents ask which models there are, or count tokens first.
fn aside(state: &ModelState, method: &Method, uri: &Uri) -> Response {
    let json =
        |value: Value| ([(header::CONTENT_TYPE, "application/json")], value.to_string()).into_response();
    let path = uri.path();
    if path.ends_with("/models") {
        let model = json!({"id": super::MODEL, "object": "model", "owned_by": "tidegate"});
        return json(json!({"object": "list", "data": [model]}));
    }
    if path.ends_with("/count_tokens") {
        return json(json!({"input_tokens": 1}));
    }
    held(&state.strange).push(format!("{method} {uri}"));
    StatusCode::NOT_FOUND.into_response()
}

/// A number that no other answer has: agents tell messages apart by their ids.
fn unique() -> usize {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// The elements of a list, if it is one.
fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// A text, or nothing.
fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// What a tool returned: a text, or parts that have texts, or anything else as it is.
fn returned(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts
            .iter()
            .map(|part| part["text"].as_str().map_or_else(|| part.to_string(), str::to_owned))
            .collect(),
        other => other.to_string(),
    }
}
