//! The HTTP+SSE transport of 2024-11-05, end to end.

use serde_json::{Value, json};
use tidegate_edge::http::Settings;
use tidegate_service::Notice;

use crate::common::*;

/// A client of the old transport: one stream for everything that comes, and a path for what it sends.
struct Old {
    client: Client,
    events: Events,
    path: String,
}

impl Old {
    async fn connect(stub: &Stub) -> Old {
        Old::with(&Client::new(stub, Settings { http_sse: true, ..Settings::default() })).await
    }

    async fn with(client: &Client) -> Old {
        let mut events =
            client.request("GET", "/sse").header("accept", "text/event-stream").send().await.events();
        let endpoint = events.event().await.unwrap();
        assert_eq!(endpoint.event.as_deref(), Some("endpoint"));
        assert!(endpoint.data.starts_with("/messages?sessionId="), "{}", endpoint.data);
        Old { client: client.clone(), events, path: endpoint.data }
    }

    fn post(&self, body: impl Into<axum::body::Body>) -> Ask {
        self.client.request("POST", &self.path).body(body)
    }

    async fn send(&self, message: &Value) {
        let answer = self.post(message.to_string()).send().await;
        assert_eq!((answer.status, &*answer.text().await), (202, ""), "{message}");
    }

    /// Sends a request and takes the next message of the stream for its answer.
    async fn ask(&mut self, id: impl Into<Value>, method: &str, params: Value) -> Value {
        self.send(&json!({"jsonrpc": "2.0", "id": id.into(), "method": method, "params": params})).await;
        self.recv().await
    }

    async fn recv(&mut self) -> Value {
        let event = self.events.event().await.expect("the stream goes on");
        assert_eq!(event.event.as_deref(), Some("message"));
        serde_json::from_str(&event.data).unwrap()
    }

    async fn shake_hands(mut self, capabilities: Value) -> Old {
        self.send(&initialize("2024-11-05", capabilities)).await;
        assert_eq!(self.recv().await["result"]["protocolVersion"], "2024-11-05");
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        self
    }
}

#[tokio::test(start_paused = true)]
async fn off_unless_asked_for() {
    let client = Client::new(&Stub::new(), Settings::default());
    assert_eq!(client.request("GET", "/sse").send().await.status, 404);
    assert_eq!(client.request("POST", "/messages").send().await.status, 404);
}

#[tokio::test(start_paused = true)]
async fn from_handshake_to_calls() {
    let stub = Stub::new();
    let mut old = Old::connect(&stub).await;
    let mut got = vec![
        old.ask(1, "ping", json!({})).await,
        old.ask(2, "tools/list", json!({})).await,
        old.ask(3, "initialize", json!({"protocolVersion": "2024-11-05", "capabilities": {}})).await,
        old.ask(4, "initialize", json!({"protocolVersion": "2024-11-05", "capabilities": {}})).await,
    ];
    old.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    got.push(old.ask(5, "tools/call", json!({"name": "echo", "arguments": {"text": "hi"}})).await);
    got.push(old.ask(6, "tools/fly", json!({})).await);
    let meta = json!({"progressToken": 0});
    got.push(old.ask(7, "tools/call", json!({"name": "progress", "arguments": {}, "_meta": meta})).await);
    got.push(old.recv().await);
    stub.tell(&Notice::ToolsChanged);
    got.push(old.recv().await);
    insta::assert_snapshot!(lines(&got), @r#"
    {"id":1,"jsonrpc":"2.0","result":{}}
    {"error":{"code":-32600,"message":"Server not initialized: send initialize first"},"id":2,"jsonrpc":"2.0"}
    {"id":3,"jsonrpc":"2.0","result":{"capabilities":{"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"instructions":"Be kind","protocolVersion":"2024-11-05","serverInfo":{"name":"stub","version":"1"}}}
    {"error":{"code":-32600,"message":"Invalid request: this session is already initialized"},"id":4,"jsonrpc":"2.0"}
    {"id":5,"jsonrpc":"2.0","result":{"content":[{"text":"hi","type":"text"}]}}
    {"error":{"code":-32601,"message":"Method not found: tools/fly"},"id":6,"jsonrpc":"2.0"}
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":0,"total":1}}
    {"id":7,"jsonrpc":"2.0","result":{"content":[{"text":"done","type":"text"}]}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn several_in_flight_and_cancellation() {
    let stub = Stub::new();
    let mut old = Old::connect(&stub).await.shake_hands(json!({})).await;
    for (id, name) in [(1, "slow"), (2, "never"), (3, "polite")] {
        old.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}}))
            .await;
    }
    stub.until("all to run", |c| c.running == 3).await;
    assert_eq!(old.ask(4, "ping", json!({})).await["id"], 4);
    for id in [2, 3] {
        old.send(
            &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}),
        )
        .await;
    }
    stub.until("two to stop", |c| c.running == 1).await;
    stub.release(1);
    assert_eq!(old.recv().await["id"], 1);
    assert!(old.events.is_quiet().await, "no response to what was cancelled");
}

#[tokio::test(start_paused = true)]
async fn questions() {
    let stub = Stub::new();
    let mut old = Old::connect(&stub).await.shake_hands(json!({"roots": {}, "sampling": {}})).await;
    let question = old.ask(1, "tools/call", json!({"name": "ask", "arguments": {"ask": ["roots"]}})).await;
    assert_eq!(question["method"], "roots/list");
    old.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"roots": []}})).await;
    assert!(text(&old.recv().await).contains(r#""roots":[]"#));
    let question = old.ask(2, "tools/call", json!({"name": "ask", "arguments": {"ask": ["sample"]}})).await;
    old.send(&json!({"jsonrpc": "2.0", "id": question["id"], "error": {"code": 1, "message": "no"}})).await;
    assert_eq!(old.recv().await["result"]["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn bad_input() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { http_sse: true, ..Settings::default() });
    let mut old = Old::with(&client).await.shake_hands(json!({})).await;
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let mut table = String::new();
    for (name, ask) in [
        ("broken JSON", old.post("{")),
        ("not a request", old.post(r#"{"jsonrpc":"2.0","id":1}"#)),
        ("a batch", old.post(format!("[{ping}]"))),
        ("a form", old.post(ping).header("content-type", "text/plain")),
        ("no session", client.request("POST", "/messages").body(ping)),
        ("another session", client.request("POST", "/messages?sessionId=0").body(ping)),
        ("another principal", old.post(ping).signed_in("bob")),
    ] {
        table += &format!("{name}: {}\n", ask.send().await.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    broken JSON: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: the text ends in the middle of a value"}}
    not a request: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"method\" is missing"}}
    a batch: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: batches are not part of this transport"}}
    a form: 415 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Unsupported media type: send the message as Content-Type: application/json"}}
    no session: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found: open the event stream first"}}
    another session: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found: open the event stream first"}}
    another principal: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found: open the event stream first"}}
    "#);
    assert_eq!(old.ask(9, "ping", json!({})).await["id"], 9, "the connection goes on");
    assert_eq!(client.request("POST", "/sse").send().await.status, 405);
}

#[tokio::test(start_paused = true)]
async fn the_stream_is_the_session() {
    let stub = Stub::new();
    let old = Old::connect(&stub).await.shake_hands(json!({})).await;
    let (client, path) = (old.client.clone(), old.path.clone());
    old.send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "never"}})).await;
    stub.until("the tool to run", |c| c.running == 1).await;
    assert_eq!(stub.subscriptions(), 1);
    drop(old);
    stub.until("the tool to stop", |c| c.stopped == 1).await;
    settle().await;
    assert_eq!(stub.subscriptions(), 0);
    let gone = client.request("POST", &path).body(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#).send().await;
    assert_eq!(gone.status, 404);
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_in_the_middle_of_its_handshake() {
    let stub = Stub::new();
    let old = Old::connect(&stub).await;
    stub.hold_discovery(true);
    let hello = tokio::spawn(old.post(initialize("2024-11-05", json!({})).to_string()).send());
    settle().await;
    drop(old);
    stub.hold_discovery(false);
    hello.await.unwrap();
    settle().await;
    assert_eq!(stub.subscriptions(), 0, "nobody is left to tell");
}

#[tokio::test(start_paused = true)]
async fn closing_the_stream_early_means_nothing_here() {
    let stub = Stub::new();
    // Whatever revision a client of this transport speaks, it could not come back.
    for revision in LEGACY {
        let mut old = Old::connect(&stub).await;
        old.send(&initialize(revision, json!({}))).await;
        assert_eq!(old.recv().await["result"]["protocolVersion"], revision);
        stub.release(1);
        assert_eq!(text(&old.ask(1, "tools/call", json!({"name": "close_stream"})).await), "after the break");
        assert_eq!(old.ask(2, "ping", json!({})).await["id"], 2);
    }
}

#[tokio::test(start_paused = true)]
async fn connections_are_bounded() {
    let client =
        Client::new(&Stub::new(), Settings { http_sse: true, max_sessions: 1, ..Settings::default() });
    let first = Old::with(&client).await;
    assert_eq!(client.request("GET", "/sse").send().await.status, 503);
    drop(first);
    Old::with(&client).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive() {
    let mut old = Old::connect(&Stub::new()).await;
    assert_eq!(old.events.raw().await, ": \n\n");
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_cannot_hold_an_answer_ends() {
    let stub = Stub::new();
    let settings = Settings { http_sse: true, kept_bytes: 1000, ..Settings::default() };
    let mut old = Old::with(&Client::new(&stub, settings)).await.shake_hands(json!({})).await;
    // Nobody reads meanwhile.
    for id in 0..20 {
        let params = json!({"name": "big", "arguments": {"n": 900}});
        old.send(&json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
        settle().await;
    }
    let mut got = Vec::new();
    while let Some(message) = old.events.next().await {
        got.push(message["id"].clone());
    }
    assert!(got.len() < 20, "the stream has ended, and none of its answers was passed over: {got:?}");
    assert_eq!(got, (0..got.len()).map(|id| json!(id)).collect::<Vec<_>>());
    let late = old.post(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string()).send().await;
    assert_eq!(late.status, 404, "the session has ended with it");
}
