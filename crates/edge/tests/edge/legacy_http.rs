//! Requests of legacy clients over HTTP: batches, cancellation, progress and logs, and clients without a session.

use serde_json::{Value, json};
use tidegate_edge::http::Settings;

use crate::common::*;

fn client(stub: &Stub) -> Client {
    Client::new(stub, Settings::default())
}

async fn session(stub: &Stub, revision: &str) -> Session {
    Session::open(&client(stub), revision).await
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
    ]);
    let mut table = String::new();
    for revision in LEGACY {
        let session = session(&stub, revision).await;
        table += &format!("{revision}: {}\n", session.post(&batch).send().await.line().await);
        assert!(session.works().await);
    }
    insta::assert_snapshot!(table, @r#"
    2024-11-05: 400 {"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: revision 2024-11-05 has no batches; send one message"}}
    2025-03-26: 200 [{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not null"}},{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 1"}},{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"content":[{"text":"x","type":"text"}]}}]
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
        let ask = session.call_with_token(2, "progress", json!({"wait": true}), json!(1));
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
        let ask = session(&stub, revision).await.call_with_token(1, "progress", json!({}), json!("a b"));
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
    let slow: Vec<_> = (0..40)
        .map(|n| tokio::spawn(session.call(n, "slow", json!({"text": n.to_string()})).send()))
        .collect();
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
        let ask = session.call_with_token(1, name, json!({}), json!(1)).header("accept", "application/json");
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
