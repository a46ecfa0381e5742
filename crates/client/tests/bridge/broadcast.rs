//! A bridge of the old HTTP+SSE transport that has one process for everybody and tells all its connections whatever that
//! says, questions included (supergateway does).

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{Response, StatusCode};
use axum::routing::{get, post};
use futures_util::stream::unfold;
use serde_json::{Value, json};
use tidegate_client::{Client, ClientDoor, ClientSettings, Instances};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::rig::{Got, call, make, named, person, until};

/// The bridge, and what its process has heard and not answered yet.
#[derive(Default)]
struct Bridge {
    streams: Mutex<Vec<UnboundedSender<String>>>,
    /// Calls by the question that they wait for.
    asking: Mutex<HashMap<String, Value>>,
    /// Calls that wait for nothing in particular.
    held: Mutex<Vec<Value>>,
    /// What came as the answer to a question.
    answers: Mutex<Vec<Value>>,
}

impl Bridge {
    async fn start() -> (Arc<Bridge>, ClientDoor) {
        let bridge = Arc::new(Bridge::default());
        let router = Router::new().route("/sse", get(open)).route("/messages", post(message));
        let router = router.with_state(bridge.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/sse", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await });
        let builder = Client::builder(url.as_str()).unwrap().settings(ClientSettings::default());
        let per_user = |options: &mut ClientSettings| options.sessions.instances = Instances::PerUser;
        (bridge, builder.configure(per_user).lazy().unwrap().door())
    }

    /// Says something to every connection.
    fn say(&self, message: &Value) {
        let event = format!("event: message\ndata: {message}\n\n");
        self.streams.lock().unwrap().retain(|stream| stream.send(event.clone()).is_ok());
    }

    fn answer(&self, id: &Value, text: &str) {
        let result = json!({"content": [{"type": "text", "text": text}]});
        self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    /// Ends what is held.
    fn release(&self) {
        for id in std::mem::take(&mut *self.held.lock().unwrap()) {
            self.answer(&id, "released");
        }
    }

    fn hear(&self, message: &Value) {
        let (id, params) = (&message["id"], &message["params"]);
        match message["method"].as_str() {
            Some("initialize") => {
                let info = json!({"name": "bridged", "version": "1"});
                let result = json!({
                    "protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": info,
                });
                self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
            Some("tools/list") => {
                let tool = |name| json!({"name": name, "inputSchema": {"type": "object"}});
                let result = json!({"tools": [tool("ask"), tool("hold"), tool("plain")]});
                self.say(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
            }
            Some("tools/call") if params["name"] == "ask" => {
                let question = format!("q{}", self.answers.lock().unwrap().len());
                self.asking.lock().unwrap().insert(question.clone(), id.clone());
                let form = json!({"type": "object", "properties": {"name": {"type": "string"}}});
                let params = json!({"message": "Who?", "requestedSchema": form});
                self.say(&json!({
                    "jsonrpc": "2.0", "id": question, "method": "elicitation/create", "params": params,
                }));
            }
            Some("tools/call") if params["name"] == "hold" => self.held.lock().unwrap().push(id.clone()),
            Some("tools/call") => self.answer(id, "plain"),
            Some(_) if id.is_null() => {}
            Some(_) => self.say(&json!({"jsonrpc": "2.0", "id": id, "result": {}})),
            None => {
                self.answers.lock().unwrap().push(message.clone());
                let asking = id.as_str().and_then(|id| self.asking.lock().unwrap().remove(id));
                let said = message["result"]["content"]["name"].as_str();
                let said = said.or(message["error"]["message"].as_str()).unwrap_or("nothing");
                if let Some(asking) = asking {
                    self.answer(&asking, said);
                }
            }
        }
    }
}

async fn open(State(bridge): State<Arc<Bridge>>) -> Response<Body> {
    let (to, from) = unbounded_channel();
    to.send("event: endpoint\ndata: /messages\n\n".to_owned()).unwrap();
    bridge.streams.lock().unwrap().push(to);
    let events =
        unfold(from, |mut from| async move { Some((Ok::<_, Infallible>(from.recv().await?), from)) });
    let response = Response::builder().header("content-type", "text/event-stream");
    response.body(Body::from_stream(events)).unwrap()
}

async fn message(State(bridge): State<Arc<Bridge>>, body: String) -> StatusCode {
    bridge.hear(&serde_json::from_str(&body).unwrap());
    StatusCode::ACCEPTED
}

#[tokio::test]
async fn a_question_that_everybody_hears_is_answered_by_whose_call_it_is_about() {
    let (bridge, door) = Bridge::start().await;
    let (ann, bob) = (person("ann"), person("bob"));
    for who in [&bob, &ann] {
        assert_eq!(make(&door, call(who, "plain", json!({}))).await, Got::Text("plain".into()));
    }
    for (who, name) in [(&ann, "Ann"), (&bob, "Bob"), (&ann, "Ann")] {
        let asked = make(&door, call(who, "ask", json!({}))).await;
        let Got::Asks(keys, state) = asked else { panic!("{name}: {asked:?}") };
        let answers = json!({"requestState": state, "inputResponses": {&keys[0]: named(name)}});
        assert_eq!(make(&door, call(who, "ask", answers)).await, Got::Text(name.to_owned()));
    }
    let answers = bridge.answers.lock().unwrap().clone();
    assert_eq!(answers.len(), 3, "nobody else has answered anything: {answers:?}");
}

#[tokio::test]
async fn a_question_that_could_be_for_two_users_is_refused_once() {
    let (bridge, door) = Bridge::start().await;
    let (ann, bob) = (person("ann"), person("bob"));
    assert_eq!(make(&door, call(&ann, "plain", json!({}))).await, Got::Text("plain".into()));
    let holding = tokio::spawn({
        let (door, bob) = (door.clone(), bob.clone());
        async move { make(&door, call(&bob, "hold", json!({}))).await }
    });
    until("bob's call", || !bridge.held.lock().unwrap().is_empty()).await;
    let asked = make(&door, call(&ann, "ask", json!({}))).await;
    let Got::Text(said) = asked else { panic!("{asked:?}") };
    assert!(said.contains("could be for several clients"), "{said}");
    assert_eq!(bridge.answers.lock().unwrap().len(), 1);
    bridge.release();
    assert_eq!(holding.await.unwrap(), Got::Text("released".into()));
    // From here on their calls take turns, so it is clear whose question it is.
    let asked = make(&door, call(&ann, "ask", json!({}))).await;
    assert!(matches!(asked, Got::Asks(..)), "{asked:?}");
}
