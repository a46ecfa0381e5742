//! Bad input gets the right JSON-RPC error and status, and the connection goes on.

use serde_json::{Value, json};
use tidegate_edge::{EdgeSettings, http, stdio};
use tidegate_protocol::Limits;

use crate::common::*;

/// Messages that are wrong before anybody asks which era they belong to.
fn malformed() -> Vec<(&'static str, Vec<u8>)> {
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":{}1{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    let bomb = "[".repeat(900);
    let long =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"a":"{}"}}}}"#, "x".repeat(1000));
    let text: &[(&str, &str)] = &[
        ("broken off", r#"{"jsonrpc":"2.0","id":1,"#),
        ("not JSON", "hello"),
        ("two messages", r#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#),
        ("a number", "42"),
        ("a string", r#""ping""#),
        ("null", "null"),
        ("an empty batch", "[]"),
        ("no jsonrpc", r#"{"id":1,"method":"ping"}"#),
        ("jsonrpc 1.0", r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#),
        ("no method", r#"{"jsonrpc":"2.0","id":1}"#),
        ("a method of a wrong type", r#"{"jsonrpc":"2.0","id":1,"method":{}}"#),
        ("method and result", r#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#),
        ("id null", r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#),
        ("a fraction as id", r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#),
        ("a boolean as id", r#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#),
        ("an object as id", r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#),
        ("params as a list", r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}"#),
        ("_meta as a string", r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":"x"}}"#),
        ("a key twice in the envelope", r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}"#),
        (
            "a key twice in params",
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}"#,
        ),
        (
            "a key twice in _meta",
            r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"a":1,"\u0061":2}}}"#,
        ),
        ("nested too deep", &deep),
        ("a nesting bomb", &bomb),
        ("over the limit", &long),
    ];
    let mut all: Vec<_> = text.iter().map(|(name, text)| (*name, text.as_bytes().to_vec())).collect();
    all.push(("not UTF-8", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}".to_vec()));
    all
}

/// 1000 bytes to a message.
fn tight() -> EdgeSettings {
    EdgeSettings { limits: Limits { max_bytes: 1000, ..Limits::default() }, ..EdgeSettings::default() }
}

fn tight_http() -> http::Settings {
    http::Settings { edge: tight(), ..http::Settings::default() }
}

fn tight_stdio() -> stdio::Settings {
    stdio::Settings { edge: tight(), ..stdio::Settings::default() }
}

fn ping() -> Value {
    json!({"jsonrpc": "2.0", "id": "after", "method": "ping"})
}

/// What a stdio connection answers to each malformed line. A ping after each shows that the connection goes on.
async fn over_stdio(mut pipe: Pipe) -> String {
    let mut table = String::new();
    for (name, mut line) in malformed() {
        line.push(b'\n');
        pipe.write(line).await;
        table += &format!("{name}: {}\n", pipe.line().await.unwrap());
        assert_eq!(pipe.ask(&ping()).await["id"], "after", "{name}");
    }
    let (rest, ended) = pipe.finish().await;
    assert_eq!((rest, ended), (vec![], stdio::Ended::Eof));
    table
}

/// What each malformed body is answered over HTTP, whatever the other headers say.
async fn over_http(signed: impl Fn(&[u8]) -> (Answering, Answering)) -> String {
    let mut table = String::new();
    for (name, body) in malformed() {
        let (answered, after) = signed(&body);
        table += &format!("{name}: {}\n", answered.await.line().await);
        assert_eq!(after.await.status, 200, "{name}");
    }
    table
}

type Answering = std::pin::Pin<Box<dyn Future<Output = Answer>>>;

#[tokio::test(start_paused = true)]
async fn malformed_lines() {
    let fresh = over_stdio(Pipe::open(&Stub::new(), tight_stdio())).await;
    insta::assert_snapshot!(fresh, @r#"
    broken off: {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"Parse error: the text ends in the middle of a value"}}
    not JSON: {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: unexpected character at byte 0"}}
    two messages: {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: unexpected text after the value at byte 41"}}
    a number: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 2"}}
    a string: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 6"}}
    null: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 4"}}
    an empty batch: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: the batch is empty"}}
    no jsonrpc: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}
    jsonrpc 1.0: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}
    no method: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"method\" is missing"}}
    a method of a wrong type: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"method\" must be a string"}}
    method and result: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: only one of \"method\", \"result\" and \"error\" may be present"}}
    id null: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not null"}}
    a fraction as id: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not a fraction"}}
    a boolean as id: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not a boolean"}}
    an object as id: {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not an object"}}
    params as a list: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: \"params\" must be an object"}}
    _meta as a string: {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: \"_meta\" must be an object"}}
    a key twice in the envelope: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: duplicate key \"method\""}}
    a key twice in params: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: duplicate key \"name\""}}
    a key twice in _meta: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: duplicate key \"a\""}}
    nested too deep: {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"Parse error: nested deeper than 100 levels"}}
    a nesting bomb: {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: nested deeper than 100 levels"}}
    over the limit: {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Message too large: a line may have 1000 bytes; send it in smaller parts, or let the server take larger ones"}}
    not UTF-8: {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: the message is not UTF-8 (invalid utf-8 sequence of 1 bytes from index 34)"}}
    "#);
    let newest = over_stdio(Pipe::legacy(&Stub::new(), tight_stdio(), "2025-11-25").await).await;
    assert_eq!(newest, fresh);
    // Before 2025-11-25 an error response had to have an id, and JSON-RPC says which.
    let older = over_stdio(Pipe::legacy(&Stub::new(), tight_stdio(), "2025-06-18").await).await;
    let with_null = |line: &str| line.replace(r#""2.0","error""#, r#""2.0","id":null,"error""#);
    for (old, new) in older.lines().zip(fresh.lines()) {
        assert_eq!(old, if new.contains("\"id\"") { new.to_owned() } else { with_null(new) });
    }
}

/// Whoever sent a line that is too long is told under its id, so that nobody waits for ever.
#[tokio::test(start_paused = true)]
async fn lines_over_the_limit_are_answered_by_their_id() {
    let mut pipe = Pipe::open(&Stub::new(), tight_stdio());
    let big = "x".repeat(100_000);
    for (line, id) in [
        (format!(r#"{{"jsonrpc":"2.0","id":"a","method":"m","params":{{"id":1,"t":"{big}"}}}}"#), json!("a")),
        // As the TypeScript SDK writes it.
        (format!(r#"{{"method":"m","params":{{"id":1,"t":"{big}"}},"jsonrpc":"2.0","id":7}}"#), json!(7)),
        (
            format!(r#"{{"params":{{"t":"\"{big}"}},"id":8,"method":"m","jsonrpc":"2.0","x":"{big}"}}"#),
            json!(8),
        ),
        (
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/x","params":{{"id":1,"t":"{big}"}}}}"#),
            Value::Null,
        ),
        (big.clone(), Value::Null),
    ] {
        pipe.write(format!("{line}\n").into_bytes()).await;
        let answer: Value = serde_json::from_str(&pipe.line().await.unwrap()).unwrap();
        assert_eq!((&answer["id"], &answer["error"]["code"]), (&id, &json!(-32600)), "{answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("1000 bytes"), "{answer}");
        assert_eq!(pipe.ask(&ping()).await["id"], "after");
    }
}

/// An answer that is too long ends the wait for it.
#[tokio::test(start_paused = true)]
async fn an_answer_over_the_limit_is_an_answer() {
    let mut pipe = Pipe::legacy(&Stub::new(), tight_stdio(), "2025-11-25").await;
    pipe.call(1, "ask", json!({"ask": ["sample"]})).await;
    let question = pipe.recv().await;
    let asked = tokio::time::Instant::now();
    let big = "x".repeat(10_000);
    pipe.send(&json!({"jsonrpc": "2.0", "id": question["id"], "result": {"model": big}})).await;
    let told = pipe.recv().await;
    assert_eq!((&told["id"], &told["result"]["isError"]), (&json!(1), &json!(true)), "{told}");
    assert!(told.to_string().contains("Message too large"), "{told}");
    assert!(asked.elapsed().as_secs() < 5);
}

#[tokio::test(start_paused = true)]
async fn malformed_bodies() {
    let stub = Stub::new();
    let client = Client::new(&stub, tight_http());
    let modern = over_http(|body| {
        let bad = client.post(body).header("mcp-protocol-version", "2026-07-28").header("mcp-method", "ping");
        let good = client.modern(&modern_list());
        (Box::pin(bad.send()), Box::pin(good.send()))
    })
    .await;
    insta::assert_snapshot!(modern, @r#"
    broken off: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"Parse error: the text ends in the middle of a value"}}
    not JSON: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: unexpected character at byte 0"}}
    two messages: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: unexpected text after the value at byte 41"}}
    a number: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 2"}}
    a string: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 6"}}
    null: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 4"}}
    an empty batch: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: the batch is empty"}}
    no jsonrpc: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}
    jsonrpc 1.0: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"jsonrpc\" must be \"2.0\""}}
    no method: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"method\" is missing"}}
    a method of a wrong type: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: \"method\" must be a string"}}
    method and result: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: only one of \"method\", \"result\" and \"error\" may be present"}}
    id null: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not null"}}
    a fraction as id: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not a fraction"}}
    a boolean as id: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not a boolean"}}
    an object as id: 400 {"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request: \"id\" must be a string or an integer, not an object"}}
    params as a list: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: \"params\" must be an object"}}
    _meta as a string: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Invalid params: \"_meta\" must be an object"}}
    a key twice in the envelope: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: duplicate key \"method\""}}
    a key twice in params: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: duplicate key \"name\""}}
    a key twice in _meta: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32600,"message":"Invalid request: duplicate key \"a\""}}
    nested too deep: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32700,"message":"Parse error: nested deeper than 100 levels"}}
    a nesting bomb: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: nested deeper than 100 levels"}}
    over the limit: 413 {"jsonrpc":"2.0","error":{"code":-32600,"message":"The request body is larger than the limit of 1000 bytes"}}
    not UTF-8: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: the message is not UTF-8 (invalid utf-8 sequence of 1 bytes from index 34)"}}
    "#);
    let session = Session::open(&client, "2025-11-25").await;
    let legacy = over_http(|body| {
        let bad = client
            .post(body)
            .header("mcp-session-id", &session.id)
            .header("mcp-protocol-version", "2025-11-25");
        let good = session.post(&ping());
        (Box::pin(bad.send()), Box::pin(good.send()))
    })
    .await;
    assert_eq!(legacy, modern);
    let bare = over_http(|body| {
        (Box::pin(client.post(body).send()), Box::pin(client.post(ping().to_string()).send()))
    })
    .await;
    assert_eq!(bare, modern);
}

#[tokio::test(start_paused = true)]
async fn bodies_in_pieces() {
    let client = Client::new(&Stub::new(), tight_http());
    let whole = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    let by_char = whole.chars().map(|c| Some(c.to_string())).collect();
    let forever = std::iter::repeat_with(|| Some("x".repeat(100))).take(1000).collect();
    let mut table = String::new();
    for (name, pieces) in [
        ("one by one", by_char),
        ("with nothing in between", vec![Some(String::new()), Some(whole.to_owned()), Some(String::new())]),
        ("far too many", forever),
        ("broken off", vec![Some(whole[..10].to_owned()), None]),
        ("broken at the end", vec![Some(whole.to_owned()), None]),
        ("none", vec![]),
    ] {
        table += &format!("{name}: {}\n", client.post("").pieces(pieces).send().await.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    one by one: 200 {"jsonrpc":"2.0","id":1,"result":{}}
    with nothing in between: 200 {"jsonrpc":"2.0","id":1,"result":{}}
    far too many: 413 {"jsonrpc":"2.0","error":{"code":-32600,"message":"The request body is larger than the limit of 1000 bytes"}}
    broken off: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: the request body was cut off"}}
    broken at the end: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: the request body was cut off"}}
    none: 400 {"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error: the message is empty"}}
    "#);
}

fn modern_list() -> Value {
    modern(1, "tools/list", json!({}))
}

/// Modern requests that are well formed and wrong. They are answered alike on both transports.
fn wrong_modern_requests() -> Vec<(&'static str, Value)> {
    let with = |meta: Value| modern(7, "server/discover", json!({"_meta": meta}));
    let meta = |key: &str, value: Value| with(json!({format!("io.modelcontextprotocol/{key}"): value}));
    let mut cases = vec![
        ("unknown method", modern(7, "tools/fly", json!({}))),
        ("no such tool", modern(7, "tools/call", json!({"name": "fly"}))),
        ("no such resource", modern(7, "resources/read", json!({"uri": "mem:b"}))),
        ("unknown version", meta("protocolVersion", json!("v999"))),
        ("legacy version", meta("protocolVersion", json!("2025-11-25"))),
        ("no version", meta("protocolVersion", Value::Null)),
        ("no capabilities", meta("clientCapabilities", Value::Null)),
        ("capabilities of a wrong type", meta("clientCapabilities", json!([]))),
        ("client info of a wrong type", meta("clientInfo", json!("me"))),
        ("log level of a wrong name", meta("logLevel", json!("loud"))),
        ("progress token of a wrong type", with(json!({"progressToken": 0.5}))),
        ("missing capability", modern(7, "tools/call", json!({"name": "needs_sampling"}))),
        ("a panic", modern(7, "tools/call", json!({"name": "panic"}))),
    ];
    for method in
        ["initialize", "ping", "logging/setLevel", "resources/subscribe", "tasks/result", "tasks/list"]
    {
        cases.push((method, modern(7, method, json!({}))));
    }
    cases
}

#[tokio::test(start_paused = true)]
async fn wrong_modern_requests_over_http() {
    let client = Client::new(&Stub::new(), http::Settings::default());
    let mut table = String::new();
    for (name, message) in wrong_modern_requests() {
        let mut ask = client.modern(&message);
        if name == "no version" {
            ask = ask.header("mcp-protocol-version", "2026-07-28");
        }
        let answer = ask.send().await;
        assert_eq!(answer.header("content-type"), "application/json");
        table += &format!("{name}: {}\n", answer.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    unknown method: 404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: tools/fly"}}
    no such tool: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: fly"}}
    no such resource: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Resource not found: mem:b","data":{"uri":"mem:b"}}}
    unknown version: 400 {"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"Unsupported protocol version \"v999\": this server supports 2026-07-28, 2025-11-25, 2025-06-18, 2025-03-26, 2024-11-05","data":{"supported":["2026-07-28","2025-11-25","2025-06-18","2025-03-26","2024-11-05"],"requested":"v999"}}}
    legacy version: 400 {"jsonrpc":"2.0","id":7,"error":{"code":-32022,"message":"Unsupported protocol version \"2025-11-25\": this server supports 2026-07-28, 2025-06-18, 2025-03-26, 2024-11-05","data":{"supported":["2026-07-28","2025-06-18","2025-03-26","2024-11-05"],"requested":"2025-11-25"}}}
    no version: 400 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or of a wrong type"}}
    no capabilities: 400 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/clientCapabilities\"] is missing or of a wrong type"}}
    capabilities of a wrong type: 400 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/clientCapabilities\"] is missing or of a wrong type"}}
    client info of a wrong type: 400 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/clientInfo\"] is missing or of a wrong type"}}
    log level of a wrong name: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/logLevel\"] must be a log level, not \"loud\""}}
    progress token of a wrong type: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: _meta.progressToken must be a string or an integer, not 0.5"}}
    missing capability: 400 {"jsonrpc":"2.0","id":7,"error":{"code":-32021,"message":"Missing required client capability: sampling. Declare it and try again","data":{"requiredCapabilities":{"sampling":{}}}}}
    a panic: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}
    initialize: 404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: initialize"}}
    ping: 404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: ping"}}
    logging/setLevel: 404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: logging/setLevel"}}
    resources/subscribe: 404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: resources/subscribe"}}
    tasks/result: 404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: tasks/result"}}
    tasks/list: 404 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: tasks/list"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn wrong_modern_requests_over_stdio() {
    let mut pipe = Pipe::open(&Stub::new(), stdio::Settings::default());
    let client = Client::new(&Stub::new(), http::Settings::default());
    for (name, message) in wrong_modern_requests() {
        let over_stdio = pipe.ask(&message).await;
        let over_http = client.modern(&message).header(
            "mcp-protocol-version",
            match name {
                "unknown version" => "v999",
                "legacy version" => "2025-11-25",
                _ => "2026-07-28",
            },
        );
        assert_eq!(over_stdio, over_http.send().await.json().await, "{name}");
        assert!(pipe.ask(&modern_list()).await["result"]["tools"].is_array(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn headers_must_say_what_the_body_says() {
    let client = Client::new(&Stub::new(), http::Settings::default());
    let list = || client.modern(&modern_list());
    let echo = modern(1, "tools/call", json!({"name": "echo"}));
    let echo = || client.modern(&echo);
    let other_version =
        modern(1, "tools/list", json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "v999"}}));
    let mut table = String::new();
    for (name, ask) in [
        ("no version", list().without("mcp-protocol-version")),
        ("another version", list().header("mcp-protocol-version", "2025-11-25")),
        (
            "another version in the body",
            client.modern(&other_version).header("mcp-protocol-version", "2026-07-28"),
        ),
        ("no method", list().without("mcp-method")),
        ("another method", list().header("mcp-method", "prompts/list")),
        ("the method in capitals", list().header("mcp-method", "TOOLS/LIST")),
        ("no name", echo().without("mcp-name")),
        ("another name", echo().header("mcp-name", "slow")),
        ("an encoded name that is broken", echo().header("mcp-name", "=?base64?ZWNobw?=")),
        ("a name that is not ASCII", echo().header("mcp-name", "echö")),
        ("two versions", list().again("mcp-protocol-version", "2025-11-25")),
        ("two methods", list().again("mcp-method", "prompts/list")),
        ("two names", echo().again("mcp-name", "slow")),
    ] {
        table += &format!("{name}: {}\n", ask.send().await.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    no version: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the MCP-Protocol-Version header is missing"}}
    another version: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: MCP-Protocol-Version header value '2025-11-25' does not match body value '2026-07-28'"}}
    another version in the body: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: MCP-Protocol-Version header value '2026-07-28' does not match body value 'v999'"}}
    no method: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the Mcp-Method header is missing"}}
    another method: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: Mcp-Method header value 'prompts/list' does not match body value 'tools/list'"}}
    the method in capitals: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: Mcp-Method header value 'TOOLS/LIST' does not match body value 'tools/list'"}}
    no name: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the Mcp-Name header is missing"}}
    another name: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: Mcp-Name header value 'slow' does not match body value 'echo'"}}
    an encoded name that is broken: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the Mcp-Name header cannot be read: its Base64 text is malformed"}}
    a name that is not ASCII: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the Mcp-Name header cannot be read: it has characters outside visible ASCII, space and tab"}}
    two versions: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-protocol-version header is repeated"}}
    two methods: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-method header is repeated"}}
    two names: 400 {"jsonrpc":"2.0","id":1,"error":{"code":-32020,"message":"Header mismatch: the mcp-name header is repeated"}}
    "#);
    for ask in [
        list(),
        echo(),
        list().header("mcp-method", "  tools/list "),
        echo().header("mcp-name", "\techo  "),
        echo().header("mcp-name", "=?base64?ZWNobw==?="),
        list().header("mcp-name", "of no meaning here"),
        list().header("mcp-session-id", "of no meaning here"),
    ] {
        let answer = ask.send().await;
        assert_eq!((answer.status, answer.header("mcp-session-id")), (200, "-"));
        assert!(answer.json().await["result"].is_object());
    }
}

#[tokio::test(start_paused = true)]
async fn wrong_legacy_requests() {
    let stub = Stub::new();
    let client = Client::new(&stub, http::Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-11-25").await;
    let mut table = String::new();
    for (method, params) in [
        ("tools/fly", json!({})),
        ("server/discover", json!({})),
        ("subscriptions/listen", json!({"notifications": {}})),
        ("tasks/update", json!({"taskId": "task-1"})),
        ("initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}})),
        ("tools/call", json!({"name": "fly"})),
        ("tools/call", json!({"name": "panic"})),
        ("tools/call", json!({"name": "echo", "_meta": {"progressToken": null}})),
        ("resources/read", json!({"uri": "mem:b"})),
        ("resources/subscribe", json!({})),
        ("logging/setLevel", json!({"level": "loud"})),
        ("tasks/get", json!({})),
        ("tasks/get", json!({"taskId": "task-9"})),
    ] {
        let answer = session.request(7, method, params.clone()).send().await;
        let line = answer.line().await;
        pipe.request(7, method, params).await;
        assert_eq!(line.split_once(' ').unwrap().1, pipe.line().await.unwrap(), "{method}");
        table += &format!("{method}: {line}\n");
        assert!(session.works().await, "{method}");
    }
    insta::assert_snapshot!(table, @r#"
    tools/fly: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: tools/fly"}}
    server/discover: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: server/discover"}}
    subscriptions/listen: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: subscriptions/listen"}}
    tasks/update: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32601,"message":"Method not found: tasks/update"}}
    initialize: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32600,"message":"Invalid request: this session is already initialized"}}
    tools/call: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown tool: fly"}}
    tools/call: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32603,"message":"Internal error"}}
    tools/call: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: _meta.progressToken must be a string or an integer, not null"}}
    resources/read: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32002,"message":"Resource not found: mem:b","data":{"uri":"mem:b"}}}
    resources/subscribe: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: \"uri\" must be a string"}}
    logging/setLevel: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: \"level\" must be one of debug, info, notice, warning, error, critical, alert, emergency"}}
    tasks/get: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Invalid params: \"taskId\" must be a string"}}
    tasks/get: 200 {"jsonrpc":"2.0","id":7,"error":{"code":-32602,"message":"Unknown task: task-9"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn calls_before_the_handshake() {
    let client = Client::new(&Stub::new(), http::Settings::default());
    let mut pipe = Pipe::open(&Stub::new(), stdio::Settings::default());
    let mut table = String::new();
    for method in ["tools/list", "tools/call", "logging/setLevel", "server/discover", "unknown/method"] {
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": method, "params": {}});
        let over_http =
            client.post(message.to_string()).header("mcp-protocol-version", "2025-11-25").send().await;
        pipe.send(&message).await;
        table += &format!("{method}:\n  {}\n  {}\n", pipe.line().await.unwrap(), over_http.line().await);
    }
    insta::assert_snapshot!(table, @r#"
    tools/list:
      {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Server not initialized: send initialize first"}}
      400 {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    tools/call:
      {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Server not initialized: send initialize first"}}
      400 {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    logging/setLevel:
      {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Server not initialized: send initialize first"}}
      400 {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    server/discover:
      {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or of a wrong type"}}
      400 {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    unknown/method:
      {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Server not initialized: send initialize first"}}
      400 {"jsonrpc":"2.0","id":3,"error":{"code":-32600,"message":"Bad request: the Mcp-Session-Id header is missing. Send initialize first"}}
    "#);
    let pong = pipe.ask(&ping()).await;
    assert_eq!(pong, json!({"jsonrpc": "2.0", "id": "after", "result": {}}));
}

#[tokio::test(start_paused = true)]
async fn handshakes_that_fail() {
    let client = Client::new(&Stub::new(), http::Settings::default());
    let mut pipe = Pipe::open(&Stub::new(), stdio::Settings::default());
    let mut table = String::new();
    for params in [
        json!({}),
        json!({"protocolVersion": 2}),
        json!({"protocolVersion": "2025-11-25", "capabilities": []}),
        json!({"protocolVersion": "2025-11-25", "clientInfo": "me"}),
    ] {
        let message = json!({"jsonrpc": "2.0", "id": 3, "method": "initialize", "params": params});
        let answer = client.post(message.to_string()).send().await;
        assert_eq!(answer.header("mcp-session-id"), "-");
        let line = answer.line().await;
        pipe.send(&message).await;
        assert_eq!(line.split_once(' ').unwrap().1, pipe.line().await.unwrap());
        table += &format!("{line}\n");
    }
    insta::assert_snapshot!(table, @r#"
    200 {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Invalid params: initialize needs a string \"protocolVersion\""}}
    200 {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Invalid params: initialize needs a string \"protocolVersion\""}}
    200 {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Invalid params: \"capabilities\" must be an object"}}
    200 {"jsonrpc":"2.0","id":3,"error":{"code":-32602,"message":"Invalid params: \"clientInfo\" must be an object"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn one_id_twice_in_flight() {
    let stub = Stub::new();
    let refused = json!({"code": -32600, "message": "Invalid request: id 7 is in use by a request that is still in flight"});

    // stdio, both eras: refused while the first runs, free again afterwards.
    let mut pipe = Pipe::open(&stub, stdio::Settings::default());
    let slow = modern(7, "tools/call", json!({"name": "slow"}));
    pipe.send(&slow).await;
    assert_eq!(pipe.ask(&slow).await["error"], refused);
    stub.release(1);
    assert_eq!(text(&pipe.recv().await), "done");
    stub.release(1);
    assert_eq!(text(&pipe.ask(&slow).await), "done");

    let mut pipe = Pipe::legacy(&stub, stdio::Settings::default(), "2025-11-25").await;
    pipe.call(7, "slow", json!({})).await;
    pipe.call(7, "echo", json!({})).await;
    assert_eq!(pipe.recv().await["error"], refused);
    // A string is another id than a number.
    pipe.call("7", "echo", json!({})).await;
    assert_eq!(pipe.recv().await["id"], "7");
    stub.release(1);
    assert_eq!(text(&pipe.recv().await), "done");

    // A legacy session over HTTP.
    let client = Client::new(&stub, http::Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let first = tokio::spawn(session.call(7, "slow", json!({})).send());
    stub.until("the first to run", |c| c.running == 1).await;
    assert_eq!(session.call(7, "echo", json!({})).send().await.json().await["error"], refused);
    assert_eq!(
        text(
            &Session::open(&client, "2025-11-25").await.call(7, "echo", json!({})).send().await.json().await
        ),
        "nothing"
    );
    stub.release(1);
    assert_eq!(text(&first.await.unwrap().json().await), "done");

    // Modern HTTP requests are independent.
    let both = [(); 2].map(|()| tokio::spawn(client.modern(&slow).send()));
    stub.until("both to run", |c| c.running == 2).await;
    stub.release(2);
    for answer in both {
        assert_eq!(text(&answer.await.unwrap().json().await), "done");
    }
}

#[tokio::test(start_paused = true)]
async fn too_many_in_flight() {
    let stub = Stub::new();
    let edge = EdgeSettings { max_in_flight: 1, ..EdgeSettings::default() };
    let busy = "in flight. Wait for some to finish";
    let mut pipe = Pipe::open(&stub, stdio::Settings { edge: edge.clone(), ..stdio::Settings::default() });
    pipe.send(&modern(1, "tools/call", json!({"name": "slow"}))).await;
    let refused = pipe.ask(&modern(2, "tools/call", json!({"name": "echo"}))).await;
    assert!(refused["error"]["message"].as_str().unwrap().ends_with(busy), "{refused}");
    stub.release(1);
    assert_eq!(text(&pipe.recv().await), "done");
    assert_eq!(text(&pipe.ask(&modern(3, "tools/call", json!({"name": "echo"}))).await), "nothing");

    let client = Client::new(&stub, http::Settings { edge, ..http::Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let first = tokio::spawn(session.call(1, "slow", json!({})).send());
    stub.until("the first to run", |c| c.running == 1).await;
    let refused = session.call(2, "echo", json!({})).send().await.json().await;
    assert!(refused["error"]["message"].as_str().unwrap().ends_with(busy), "{refused}");
    stub.release(1);
    assert_eq!(text(&first.await.unwrap().json().await), "done");
    assert!(session.works().await);
}
