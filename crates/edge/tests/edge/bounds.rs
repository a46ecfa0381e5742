//! What a single client may make a server do and keep, and what it is told beyond that.

use serde_json::{Value, json};
use tidegate_edge::http::Settings;
use tidegate_edge::{EdgeSettings, stdio};

use crate::common::*;

fn ping(id: usize) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "ping"})
}

fn call(id: usize, name: &str, arguments: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name, "arguments": arguments}})
}

fn batch(of: usize, entry: impl Fn(usize) -> Value) -> Value {
    (0..of).map(entry).collect()
}

/// Messages of about a kilobyte.
fn small_messages() -> EdgeSettings {
    let mut edge = EdgeSettings::default();
    edge.limits.max_bytes = 10_000;
    edge
}

#[tokio::test(start_paused = true)]
async fn a_batch_has_a_hundred_messages_at_most() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { http_sse: true, ..Settings::default() });
    let session = Session::open(&client, "2025-03-26").await;
    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-03-26").await;
    let most = batch(100, ping);
    assert_eq!(session.post(&most).send().await.json().await.as_array().unwrap().len(), 100);
    assert_eq!(client.post(most.to_string()).send().await.json().await.as_array().unwrap().len(), 100);
    assert_eq!(pipe.ask(&most).await.as_array().unwrap().len(), 100);
    let many = batch(101, ping);
    let refused = "a batch may have at most 100 messages";
    for ask in [session.post(&many), client.post(many.to_string())] {
        let line = ask.send().await.line().await;
        assert!(line.starts_with("400 ") && line.contains(refused), "{line}");
    }
    assert!(pipe.ask(&many).await.to_string().contains(refused));
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn a_batch_runs_eight_requests_at_a_time() {
    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-03-26").await;
    pipe.send(&batch(50, |n| call(n, "slow", json!({})))).await;
    for released in 0..50 {
        stub.until("as many to run as may", |c| c.finished == released && c.running == 8.min(50 - released))
            .await;
        settle().await;
        assert_eq!(stub.counts().running, 8.min(50 - released));
        stub.release(1);
    }
    assert_eq!(pipe.recv().await.as_array().unwrap().len(), 50);
}

#[tokio::test(start_paused = true)]
async fn the_answer_to_a_batch_is_bounded() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { edge: small_messages(), ..Settings::default() });
    let session = Session::open(&client, "2025-03-26").await;
    let settings = stdio::Settings { edge: small_messages(), ..stdio::Settings::default() };
    let mut pipe = Pipe::legacy(&stub, settings, "2025-03-26").await;
    let many = batch(60, |n| call(n, "big", json!({"n": 900})));
    for answers in [
        session.post(&many).send().await.json().await,
        client.post(many.to_string()).send().await.json().await,
        pipe.ask(&many).await,
    ] {
        let answers = answers.as_array().unwrap();
        assert_eq!(answers.len(), 60, "each is answered");
        let ran = answers.iter().filter(|answer| answer["result"].is_object()).count();
        assert!((10..=20).contains(&ran), "{ran} ran");
        let refused = answers.iter().find(|answer| answer["error"].is_object()).unwrap();
        insta::allow_duplicates!(
            insta::assert_snapshot!(refused["error"], @r#"{"code":-32600,"message":"Too large: the answers to this batch have more than 10000 bytes together, so this request was not run; send it alone"}"#)
        );
    }
    assert!(stub.counts().finished <= 60, "what is refused is not run");
}

#[tokio::test(start_paused = true)]
async fn a_handshake_is_no_part_of_a_batch() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let hello = json!([initialize("2025-03-26", json!({})), ping(1)]);
    let refused = "initialize must not be part of a batch; send it alone";
    let line = client.post(hello.to_string()).send().await.line().await;
    assert!(line.starts_with("400 ") && line.contains(refused), "{line}");
    let session = Session::open(&client, "2025-03-26").await;
    let line = session.post(&hello).send().await.line().await;
    assert!(line.starts_with("400 ") && line.contains(refused), "{line}");
    let mut pipe = Pipe::open(&stub, stdio::Settings::default());
    assert_eq!(code(&pipe.ask(&hello).await).0, -32600, "before the handshake there are no batches at all");
    assert_eq!(pipe.ask(&initialize("2025-03-26", json!({}))).await["id"], 0);
    assert!(pipe.ask(&hello).await.to_string().contains(refused));
}

#[tokio::test(start_paused = true)]
async fn a_client_says_little_of_itself() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let fat = json!({"name": "x".repeat(20_000)});
    let hello = |field: &str| {
        let mut hello = initialize("2025-11-25", json!({}));
        hello["params"][field] = fat.clone();
        hello
    };
    let mut pipe = Pipe::open(&stub, stdio::Settings::default());
    for field in ["clientInfo", "capabilities"] {
        let said =
            format!("Invalid params: \"{field}\" may have at most 16384 bytes, and this one has 20011");
        let answer = client.post(hello(field).to_string()).send().await;
        assert_eq!(answer.header("mcp-session-id"), "-");
        for refused in [answer.json().await, pipe.ask(&hello(field)).await] {
            assert_eq!(
                (&refused["error"]["code"], &refused["error"]["message"]),
                (&json!(-32602), &json!(said))
            );
        }
    }
    for field in ["clientInfo", "clientCapabilities"] {
        let name = format!("io.modelcontextprotocol/{field}");
        let request = modern(1, "tools/list", json!({"_meta": {&name: fat}}));
        let answer = client.modern(&request).send().await;
        let said =
            format!("Invalid params: _meta[\"{name}\"] may have at most 16384 bytes, and this one has 20011");
        for refused in [answer.json().await, pipe.ask(&request).await] {
            assert_eq!(
                (&refused["error"]["code"], &refused["error"]["message"]),
                (&json!(-32602), &json!(said))
            );
        }
    }
    // Neither is the session of a smaller one in its way.
    assert!(Session::open(&client, "2025-11-25").await.works().await);
}

#[tokio::test(start_paused = true)]
async fn what_is_echoed_is_short() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let long = "x".repeat(2000);
    let refused = session.request(&*long, "ping", json!({})).send().await.line().await;
    insta::assert_snapshot!(refused, @r#"400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" may have at most 1024 bytes, and this one has 2002"}}"#);
    let refused = session.call_with_token(1, "progress", json!({}), json!(long)).send().await.line().await;
    insta::assert_snapshot!(refused, @r#"200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: _meta.progressToken may have at most 1024 bytes, and this one has 2002"}}"#);
    let refused = client.ask("tools/list", json!({"_meta": {"progressToken": long}})).await;
    assert_eq!(code(&refused).0, -32602);
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_bounded_in_bytes() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let subscribe = async |uri: &str| {
        let answer = session.request(1, "resources/subscribe", json!({"uri": uri})).send().await;
        answer.json().await
    };
    let long = subscribe(&"x".repeat(8193)).await;
    assert_eq!(long["error"]["message"], "Invalid params: \"uri\" may have at most 8192 bytes");
    let mut answers = Vec::new();
    for n in 0..40 {
        answers.push(subscribe(&format!("mem:{n}{}", "x".repeat(8000))).await);
    }
    let full = answers.iter().position(|answer| answer["error"].is_object()).unwrap();
    assert_eq!(full, 8, "{}", answers[full]);
    assert_eq!(
        answers[full]["error"]["message"],
        "Too many subscriptions: the addresses of a session's resources may have at most 65536 bytes together"
    );
    // What is subscribed to already needs no more room.
    assert_eq!(subscribe(&format!("mem:0{}", "x".repeat(8000))).await["result"], json!({}));
    let uris: Vec<_> = (0..300).map(|n| format!("mem:{n}{}", "x".repeat(1000))).collect();
    let refused =
        client.ask("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": uris}})).await;
    assert_eq!(
        refused["error"]["message"],
        "Invalid params: the parameters of a subscription may have at most 262144 bytes"
    );
}

#[tokio::test(start_paused = true)]
async fn the_questions_of_a_call_are_counted() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    // All at once: not a single one is asked.
    let answer = session.call(1, "ask", json!({"ask": vec!["form"; 10_000]})).send().await;
    assert_eq!(
        answer.json().await["error"]["message"],
        "The call was stopped: it asks the client more than 256 questions"
    );
    // Or round by round.
    let edge = EdgeSettings { max_questions: 5, ..EdgeSettings::default() };
    let session =
        Session::open(&Client::new(&stub, Settings { edge, ..Settings::default() }), "2025-11-25").await;
    let mut events =
        session.call(1, "ask", json!({"ask": ["form", "roots"], "rounds": 9})).send().await.events();
    for _ in 0..4 {
        let question = events.message().await;
        session.answer(&question, json!({"action": "cancel", "roots": []})).await;
    }
    let stopped = events.message().await;
    assert_eq!(
        stopped["error"]["message"], "The call was stopped: it asks the client more than 5 questions",
        "{stopped}"
    );
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn the_answers_to_a_call_are_bounded_together() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { edge: small_messages(), ..Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let mut events = session.call(1, "ask", json!({"rounds": 9})).send().await.events();
    for _ in 0..3 {
        let question = events.message().await;
        session.answer(&question, json!({"action": "accept", "content": {"name": "x".repeat(4000)}})).await;
    }
    let stopped = events.message().await.to_string();
    assert!(
        stopped.contains("The call was stopped: the client's answers have more than 10000 bytes together"),
        "{stopped}"
    );
    assert!(session.works().await);
}
