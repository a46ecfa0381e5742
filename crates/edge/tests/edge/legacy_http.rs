//! Legacy clients over HTTP: handshake, session, streams that can be resumed, and clients that have none of these.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_edge::http::Settings;
use tidegate_service::Notice;

use crate::common::*;

fn client(stub: &Stub) -> Client {
    Client::new(stub, Settings::default())
}

async fn session(stub: &Stub, revision: &str) -> Session {
    Session::open(&client(stub), revision).await
}

/// `tools/call` with a progress token.
fn with_token(session: &Session, id: impl Into<Value>, name: &str, arguments: Value, token: Value) -> Ask {
    session.request(id, "tools/call", json!({"name": name, "arguments": arguments, "_meta": {"progressToken": token}}))
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
    insta::assert_snapshot!(answer.line().await, @r#"400 {"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"Unsupported protocol version \"1.0\": this server speaks 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"1.0"}}}"#);
}

#[tokio::test(start_paused = true)]
async fn what_the_call_knows() {
    let client = client(&Stub::new());
    let capabilities = json!({"roots": {"listChanged": true}, "made-up": [1.0]});
    let session = Session::with(&client, "2025-06-18", capabilities).await;
    let answer = with_token(&session, 1, "context", json!({}), json!(0)).header("mcp-param-x", "y").send().await;
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
    let mut streaming = with_token(&session, 2, "progress", json!({"wait": true}), json!(1)).send().await.events();
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
    let hello = client.post(initialize("2025-11-25", json!({})).to_string()).as_subject("alice").send().await;
    let id = hello.header("mcp-session-id").to_owned();
    let signed = |method: &str| {
        let ask = client.request(method, "/mcp").header("mcp-session-id", &id);
        ask.body(json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}).to_string())
    };
    for method in ["POST", "GET", "DELETE"] {
        assert_eq!(signed(method).as_subject("bob").send().await.status, 404, "{method}");
        assert_eq!(signed(method).send().await.status, 404, "{method}");
    }
    assert_eq!(signed("POST").as_subject("alice").send().await.status, 200);
    assert_eq!(signed("DELETE").as_subject("alice").send().await.status, 204);
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

#[tokio::test(start_paused = true)]
async fn the_standalone_stream_tells_of_changes() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.get().send().await.events();
    let primer = events.event().await.unwrap();
    assert_eq!((primer.data.as_str(), primer.id.is_some()), ("", true), "2025-11-25 streams open with an id");
    settle().await;
    stub.tell(&Notice::ToolsChanged);
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    let mut got = vec![events.message().await];
    assert!(events.is_quiet().await, "nobody subscribed to mem:a");

    assert_eq!(session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await.status, 200);
    settle().await;
    assert_eq!(stub.subscriptions(), 1, "the new subscription took the place of the old");
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    stub.tell(&Notice::PromptsChanged);
    got.extend([events.message().await, events.message().await]);

    assert_eq!(session.request(2, "resources/unsubscribe", json!({"uri": "mem:a"})).send().await.status, 200);
    settle().await;
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    stub.tell(&Notice::ResourcesChanged);
    got.push(events.message().await);
    assert!(events.is_quiet().await);
    insta::assert_snapshot!(lines(&got), @r#"
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:a"}}
    {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn nothing_is_lost_while_subscriptions_change() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let mut events = session.get().send().await.events();
    settle().await;
    for n in 0..20 {
        session.request(n, "resources/subscribe", json!({"uri": format!("mem:{n}")})).send().await;
        stub.tell(&Notice::ToolsChanged);
        let got = events.message().await;
        assert_eq!(got["method"], "notifications/tools/list_changed", "{n}");
    }
    settle().await;
    for n in 0..20 {
        stub.tell(&Notice::ResourceUpdated(format!("mem:{n}").into()));
        assert_eq!(events.message().await["params"]["uri"], format!("mem:{n}"));
    }
    assert_eq!(stub.subscriptions(), 1);
}

#[tokio::test(start_paused = true)]
async fn after_a_gap_everything_may_have_changed() {
    let mut all = Vec::new();
    // A client that says where it was has missed as much as one that does not.
    for resume in [false, true] {
        let stub = Stub::new();
        let session = session(&stub, "2025-11-25").await;
        session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
        let mut events = session.get().send().await.events();
        assert!(events.is_quiet().await, "no gap yet");
        stub.tell(&Notice::ToolsChanged);
        events.message().await;
        let last = events.last_id().to_owned();
        drop(events);
        settle().await;
        stub.tell(&Notice::PromptsChanged);

        let again = if resume { session.get_from(&last) } else { session.get() };
        let mut events = again.send().await.events();
        let mut got = Vec::new();
        for _ in 0..4 {
            got.push(events.message().await);
        }
        assert!(events.is_quiet().await);
        all.push(lines(&got));
    }
    assert_eq!(all[0], all[1]);
    insta::assert_snapshot!(all[0], @r#"
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/prompts/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/list_changed"}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"uri":"mem:a"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_new_standalone_stream_takes_the_place_of_the_old() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    // The old one may be stuck: it is not read until the end.
    let mut old = session.get().send().await.events();
    settle().await;
    let mut new = session.get().send().await.events();
    assert!(!new.is_quiet().await, "told of the gap");
    while !new.is_quiet().await {}
    assert_eq!(stub.subscriptions(), 1);
    // Subscriptions made now reach the stream that is open now.
    session.request(1, "resources/subscribe", json!({"uri": "mem:a"})).send().await;
    settle().await;
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    assert_eq!(new.message().await["params"]["uri"], "mem:a");
    stub.tell(&Notice::ToolsChanged);
    assert_eq!(new.message().await["method"], "notifications/tools/list_changed");
    assert!(new.is_quiet().await, "told once");
    assert_eq!(old.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_stream_taken_over_before_it_began() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let waiting = tokio::spawn(session.call(1, "slow", json!({})).send());
    stub.until("the call to run", |c| c.running == 1).await;
    // Nobody has been given this id yet, but it can be guessed.
    let mut stolen = session.get_from("1-0").send().await.events();
    stub.release(1);
    assert_eq!(text(&stolen.message().await), "done");
    assert_eq!(waiting.await.unwrap().text().await, "", "not left waiting");
}

#[tokio::test(start_paused = true)]
async fn a_get_needs_to_accept_events() {
    let session = session(&Stub::new(), "2025-11-25").await;
    let refused = session.get().header("accept", "application/json").send().await;
    insta::assert_snapshot!(refused.line().await, @r#"406 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Not acceptable: a GET needs Accept: text/event-stream"}}"#);
    assert!(session.get().without("accept").send().await.is_stream());
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_is_resumed() {
    for revision in &LEGACY[1..] {
        let stub = Stub::new();
        let session = session(&stub, revision).await;
        // The client's other stream is open all the while.
        let _standalone = session.get().send().await.events();
        let ask = with_token(&session, 1, "progress", json!({"n": 3, "wait": true}), json!("t"));
        let mut events = ask.send().await.events();
        assert_eq!(events.message().await["params"]["progress"], 1);
        let last = events.last_id().to_owned();
        drop(events);
        settle().await;
        stub.release(1);
        settle().await;
        assert_eq!(stub.counts().running, 1, "a disconnect stops nothing");

        let mut events = session.get_from(&last).send().await.events();
        assert_eq!(events.message().await["params"]["progress"], 2);
        assert!(events.is_quiet().await);
        stub.release(2);
        assert_eq!(events.message().await["params"]["progress"], 3);
        assert_eq!(text(&events.message().await), "done");
        assert_eq!(events.next().await, None);
        // And once more, now that all is over.
        let again = session.get_from(&last).send().await.events().rest().await;
        assert_eq!((again.len(), text(&again[2])), (3, "done"), "{revision}");
        let nothing = session.get_from(events.last_id()).send().await.events().rest().await;
        assert_eq!(nothing, [json!(null); 0]);
    }
}

#[tokio::test(start_paused = true)]
async fn only_what_is_kept_is_resumed() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { kept_bytes: 300, ..Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let ask = with_token(&session, 1, "progress", json!({"n": 20, "wait": true}), json!("t"));
    let mut events = ask.send().await.events();
    events.message().await;
    let first = events.last_id().to_owned();
    for _ in 0..19 {
        stub.release(1);
        events.message().await;
    }
    let last = events.last_id().to_owned();
    let mut table = String::new();
    for id in [&*first, "9-9", "1", "a-b", "-", "1-99999", "99999999999999999999999-1", ""] {
        table += &format!("{id:?}: {}\n", session.get_from(id).send().await.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    "1-1": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "9-9": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "1": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "a-b": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "-": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "1-99999": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "99999999999999999999999-1": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "": 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: nothing is kept for this Last-Event-ID, or no longer"}}
    "#);
    // Nor is what belongs to another session.
    let other = Session::open(&client, "2025-11-25").await;
    assert_eq!(other.get_from(&last).send().await.status, 400);
    let mut rest = session.get_from(&last).send().await.events();
    stub.release(1);
    assert_eq!(text(&rest.message().await), "done");
}

#[tokio::test(start_paused = true)]
async fn a_tool_may_close_the_connection_and_go_on() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let _standalone = session.get().send().await.events();
    let mut events = session.call(1, "close_stream", json!({})).send().await.events();
    let primer = events.event().await.unwrap();
    assert_eq!((primer.data.as_str(), primer.id.is_some()), ("", true));
    assert_eq!(events.retry(), Some(1000));
    assert_eq!(events.event().await, None, "closed before the response");
    let last = events.last_id().to_owned();
    assert_eq!(stub.counts().running, 1);

    let mut resumed = session.get_from(&last).send().await.events();
    assert!(resumed.is_quiet().await, "and not closed again");
    stub.release(1);
    assert_eq!(text(&resumed.message().await), "after the break");
    assert_eq!(resumed.next().await, None);
}

#[tokio::test(start_paused = true)]
async fn a_connection_closed_while_nobody_reads_is_not_closed_again() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let arguments = json!({"n": 1, "wait": true, "close": true});
    let mut events = with_token(&session, 1, "progress", arguments, json!("t")).send().await.events();
    events.message().await;
    let last = events.last_id().to_owned();
    drop(events);
    // The tool closes the stream now, which nobody reads.
    stub.release(1);
    settle().await;
    let mut resumed = session.get_from(&last).send().await.events();
    assert!(resumed.is_quiet().await);
    stub.release(1);
    assert_eq!(text(&resumed.message().await), "done");
}

#[tokio::test(start_paused = true)]
async fn older_clients_could_not_come_back_and_are_not_sent_away() {
    for revision in &LEGACY[..3] {
        let stub = Stub::new();
        stub.release(1);
        let answer = session(&stub, revision).await.call(1, "close_stream", json!({})).send().await;
        assert_eq!(text(&answer.json().await), "after the break", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_2025_11_25_gets_events_without_content() {
    for revision in LEGACY {
        let stub = Stub::new();
        stub.release(1);
        let session = session(&stub, revision).await;
        let mut events = with_token(&session, 1, "progress", json!({}), json!(1)).send().await.events();
        let first = events.event().await.unwrap();
        assert_eq!(first.data.is_empty(), revision == "2025-11-25", "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn batches() {
    let stub = Stub::new();
    let batch = json!([
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "x"}}},
        {"jsonrpc": "2.0", "id": null, "method": "ping"},
        7,
        {"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": {}},
    ]);
    let mut table = String::new();
    for revision in LEGACY {
        let session = session(&stub, revision).await;
        table += &format!("{revision}: {}\n", session.post(&batch).send().await.line().await);
        assert!(session.works().await);
    }
    insta::assert_snapshot!(table, @r#"
    2024-11-05: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: revision 2024-11-05 has no batches; send one message"}}
    2025-03-26: 200 [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not null"}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 1"}},{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"content":[{"text":"x","type":"text"}]}},{"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Invalid request: this session is initialized already"}}]
    2025-06-18: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: revision 2025-06-18 has no batches; send one message"}}
    2025-11-25: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: revision 2025-11-25 has no batches; send one message"}}
    "#);
    // Nothing in it that wants an answer.
    let session = session(&stub, "2025-03-26").await;
    let told = json!([{"jsonrpc": "2.0", "method": "a"}, {"jsonrpc": "2.0", "id": 1, "result": {}}]);
    assert_eq!(session.post(&told).send().await.line().await, "202 ");
}

#[tokio::test(start_paused = true)]
async fn a_batch_may_stream() {
    let stub = Stub::new();
    let session = session(&stub, "2025-03-26").await;
    let call = |id: u64, name: &str| {
        let params = json!({"name": name, "arguments": {}, "_meta": {"progressToken": id}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let batch = json!([call(1, "progress"), call(2, "slow"), call(3, "echo")]);
    let mut events = session.post(&batch).send().await.events();
    assert_eq!(events.message().await["params"]["progressToken"], 1);
    stub.release(1);
    let mut ids: Vec<_> = events.rest().await.iter().map(|m| m["id"].clone()).collect();
    ids.sort_by_key(Value::to_string);
    assert_eq!(ids, [json!(1), json!(2), json!(3)]);
}

#[tokio::test(start_paused = true)]
async fn no_response_of_a_batch_is_dropped() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { kept_bytes: 1000, ..Settings::default() });
    let session = Session::open(&client, "2025-03-26").await;
    let call = |id: u64, name: &str| {
        let params = json!({"name": name, "arguments": {"n": 5000}, "_meta": {"progressToken": id}});
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})
    };
    let big = json!([call(1, "big"), call(2, "big"), call(3, "big"), call(4, "big")]);
    let answers = session.post(&big).send().await.json().await;
    assert_eq!(answers.as_array().unwrap().len(), 4);
    let mixed = json!([call(1, "progress"), call(2, "big"), call(3, "big"), call(4, "big")]);
    let got = session.post(&mixed).send().await.text().await;
    assert_eq!(got.matches(r#""result""#).count(), 4);
}

#[tokio::test(start_paused = true)]
async fn cancellation_stops_the_work_and_there_is_no_response() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    for name in ["never", "polite"] {
        let before = stub.counts();
        let waiting = tokio::spawn(session.call(1, name, json!({})).send());
        let ask = with_token(&session, 2, "progress", json!({"wait": true}), json!(1));
        let mut streaming = ask.send().await.events();
        streaming.message().await;
        stub.until("both to run", |c| c.running == 2).await;
        // Neither an unknown request nor nonsense does anything.
        for params in [json!({"requestId": 9}), json!({"requestId": null}), json!({})] {
            session.notify("notifications/cancelled", params).await;
        }
        settle().await;
        assert_eq!(stub.counts().running, 2);
        session.notify("notifications/cancelled", json!({"requestId": 1, "reason": "bored"})).await;
        session.notify("notifications/cancelled", json!({"requestId": 2})).await;
        stub.until("both to stop", |c| c.running == 0).await;
        assert_eq!(stub.counts().finished + stub.counts().stopped, before.finished + before.stopped + 2);
        assert_eq!(waiting.await.unwrap().text().await, "", "{name}");
        assert_eq!(streaming.next().await, None);
    }
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_id_is_free_again_and_stays_its_own() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let first = tokio::spawn(session.call(1, "never", json!({})).send());
    stub.until("the first to run", |c| c.running == 1).await;
    session.notify("notifications/cancelled", json!({"requestId": 1})).await;
    // The second begins before the first has noticed that it is cancelled.
    let second = tokio::spawn(session.call(1, "never", json!({})).send());
    assert_eq!(first.await.unwrap().text().await, "");
    stub.until("the second to run", |c| c.running == 1 && c.stopped == 1).await;
    let third = session.call(1, "echo", json!({})).send().await.json().await;
    assert_eq!(code(&third).0, -32600, "the second is still in flight: {third}");
    session.notify("notifications/cancelled", json!({"requestId": 1})).await;
    assert_eq!(second.await.unwrap().text().await, "");
}

#[tokio::test(start_paused = true)]
async fn empty_results_are_empty() {
    let stub = Stub::new();
    for revision in LEGACY {
        let session = session(&stub, revision).await;
        for (method, params) in [
            ("ping", json!({})),
            ("logging/setLevel", json!({"level": "debug"})),
            ("resources/subscribe", json!({"uri": "mem:a"})),
            ("resources/unsubscribe", json!({"uri": "mem:a"})),
        ] {
            let answer = session.request(1, method, params).send().await.line().await;
            assert_eq!(answer, r#"200 {"jsonrpc":"2.0","id":1,"result":{}}"#, "{revision} {method}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_log_level_is_the_sessions() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let logged = async || session.call(1, "log", json!({})).send().await.events().rest().await.len() - 1;
    assert_eq!(logged().await, 2, "info until it is set");
    for (level, want) in [("debug", 3), ("error", 1)] {
        session.request(1, "logging/setLevel", json!({"level": level})).send().await;
        assert_eq!(logged().await, want, "{level}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_is_told_as_the_revision_knows_it() {
    let stub = Stub::new();
    let mut table = String::new();
    for revision in LEGACY {
        let ask = with_token(&session(&stub, revision).await, 1, "progress", json!({}), json!("a b"));
        table += &format!("{revision}: {}\n", ask.send().await.events().message().await);
    }
    insta::assert_snapshot!(table, @r#"
    2024-11-05: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progress":1,"progressToken":"a b","total":1}}
    2025-03-26: {"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"step 1","progress":1,"progressToken":"a b","total":1}}
    2025-06-18: {"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"step 1","progress":1,"progressToken":"a b","total":1}}
    2025-11-25: {"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"step 1","progress":1,"progressToken":"a b","total":1}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn requests_of_one_session_run_side_by_side() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let slow: Vec<_> = (0..40).map(|n| tokio::spawn(session.call(n, "slow", json!({"text": n.to_string()})).send())).collect();
    stub.until("all to run", |c| c.running == 40).await;
    assert!(session.works().await);
    stub.release(40);
    for (n, answer) in slow.into_iter().enumerate() {
        assert_eq!(answer.await.unwrap().json().await["id"], n);
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_reads_no_streams_gets_its_response() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    for name in ["progress", "log", "echo", "close_stream"] {
        stub.release(1);
        let ask = with_token(&session, 1, name, json!({}), json!(1)).header("accept", "application/json");
        let answer = ask.send().await;
        assert_eq!(answer.header("content-type"), "application/json", "{name}");
        assert!(!text(&answer.json().await).is_empty(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn bare_clients() {
    let stub = Stub::new();
    let client = client(&stub);
    let call = |name: &str, arguments: Value| {
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {
            "name": name, "arguments": arguments, "_meta": {"progressToken": 1}}})
    };
    let mut table = String::new();
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}),
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}),
        call("context", json!({})),
        call("progress", json!({})),
        call("log", json!({})),
        call("ask", json!({})),
        call("fly", json!({})),
        json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover"}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 1, "result": {}}),
        json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}, {"jsonrpc": "2.0", "method": "x"}]),
    ] {
        let mut answers = Vec::new();
        for accept in ["*/*", "application/json", "application/json, text/event-stream"] {
            let answer = client.post(message.to_string()).header("accept", accept).send().await;
            assert_eq!(answer.header("mcp-session-id"), "-");
            answers.push(answer.line().await);
        }
        assert!(answers.iter().all(|a| *a == answers[0]), "{answers:?}");
        table += &format!("{}\n", answers[0]);
    }
    insta::assert_snapshot!(table, @r#"
    200 {"jsonrpc":"2.0","id":1,"result":{}}
    200 {"jsonrpc":"2.0","id":1,"result":{"tools":[{"name":"echo","inputSchema":{"type":"object"},"annotations":{"readOnlyHint":true,"title":"Echo"}}]}}
    200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"{\"capabilities\":{},\"clientInfo\":null,\"headers\":null,\"logLevel\":\"info\",\"progressToken\":1,\"revision\":\"2025-03-26\",\"subject\":null}","type":"text"}]}}
    200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"done","type":"text"}]}}
    200 {"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"done","type":"text"}]}}
    200 {"jsonrpc":"2.0","id":1,"error":{"code":-32021,"message":"The call asks the client something, which needs a session and Accept: text/event-stream","data":{"requiredCapabilities":{"elicitation":{"form":{}}}}}}
    200 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: fly"}}
    200 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: server/discover"}}
    202 
    202 
    200 [{"jsonrpc":"2.0","id":1,"result":{}}]
    "#);
    // Equal ids are normal here: nobody knows whose they are.
    let slow = call("slow", json!({})).to_string();
    let both = [(); 2].map(|()| tokio::spawn(client.post(&slow).send()));
    stub.until("both to run", |c| c.running == 2).await;
    stub.release(2);
    for answer in both {
        assert_eq!(text(&answer.await.unwrap().json().await), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn bare_clients_can_be_refused() {
    let client = Client::new(&Stub::new(), Settings { bare: false, ..Settings::default() });
    let ask = client.post(r#"{"jsonrpc":"2.0","id":1,"method":"tools/list"}"#);
    insta::assert_snapshot!(ask.send().await.line().await, @r#"400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}"#);
    assert!(Session::open(&client, "2025-03-26").await.works().await);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_closes_its_outbox_is_still_answered() {
    let stub = Stub::new();
    let session = session(&stub, "2025-11-25").await;
    let running = tokio::spawn(session.call(1, "close_outbox", json!({})).send());
    stub.until("the tool to run", |c| c.running == 1).await;
    stub.release(1);
    assert_eq!(text(&running.await.unwrap().json().await), "done");
}
