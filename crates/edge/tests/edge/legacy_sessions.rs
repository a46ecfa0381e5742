//! Sessions of legacy clients over HTTP: how they begin, whose they are, and how they end.

use std::time::Duration;

use serde_json::json;
use tidegate_edge::http::Settings;

use crate::common::*;

fn client(stub: &Stub) -> Client {
    Client::new(stub, Settings::default())
}

async fn session(stub: &Stub, revision: &str) -> Session {
    Session::open(&client(stub), revision).await
}

#[tokio::test(start_paused = true)]
async fn handshakes() {
    let client = client(&Stub::new());
    let mut table = String::new();
    for wanted in LEGACY.into_iter().chain(["2026-07-28", "1999-01-01", ""]) {
        let answer = client.post(initialize(wanted, json!({})).to_string()).send().await;
        let id = answer.header("mcp-session-id");
        assert!(id.len() >= 32 && id.bytes().all(|b| b.is_ascii_graphic()), "{id:?}");
        table += &format!("{wanted}: {}\n", answer.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    2024-11-05: 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2024-11-05","capabilities":{"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"serverInfo":{"name":"stub","version":"1"},"instructions":"Be kind"}}
    2025-03-26: 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-03-26","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"serverInfo":{"name":"stub","version":"1"},"instructions":"Be kind"}}
    2025-06-18: 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tools":{"listChanged":true}},"serverInfo":{"name":"stub","title":"Stub","version":"1"},"instructions":"Be kind"}}
    2025-11-25: 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}},"tools":{"listChanged":true}},"serverInfo":{"name":"stub","title":"Stub","version":"1"},"instructions":"Be kind"}}
    2026-07-28: 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}},"tools":{"listChanged":true}},"serverInfo":{"name":"stub","title":"Stub","version":"1"},"instructions":"Be kind"}}
    1999-01-01: 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}},"tools":{"listChanged":true}},"serverInfo":{"name":"stub","title":"Stub","version":"1"},"instructions":"Be kind"}}
    : 200 {"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-11-25","capabilities":{"completions":{},"logging":{},"prompts":{"listChanged":true},"resources":{"listChanged":true,"subscribe":true},"tasks":{"cancel":{},"list":{},"requests":{"tools":{"call":{}}}},"tools":{"listChanged":true}},"serverInfo":{"name":"stub","title":"Stub","version":"1"},"instructions":"Be kind"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_handshake_may_carry_headers_of_either_era() {
    let client = client(&Stub::new());
    let hello = initialize("2025-11-25", json!({})).to_string();
    for ask in [
        client.post(&hello).header("mcp-protocol-version", "2025-11-25"),
        client.post(&hello).header("mcp-protocol-version", "2025-11-25").header("mcp-method", "initialize"),
        client.post(&hello).header("accept", "application/json"),
        client.post(&hello).without("accept"),
    ] {
        let answer = ask.send().await;
        assert_ne!(answer.header("mcp-session-id"), "-");
        assert_eq!(answer.json().await["result"]["protocolVersion"], "2025-11-25");
    }
    let answer = client.post(&hello).header("mcp-protocol-version", "1.0").send().await;
    insta::assert_snapshot!(answer.line().await, @r#"400 {"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"Unsupported protocol version \"1.0\": this server supports 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"1.0"}}}"#);
}

#[tokio::test(start_paused = true)]
async fn what_the_call_knows() {
    let client = client(&Stub::new());
    let capabilities = json!({"roots": {"listChanged": true}, "made-up": [1.0]});
    let session = Session::with(&client, "2025-06-18", capabilities).await;
    let answer =
        session.call_with_token(1, "context", json!({}), json!(0)).header("mcp-param-x", "y").send().await;
    insta::assert_snapshot!(text(&answer.json().await), @r#"{"capabilities":{"made-up":[1.0],"roots":{"listChanged":true}},"clientInfo":{"name":"test","version":"1"},"headers":null,"logLevel":"info","progressToken":0,"revision":"2025-06-18","subject":null}"#);
}

#[tokio::test(start_paused = true)]
async fn a_session_is_needed_and_ends() {
    let stub = Stub::new();
    let one = session(&stub, "2025-11-25").await;
    let none = Session { id: "00000000000000000000000000000000".to_owned(), ..one.clone() };
    let list = |session: &Session| session.request(1, "tools/list", json!({}));
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut table = String::new();
    for (name, ask) in [
        ("request without", list(&one).without("mcp-session-id")),
        ("notification without", one.post(&told).without("mcp-session-id")),
        ("GET without", one.get().without("mcp-session-id")),
        ("DELETE without", one.delete().without("mcp-session-id")),
        ("request of another", list(&none)),
        ("notification of another", none.post(&told)),
        ("GET of another", none.get()),
        ("DELETE of another", none.delete()),
    ] {
        table += &format!("{name}: {}\n", ask.send().await.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    request without: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    notification without: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    GET without: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    DELETE without: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    request of another: 404 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Session not found: it has ended. Send initialize to start a new one"}}
    notification of another: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found: it has ended. Send initialize to start a new one"}}
    GET of another: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found: it has ended. Send initialize to start a new one"}}
    DELETE of another: 404 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Session not found: it has ended. Send initialize to start a new one"}}
    "#);
    assert!(one.works().await);
    let ended = one.delete().send().await;
    assert_eq!((ended.status, &*ended.text().await), (204, ""));
    for ask in [list(&one), one.post(&told), one.get(), one.get_from("0-0"), one.delete()] {
        assert_eq!(ask.send().await.status, 404);
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_session_ends_what_runs_for_it() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut changes = session.get().send().await.events();
    let waiting = tokio::spawn(session.call(1, "never", json!({})).send());
    let mut streaming =
        session.call_with_token(2, "progress", json!({"wait": true}), json!(1)).send().await.events();
    stub.until("both to run", |c| c.running == 2).await;
    assert!(streaming.message().await["params"].is_object());
    assert_eq!(session.delete().send().await.status, 204);
    stub.until("both to stop", |c| c.stopped == 2).await;
    // There is no response to send; the connections are not left hanging.
    assert_eq!(waiting.await.unwrap().text().await, "");
    assert_eq!(streaming.next().await, None);
    assert_eq!(changes.next().await, None);
    settle().await;
    assert_eq!(stub.subscriptions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_session_belongs_to_its_principal() {
    let client = client(&Stub::new());
    let hello = client.post(initialize("2025-11-25", json!({})).to_string()).signed_in("alice").send().await;
    let id = hello.header("mcp-session-id").to_owned();
    let signed = |method: &str| {
        let ask = client.request(method, "/mcp").header("mcp-session-id", &id);
        ask.body(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string())
    };
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(signed(method).signed_in("bob").send().await.status, 404, "{method}");
        assert_eq!(signed(method).send().await.status, 404, "{method}");
    }
    assert_eq!(signed("POST").signed_in("alice").send().await.status, 200);
    assert_eq!(signed("DELETE").signed_in("alice").send().await.status, 204);
}

#[tokio::test(start_paused = true)]
async fn sessions_are_bounded() {
    let client = Client::new(&Stub::new(), Settings { max_sessions: 2, ..Settings::default() });
    let first = Session::open(&client, "2025-11-25").await;
    let second = Session::open(&client, "2025-11-25").await;
    let refused = client.post(initialize("2025-11-25", json!({})).to_string()).send().await;
    assert_eq!(refused.header("retry-after"), "30");
    assert_eq!(refused.header("mcp-session-id"), "-");
    insta::assert_snapshot!(refused.line().await, @r#"503 {"jsonrpc":"2.0","id":0,"error":{"code":-32603,"message":"Too many sessions: the limit of 2 is reached. Try again later"}}"#);
    assert!(first.works().await && second.works().await, "nobody is pushed out");
    first.delete().send().await;
    let third = Session::open(&client, "2025-11-25").await;
    assert!(third.works().await);
    // Sessions that have run out make room at once.
    tokio::time::advance(Settings::default().session_idle).await;
    assert!(Session::open(&client, "2025-11-25").await.works().await);
}

#[tokio::test(start_paused = true)]
async fn sessions_that_nobody_uses_end() {
    let stub = Stub::new();
    let idle = Duration::from_secs(20);
    let client = Client::new(&stub, Settings { session_idle: idle, ..Settings::default() });
    let [unused, used, listening, working] = [(); 4].map(|()| Session::open(&client, "2025-11-25"));
    let (unused, used, listening, working) = tokio::join!(unused, used, listening, working);
    let open = listening.get().send().await.events();
    let running = tokio::spawn(working.call(1, "slow", json!({})).send());
    for _ in 0..4 {
        tokio::time::sleep(idle / 2).await;
        assert!(used.works().await);
    }
    assert!(!unused.works().await);
    // Whoever has just finished something has the full time again.
    drop(open);
    stub.release(1);
    assert_eq!(text(&running.await.unwrap().json().await), "done");
    tokio::time::sleep(idle / 2).await;
    assert!(listening.works().await && working.works().await);
    tokio::time::sleep(idle * 2).await;
    assert!(!listening.works().await && !working.works().await && !used.works().await);
}
