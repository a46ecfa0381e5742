//! A legacy server that is not ours: it has no hints for us, cuts off streams and changes its mind.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tidegate_client::{Client, ClientDoor, ClientSettings};
use tidegate_protocol::Json;
use tidegate_service::{Notice, Outbox};
use tokio::sync::Notify;

use super::world::{calls_of, completed, get, reply, start, updated};
use crate::rig::{Got, make, named, person};

#[derive(Default)]
struct State {
    /// Whether the tool has to be called as a task; before, it may not be.
    required: bool,
    /// How often the result was asked for.
    asked: usize,
    /// The token under which progress is told.
    token: Value,
    /// What the client answered to the question.
    answer: Value,
}

#[derive(Clone, Default)]
struct Foreign {
    state: Arc<Mutex<State>>,
    answered: Arc<Notify>,
}

impl Foreign {
    async fn start() -> (Foreign, ClientDoor) {
        let foreign = Foreign::default();
        let server = foreign.clone();
        let router = Router::new().route(
            "/mcp",
            post(move |body: Bytes| {
                let server = server.clone();
                async move { server.take(serde_json::from_slice(&body).unwrap()) }
            }),
        );
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/mcp", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let mut options = ClientSettings::default();
        options.offer_revision(tidegate_protocol::Revision::V2025_11_25);
        let client = Client::builder(url.as_str()).unwrap().settings(options).lazy().unwrap();
        (foreign, client.door())
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    fn task(&self) -> Value {
        let status = match &*self.state() {
            state if state.answer.is_object() => "completed",
            _ => "input_required",
        };
        let time = "2025-11-25T10:30:00Z";
        json!({"taskId": "1", "status": status, "createdAt": time, "lastUpdatedAt": time, "ttl": null, "x": 1})
    }

    fn take(&self, message: Value) -> Response {
        let result = |result: Value| {
            let answer = json!({"jsonrpc": "2.0", "id": message["id"], "result": result});
            ([(header::CONTENT_TYPE, "application/json")], answer.to_string()).into_response()
        };
        match message["method"].as_str() {
            None => {
                self.state().answer = message["result"].clone();
                self.answered.notify_waiters();
                StatusCode::ACCEPTED.into_response()
            }
            Some("initialize") => result(json!({
                "protocolVersion": "2025-11-25",
                "capabilities": {"tools": {}, "tasks": {"requests": {"tools": {"call": {}}}}},
                "serverInfo": {"name": "foreign", "version": "1"},
            })),
            Some("tools/list") => {
                let support = if self.state().required { "required" } else { "forbidden" };
                let tool = json!({"name": "t", "inputSchema": {}, "execution": {"taskSupport": support}});
                result(json!({"tools": [tool]}))
            }
            Some("tools/call") => {
                let mut state = self.state();
                state.token = message["params"]["_meta"]["progressToken"].clone();
                let as_task = message["params"].get("task").is_some();
                drop(state);
                if as_task != self.state().required {
                    let error = json!({"code": -32601, "message": "not like this"});
                    let answer = json!({"jsonrpc": "2.0", "id": message["id"], "error": error});
                    return ([(header::CONTENT_TYPE, "application/json")], answer.to_string())
                        .into_response();
                }
                match as_task {
                    true => result(json!({"task": self.task()})),
                    false => result(json!({"content": [{"type": "text", "text": "plain"}]})),
                }
            }
            Some("tasks/get") => result(self.task()),
            Some("tasks/result") => self.result(message["id"].clone()),
            Some(_) => StatusCode::ACCEPTED.into_response(),
        }
    }

    /// The first stream ends before anything was said; the second tells of progress, asks, and waits for the answer.
    fn result(&self, id: Value) -> Response {
        let events = |messages: Vec<Value>| {
            Bytes::from(messages.iter().map(|m| format!("data: {m}\n\n")).collect::<String>())
        };
        let mut state = self.state();
        state.asked += 1;
        let first = match state.asked {
            1 => None,
            _ => Some(events(vec![
                json!({"jsonrpc": "2.0", "method": "notifications/progress",
                       "params": {"progressToken": state.token, "progress": 1}}),
                json!({"jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
                    "message": "Who?", "requestedSchema": {"type": "object", "properties": {}},
                    "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "1"}, "kept": 1},
                }}),
            ])),
        };
        let done = state.answer.is_object();
        drop(state);
        let server = self.clone();
        let stream = futures_util::stream::unfold(0, move |step| {
            let (server, first, id) = (server.clone(), first.clone(), id.clone());
            async move {
                let first = first?;
                if step == 0 && !done {
                    return Some((Ok::<_, std::convert::Infallible>(first), 1));
                }
                if step == 2 {
                    return None;
                }
                while !server.state().answer.is_object() {
                    let answered = server.answered.notified();
                    if !server.state().answer.is_object() {
                        answered.await;
                    }
                }
                let name = server.state().answer["content"]["name"].clone();
                let result = json!({
                    "content": [{"type": "text", "text": name}],
                    "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "1"}},
                });
                let answer = json!({"jsonrpc": "2.0", "id": id, "result": result});
                Some((Ok(Bytes::from(format!("data: {answer}\n\n"))), 2))
            }
        });
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(stream)).into_response()
    }
}

#[tokio::test]
async fn a_call_goes_on_through_all_of_it() {
    let (foreign, door) = Foreign::start().await;
    let ann = person("ann");
    let call = |rest: Value| {
        let mut given = json!({"name": "t", "arguments": {}});
        rest.as_object().unwrap().iter().for_each(|(name, value)| given[name] = value.clone());
        calls_of(&ann, "tools/call", given)
    };
    assert_eq!(make(&door, call(json!({}))).await, Got::Text("plain".into()));
    // From now on it has to be a task. Nobody has said so, but a call that is refused was not begun.
    foreign.state().required = true;
    let outbox = Outbox::default();
    let mut asking = call(json!({}));
    asking.context.outbox = Some(outbox.clone());
    asking.context.progress_token = Some(Json::trusted("\"mine\""));
    let state = make(&door, asking).await.state(&["question-1-1"]);
    assert_eq!(foreign.state().asked, 2, "what was cut off was asked for again");
    let Some(Notice::Progress(progress)) = outbox.try_next() else { panic!("{outbox:?}") };
    assert_eq!(progress.as_str(), r#"{"progress":1,"progressToken":"mine"}"#);
    let answers = json!({"requestState": state, "inputResponses": {"question-1-1": named("Ann")}});
    assert_eq!(make(&door, call(answers)).await, Got::Text("Ann".into()));
    let answer = foreign.state().answer.clone();
    assert_eq!(answer["_meta"]["io.modelcontextprotocol/related-task"], json!({"taskId": "1"}));
    // And back again.
    foreign.state().required = false;
    assert_eq!(make(&door, call(json!({}))).await, Got::Text("plain".into()));
}

#[tokio::test]
async fn a_task_goes_on_through_all_of_it() {
    let (foreign, door) = Foreign::start().await;
    let ann = person("ann");
    foreign.state().required = true;
    let task = start(&door, &ann, "t").await;
    assert_eq!(task["ttlMs"], 24 * 3600 * 1000, "nothing is kept for ever");
    assert_eq!(task["x"], 1);
    let id = task["taskId"].as_str().unwrap();
    let asked = updated(&door, &ann, id, "input_required").await;
    let question = &asked["inputRequests"]["question-1-1"];
    assert_eq!(question["params"]["_meta"], json!({"kept": 1}), "{asked}");
    assert_eq!(get(&door, &ann, id).await["inputRequests"], asked["inputRequests"]);
    let answers = json!({"taskId": id, "inputResponses": {"question-1-1": named("Ann")}});
    reply(&door, super::request(&ann, "tasks/update", answers)).await.unwrap();
    let done = completed(&door, &ann, id).await;
    assert_eq!(done["result"], json!({"content": [{"type": "text", "text": "Ann"}]}));
    // It cannot be cancelled there; to be heard is all that is asked for.
    let cancel = super::request(&ann, "tasks/cancel", json!({"taskId": id}));
    assert_eq!(reply(&door, cancel).await.unwrap(), json!({"resultType": "complete"}));
}
