//! Modern requests over HTTP: JSON when nothing streams, an event stream when something does.

use serde_json::{Value, json};
use tidegate_edge::Eras;
use tidegate_edge::http::Settings;
use tidegate_service::Notice;

use crate::common::*;

fn client(stub: &Stub) -> Client {
    Client::new(stub, Settings::default())
}

/// `tools/call` with more `_meta` than it needs.
fn call(name: &str, arguments: Value, meta: Value) -> Value {
    modern(1, "tools/call", json!({"name": name, "arguments": arguments, "_meta": meta}))
}

fn listen(id: impl Into<Value>, filter: Value) -> Value {
    modern(id, "subscriptions/listen", json!({"notifications": filter}))
}

fn level(name: &str) -> Value {
    json!({"io.modelcontextprotocol/logLevel": name})
}

#[tokio::test(start_paused = true)]
async fn json_when_nothing_streams() {
    let client = client(&Stub::new());
    for (name, meta) in [
        ("echo", json!({})),
        ("echo", json!({"progressToken": 1})),
        ("progress", json!({})),
        ("log", json!({})),
        ("log", level("emergency")),
    ] {
        let answer = client.modern(&call(name, json!({}), meta)).send().await;
        assert_eq!((answer.status, answer.header("content-type")), (200, "application/json"), "{name}");
        assert_eq!(answer.header("mcp-session-id"), "-");
        assert_eq!(answer.json().await["result"]["resultType"], "complete", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn ids_come_back_as_they_went() {
    let client = client(&Stub::new());
    for id in ["0", "-7", "18446744073709551616", r#""""#, r#""\u0061/b""#, r#""1""#] {
        let body = modern("?", "tools/call", json!({"name": "echo"})).to_string().replace(r#""?""#, id);
        let ask = client.modern(&modern(1, "tools/call", json!({"name": "echo"})));
        let text = ask.body(body).send().await.text().await;
        assert!(text.starts_with(&format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"#)), "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn progress_makes_a_stream() {
    let client = client(&Stub::new());
    // 0 is a token like any other.
    let answer = client.modern(&call("progress", json!({"n": 2}), json!({"progressToken": 0}))).send().await;
    let headers = ["content-type", "cache-control", "x-accel-buffering"].map(|h| answer.header(h).to_owned());
    assert_eq!(headers, ["text/event-stream", "no-cache", "no"]);
    insta::assert_snapshot!(answer.text().await, @r#"
    data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":1,"total":2,"message":"step 1"}}

    data: {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":0,"progress":2,"total":2,"message":"step 2"}}

    data: {"jsonrpc":"2.0","id":1,"result":{"resultType":"complete","content":[{"text":"done","type":"text"}]}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn logs_only_at_the_level_that_was_asked_for() {
    let client = client(&Stub::new());
    for (least, want) in [("debug", 3), ("info", 2), ("warning", 1), ("error", 1)] {
        let mut got = client.modern(&call("log", json!({}), level(least))).send().await.events().rest().await;
        assert_eq!(text(&got.pop().unwrap()), "done");
        assert_eq!(got.len(), want, "{least}");
        assert!(got.iter().all(|m| m["method"] == "notifications/message"), "{least}");
    }
}

#[tokio::test(start_paused = true)]
async fn notifications_do_not_wait_for_the_response() {
    let stub = Stub::new();
    let message = call("progress", json!({"n": 2, "wait": true}), json!({"progressToken": "t"}));
    let mut events = client(&stub).modern(&message).send().await.events();
    for n in 1..=2 {
        assert_eq!(events.message().await["params"]["progress"], n);
        assert!(events.is_quiet().await, "{n}");
        stub.release(1);
    }
    assert_eq!(text(&events.message().await), "done");
    assert_eq!(events.next().await, None, "the response ends the stream");
}

#[tokio::test(start_paused = true)]
async fn a_quiet_stream_is_kept_alive() {
    let stub = Stub::new();
    let message = call("progress", json!({"wait": true}), json!({"progressToken": "t"}));
    let mut events = client(&stub).modern(&message).send().await.events();
    events.raw().await;
    for _ in 0..3 {
        let start = tokio::time::Instant::now();
        assert_eq!(events.raw().await, ": \n\n");
        assert_eq!(start.elapsed().as_secs(), 15);
    }
    stub.release(1);
    assert_eq!(text(&events.message().await), "done");
}

#[tokio::test(start_paused = true)]
async fn errors_decide_the_status_unless_something_went_out_before() {
    let client = client(&Stub::new());
    let meta = json!({"progressToken": 1, "io.modelcontextprotocol/logLevel": "debug"});
    let answer = client.modern(&call("needs_sampling", json!({}), meta.clone())).send().await;
    assert_eq!(answer.status, 400);
    assert_eq!(answer.json().await["error"]["data"], json!({"requiredCapabilities": {"sampling": {}}}));
    let answer = client.modern(&call("progress_then_fail", json!({}), meta)).send().await;
    assert_eq!(answer.status, 200);
    let got = answer.events().rest().await;
    assert_eq!((got.len(), code(&got[1])), (2, (-32021, json!(1))));
}

#[tokio::test(start_paused = true)]
async fn who_calls_too_often_is_told_when_to_come_back() {
    let client = client(&Stub::new());
    let answer = client.modern(&call("busy", json!({}), json!({}))).send().await;
    assert_eq!((answer.status, answer.header("retry-after")), (429, "2"), "not too early");
    assert_eq!(answer.json().await["error"]["code"], -32603);
    for revision in LEGACY {
        let session = Session::open(&client, revision).await;
        let answer = session.call(1, "busy", json!({})).send().await;
        assert_eq!(answer.status, 200, "{revision}");
        assert!(answer.text().await.contains("-32603"), "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_the_call_knows() {
    let client = client(&Stub::new());
    let meta = json!({
        "io.modelcontextprotocol/clientCapabilities": {"roots": {}},
        "io.modelcontextprotocol/logLevel": "notice",
        "progressToken": "t",
    });
    let ask = client.modern(&call("context", json!({}), meta)).signed_in("alice");
    let ask = ask.header("mcp-param-region", "us-west1").header("mcp-paramount", "no");
    insta::assert_snapshot!(text(&ask.send().await.json().await), @r#"{"capabilities":{"roots":{}},"clientInfo":{"name":"test","version":"1"},"headers":["mcp-param-region=us-west1"],"logLevel":"notice","progressToken":"t","revision":"2026-07-28","subject":"alice"}"#);
}

#[tokio::test(start_paused = true)]
async fn questions_are_results() {
    let client = client(&Stub::new());
    let arguments = json!({"ask": ["form", "sample", "roots"]});
    let asked = client.ask("tools/call", json!({"name": "ask", "arguments": arguments})).await;
    insta::assert_snapshot!(asked["result"], @r#"{"inputRequests":{"form1":{"method":"elicitation/create","params":{"message":"Name?","requestedSchema":{"properties":{"name":{"type":"string"}},"type":"object"}}},"roots1":{"method":"roots/list","params":{}},"sample1":{"method":"sampling/createMessage","params":{"maxTokens":9,"messages":[{"content":{"text":"Hi","type":"text"},"role":"user"}]}}},"requestState":"round 1","resultType":"input_required"}"#);
    let again = json!({
        "name": "ask", "arguments": arguments, "requestState": asked["result"]["requestState"],
        "inputResponses": {"form1": {"action": "accept", "content": {"name": "Alice"}}},
    });
    let answered = client.ask("tools/call", again).await;
    insta::assert_snapshot!(text(&answered), @r#"{"answers":{"form1":{"action":"accept","content":{"name":"Alice"}}},"state":"round 1"}"#);
}

#[tokio::test(start_paused = true)]
async fn a_task_outlives_its_call() {
    for meta in [json!({}), json!({"progressToken": 1})] {
        let stub = Stub::new();
        let message = call("task", json!({"announce": true}), meta);
        let body = client(&stub).modern(&message).send().await.text().await;
        assert!(body.contains(r#""resultType":"task""#), "{body}");
        settle().await;
        assert!(!stub.task_was_cut_off(), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn closing_the_stream_early_means_nothing_here() {
    let stub = Stub::new();
    stub.release(2);
    for meta in [json!({}), json!({"progressToken": 1})] {
        let body = client(&stub).modern(&call("close_stream", json!({}), meta)).send().await.text().await;
        assert!(body.contains("after the break"), "{body}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions() {
    let stub = Stub::new();
    let client = client(&stub);
    let filter = json!({"toolsListChanged": true, "resourceSubscriptions": ["mem:a"], "logMessages": true});
    let mut events = client.modern(&listen("s", filter)).send().await.events();
    let ack = events.message().await;
    assert_eq!(stub.subscriptions(), 1);
    // What was not asked for does not come.
    stub.tell(&Notice::PromptsChanged);
    stub.tell(&Notice::ResourceUpdated("mem:b".into()));
    stub.tell(&Notice::ToolsChanged);
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    let told = [ack, events.message().await, events.message().await];
    assert_eq!(events.raw().await, ": \n\n", "kept alive");
    stub.end_subscriptions();
    let end = events.message().await;
    assert_eq!(events.next().await, None, "the stream ends with the subscription");
    insta::assert_snapshot!(lines(&[&told[..], &[end]].concat()), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"notifications":{"resourceSubscriptions":["mem:a"],"toolsListChanged":true}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"uri":"mem:a"}}
    {"id":"s","jsonrpc":"2.0","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"},"resultType":"complete"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn several_subscriptions_of_one_id() {
    let stub = Stub::new();
    let client = client(&stub);
    let mut both = Vec::new();
    for _ in 0..2 {
        both.push(client.modern(&listen(5, json!({"toolsListChanged": true}))).send().await.events());
    }
    stub.tell(&Notice::ToolsChanged);
    for events in &mut both {
        assert_eq!(events.message().await["method"], "notifications/subscriptions/acknowledged");
        assert_eq!(events.message().await["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
    }
    assert_eq!(stub.subscriptions(), 2);
    drop(both);
    assert_eq!(stub.subscriptions(), 0, "who goes away has unsubscribed");
}

#[tokio::test(start_paused = true)]
async fn a_subscription_needs_a_stream() {
    let stub = Stub::new();
    let ask = client(&stub).modern(&listen(1, json!({}))).header("accept", "application/json");
    insta::assert_snapshot!(ask.send().await.line().await, @r#"406 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Not acceptable: a subscription needs Accept: text/event-stream"}}"#);
    assert_eq!(stub.subscriptions(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_subscription_with_a_log_level_is_a_subscription() {
    let stub = Stub::new();
    let message = modern(1, "subscriptions/listen", json!({"notifications": {}, "_meta": level("debug")}));
    let mut events = client(&stub).modern(&message).send().await.events();
    assert_eq!(events.message().await["method"], "notifications/subscriptions/acknowledged");
    assert!(events.is_quiet().await, "logs do not belong here");
}

#[tokio::test(start_paused = true)]
async fn accept_decides_what_may_stream() {
    let client = client(&Stub::new());
    let message = call("progress", json!({}), json!({"progressToken": 1}));
    for (accept, streams) in [
        (None, true),
        (Some("*/*"), true),
        (Some("application/json, text/event-stream"), true),
        (Some("TEXT/EVENT-STREAM"), true),
        (Some("text/event-stream;q=0.5,application/json;q=0.9"), true),
        (Some("text/*"), true),
        (Some("application/json"), false),
        (Some("application/*"), false),
        (Some("text/html"), false),
    ] {
        let ask = client.modern(&message).without("accept");
        let ask = match accept {
            Some(accept) => ask.header("accept", accept),
            None => ask,
        };
        let answer = ask.send().await;
        assert_eq!((answer.status, answer.is_stream()), (200, streams), "{accept:?}");
        assert!(answer.text().await.contains(r#""text":"done""#), "{accept:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn only_json_is_taken() {
    let client = client(&Stub::new());
    let message = modern(1, "tools/list", json!({}));
    for (kind, status) in [
        ("application/json", 200),
        ("Application/JSON; charset=utf-8", 200),
        ("text/plain", 415),
        ("application/jsonp", 415),
        ("application/x-www-form-urlencoded", 415),
        ("", 415),
    ] {
        let answer = client.modern(&message).header("content-type", kind).send().await;
        assert_eq!(answer.status, status, "{kind:?}");
    }
    let answer = client.modern(&message).without("content-type").send().await;
    insta::assert_snapshot!(answer.line().await, @r#"415 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Unsupported media type: send the message as Content-Type: application/json"}}"#);
}

#[tokio::test(start_paused = true)]
async fn methods_that_are_not_there() {
    let stub = Stub::new();
    let modern_only = Client::new(&stub, Settings::default().eras(Eras::Modern));
    let both = client(&stub);
    for (client, method, allow) in [
        (&modern_only, "GET", "POST"),
        (&modern_only, "DELETE", "POST"),
        (&modern_only, "PUT", "POST"),
        (&both, "PUT", "GET, POST, DELETE"),
        (&both, "HEAD", "GET, POST, DELETE"),
        (&both, "OPTIONS", "GET, POST, DELETE"),
    ] {
        let answer = client.request(method, "/mcp").send().await;
        assert_eq!((answer.status, answer.header("allow")), (405, allow), "{method}");
    }
    // A modern client that opens a stream the old way is told that there is none.
    for method in ["GET", "DELETE"] {
        let ask = both.request(method, "/mcp").header("mcp-protocol-version", "2026-07-28");
        let answer = ask.header("accept", "text/event-stream").send().await;
        assert_eq!((answer.status, answer.header("allow")), (405, "POST"), "{method}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_is_no_request() {
    let stub = Stub::new();
    let mut table = String::new();
    for (name, message) in [
        (
            "a notification",
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}),
        ),
        ("a response", json!({"jsonrpc": "2.0", "id": 1, "result": {}})),
        ("an error", json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": "m"}})),
        ("a batch", json!([modern(1, "tools/list", json!({}))])),
    ] {
        let mut lines = Vec::new();
        for eras in [Eras::Modern, Eras::Both] {
            let client = Client::new(&stub, Settings::default().eras(eras));
            let ask = client.post(message.to_string()).header("mcp-protocol-version", "2026-07-28");
            lines.push(ask.send().await.line().await);
        }
        assert_eq!(lines[0], lines[1], "{name}");
        table += &format!("{name}: {}\n", lines[0]);
    }
    insta::assert_snapshot!(table, @r#"
    a notification: 202 
    a response: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: the body must be a single JSON-RPC request or notification"}}
    an error: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: the body must be a single JSON-RPC request or notification"}}
    a batch: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: the body must be a single JSON-RPC request or notification"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_and_legacy_clients() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default().eras(Eras::Modern));
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": "2025-11-25"}});
    let list = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let mut table = String::new();
    for (name, ask) in [
        ("initialize", client.post(hello.to_string())),
        (
            "initialize with a version",
            client.post(hello.to_string()).header("mcp-protocol-version", "2025-11-25"),
        ),
        ("a bare request", client.post(list.to_string())),
        ("a request of a session", client.post(list.to_string()).header("mcp-session-id", "s")),
        ("a notification", client.post(told.to_string())),
        (
            "no version header",
            client.modern(&modern(1, "tools/list", json!({}))).without("mcp-protocol-version"),
        ),
    ] {
        let answer = ask.send().await;
        assert_eq!(answer.header("mcp-session-id"), "-");
        table += &format!("{name}: {}\n", answer.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    initialize: 400 {"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"Unsupported protocol version \"2025-11-25\": this server supports 2026-07-28","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}
    initialize with a version: 400 {"jsonrpc":"2.0","id":0,"error":{"code":-32022,"message":"Unsupported protocol version \"2025-11-25\": this server supports 2026-07-28","data":{"supported":["2026-07-28"],"requested":"2025-11-25"}}}
    a bare request: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or of a wrong type"}}
    a request of a session: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or of a wrong type"}}
    a notification: 202 
    no version header: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the MCP-Protocol-Version header is missing"}}
    "#);
    assert_eq!(stub.calls(), [""; 0], "none of them got through");
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_and_modern_clients() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings::default().eras(Eras::Legacy));
    let discover = modern(1, "server/discover", json!({}));
    let mut table = String::new();
    for (name, ask) in [
        ("a modern request", client.modern(&discover)),
        ("without headers", client.post(discover.to_string())),
        (
            "a notification",
            client.post(r#"{"jsonrpc":"2.0","method":"x"}"#).header("mcp-protocol-version", "2026-07-28"),
        ),
    ] {
        table += &format!("{name}: {}\n", ask.send().await.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    a modern request: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Bad request: unsupported protocol version \"2026-07-28\"; supported: 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"}}
    without headers: 200 {"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"Method not found: server/discover"}}
    a notification: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Bad request: unsupported protocol version \"2026-07-28\"; supported: 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05"}}
    "#);
    let session = Session::open(&client, "2025-11-25").await;
    assert!(session.works().await);
}

#[tokio::test(start_paused = true)]
async fn a_path_of_its_own() {
    let client = Client::new(&Stub::new(), Settings::default().path("/api/tools"));
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    for (path, want) in [("/api/tools", 200), ("/mcp", 404), ("/api/tools/x", 404)] {
        assert_eq!(client.request("POST", path).body(ping).send().await.status, want, "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn large_results_pass() {
    let answer =
        client(&Stub::new()).ask("tools/call", json!({"name": "big", "arguments": {"n": 3 << 20}})).await;
    assert_eq!(text(&answer).len(), 3 << 20);
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_closes_its_outbox_is_still_answered() {
    let stub = Stub::new();
    for meta in [json!({}), json!({"progressToken": 1})] {
        let running = tokio::spawn(client(&stub).modern(&call("close_outbox", json!({}), meta)).send());
        stub.until("the tool to run", |c| c.running == 1).await;
        stub.release(1);
        assert!(running.await.unwrap().text().await.contains("done"));
    }
}
