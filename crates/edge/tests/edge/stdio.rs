//! stdio: one message per line, several in flight, both eras on one pipe, and a clean end.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_edge::stdio::{Ended, Settings};
use tidegate_edge::{EdgeSettings, Eras};
use tidegate_service::Notice;

use crate::common::*;

fn call(id: impl Into<Value>, name: &str, arguments: Value) -> Value {
    modern(id, "tools/call", json!({"name": name, "arguments": arguments}))
}

fn eras(eras: Eras) -> Settings {
    Settings { edge: EdgeSettings { eras, ..EdgeSettings::default() }, ..Settings::default() }
}

#[tokio::test(start_paused = true)]
async fn both_eras_on_one_pipe() {
    let stub = Stub::new();
    let mut pipe = Pipe::open(&stub, Settings::default());
    let known = pipe.ask(&modern(1, "server/discover", json!({}))).await;
    assert_eq!(known["result"]["supportedVersions"].as_array().unwrap().len(), 5);
    assert_eq!(text(&pipe.ask(&call(1, "echo", json!({"text": "modern"}))).await), "modern");
    let hello = pipe.ask(&initialize("2025-06-18", json!({}))).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-06-18");
    pipe.call(1, "context", json!({})).await;
    assert!(text(&pipe.recv().await).contains(r#""revision":"2025-06-18""#));
    let modern = pipe.ask(&call(1, "context", json!({}))).await;
    assert!(text(&modern).contains(r#""revision":"2026-07-28""#));
    assert_eq!(modern["result"]["resultType"], "complete");
}

#[tokio::test(start_paused = true)]
async fn responses_go_out_as_they_are_ready() {
    for legacy in [false, true] {
        let stub = Stub::new();
        let mut pipe = match legacy {
            true => Pipe::legacy(&stub, Settings::default(), "2025-11-25").await,
            false => Pipe::open(&stub, Settings::default()),
        };
        for n in 0..64 {
            match legacy {
                true => pipe.call(n, "slow", json!({})).await,
                false => pipe.send(&call(n, "slow", json!({}))).await,
            }
        }
        stub.until("all to run", |c| c.running == 64).await;
        let quick = if legacy {
            json!({"jsonrpc": "2.0", "id": "q", "method": "tools/list"})
        } else {
            modern("q", "tools/list", json!({}))
        };
        assert_eq!(pipe.ask(&quick).await["id"], "q", "not kept waiting");
        stub.release(64);
        let mut ids = Vec::new();
        for _ in 0..64 {
            ids.push(pipe.recv().await["id"].as_u64().unwrap());
        }
        ids.sort_unstable();
        assert_eq!(ids, (0..64).collect::<Vec<_>>());
        assert_eq!(pipe.finish().await, (vec![], Ended::Eof));
    }
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_request_gets_no_response() {
    for legacy in [false, true] {
        for name in ["never", "polite"] {
            let stub = Stub::new();
            let mut pipe = match legacy {
                true => Pipe::legacy(&stub, Settings::default(), "2025-11-25").await,
                false => Pipe::open(&stub, Settings::default()),
            };
            let call = |id: u64| {
                if legacy {
                    json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": name}})
                } else {
                    call(id, name, json!({}))
                }
            };
            pipe.send(&call(1)).await;
            pipe.send(&call(2)).await;
            stub.until("both to run", |c| c.running == 2).await;
            pipe.cancel("1").await;
            pipe.cancel(3).await;
            pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/cancelled"})).await;
            settle().await;
            assert_eq!(stub.counts().running, 2, "nobody meant these");
            pipe.cancel(1).await;
            stub.until("one to stop", |c| c.running == 1).await;
            assert!(pipe.is_quiet().await, "{name} {legacy}");
            // Its id is free again, and means the new request from now on.
            pipe.send(&call(1)).await;
            stub.until("two to run", |c| c.running == 2).await;
            pipe.send(&call(1)).await;
            assert_eq!(code(&pipe.recv().await), (-32600, json!(1)));
            pipe.cancel(1).await;
            pipe.cancel(2).await;
            stub.until("all to stop", |c| c.running == 0).await;
            assert_eq!(pipe.finish().await, (vec![], Ended::Eof));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_id_used_again_right_after_its_cancellation() {
    for legacy in [false, true] {
        let stub = Stub::new();
        let mut pipe = match legacy {
            true => Pipe::legacy(&stub, Settings::default(), "2025-11-25").await,
            false => Pipe::open(&stub, Settings::default()),
        };
        let never = if legacy {
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "never"}})
        } else {
            call(1, "never", json!({}))
        };
        let cancel =
            json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}});
        pipe.send(&never).await;
        stub.until("the first to run", |c| c.running == 1).await;
        // In one piece, so that the second begins before the first has noticed anything.
        pipe.write(format!("{cancel}\n{never}\n")).await;
        stub.until("only the second to run", |c| c.running == 1 && c.stopped == 1).await;
        assert_eq!(code(&pipe.ask(&never).await).0, -32600, "the second is in flight");
        pipe.send(&cancel).await;
        stub.until("the second to stop", |c| c.stopped == 2).await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_end_of_the_input_lets_running_requests_finish() {
    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, Settings::default(), "2025-11-25").await;
    pipe.call(1, "slow", json!({})).await;
    pipe.send(&call(2, "slow", json!({}))).await;
    stub.until("both to run", |c| c.running == 2).await;
    let ending = tokio::spawn(pipe.finish());
    settle().await;
    stub.release(2);
    let (mut rest, ended) = ending.await.unwrap();
    rest.sort_by_key(|m| m["id"].as_u64());
    assert_eq!((rest.iter().map(text).collect::<Vec<_>>(), ended), (vec!["done", "done"], Ended::Eof));
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_ever() {
    let stub = Stub::new();
    let settings = Settings { drain: Duration::from_secs(3), ..Settings::default() };
    let mut pipe = Pipe::legacy(&stub, settings, "2025-11-25").await;
    pipe.call(1, "never", json!({})).await;
    pipe.call(2, "polite", json!({})).await;
    pipe.call(3, "ask", json!({})).await;
    pipe.send(&call(4, "never", json!({}))).await;
    pipe.send(&modern(5, "subscriptions/listen", json!({"notifications": {}}))).await;
    stub.until("all to run", |c| c.running == 3).await;
    let question = pipe.recv().await;
    assert_eq!(question["method"], "elicitation/create");
    assert_eq!(pipe.recv().await["method"], "notifications/subscriptions/acknowledged");
    let start = tokio::time::Instant::now();
    let (rest, ended) = pipe.finish().await;
    assert_eq!(start.elapsed().as_secs(), 3);
    assert_eq!((rest.len(), ended), (1, Ended::Eof));
    assert_eq!(rest[0]["id"], 5, "a subscription ends gracefully: {rest:?}");
    stub.until("all to stop", |c| c.running == 0).await;
    assert_eq!(stub.subscriptions(), 0);
}

#[tokio::test(start_paused = true)]
async fn framing() {
    let stub = Stub::new();
    let mut pipe = Pipe::open(&stub, Settings::default());
    let ping = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "ping"});
    for (name, bytes) in [
        ("blank lines", format!("\n \n\t\r\n\r\n{}\n\n", ping(1))),
        ("CRLF", format!("{}\r\n", ping(1))),
        ("space around", format!("  {}\t\n", ping(1))),
    ] {
        pipe.write(bytes).await;
        assert_eq!(pipe.recv().await["id"], 1, "{name}");
    }
    // Two in one piece, and one in many.
    pipe.write(format!("{}\n{}\n", ping(1), ping(2))).await;
    assert_eq!([pipe.recv().await["id"].clone(), pipe.recv().await["id"].clone()], [1, 2]);
    for byte in format!("{}\n", ping(3)).bytes() {
        pipe.write([byte]).await;
        settle().await;
    }
    assert_eq!(pipe.recv().await["id"], 3);
    assert!(pipe.is_quiet().await, "blank lines are nothing to answer");
    // The last line may do without its end.
    pipe.write(ping(4).to_string()).await;
    let (rest, ended) = pipe.finish().await;
    assert_eq!((rest, ended), (vec![json!({"jsonrpc": "2.0", "id": 4, "result": {}})], Ended::Eof));
    // Or be broken off.
    let mut pipe = Pipe::open(&stub, Settings::default());
    pipe.write(r#"{"jsonrpc":"#).await;
    let (rest, ended) = pipe.finish().await;
    assert_eq!((code(&rest[0]).0, rest.len(), ended), (-32700, 1, Ended::Eof));
}

#[tokio::test(start_paused = true)]
async fn a_message_is_one_line_whatever_the_service_says() {
    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, Settings::default(), "2025-11-25").await;
    pipe.call(1, "pretty", json!({})).await;
    let line = pipe.line().await.unwrap();
    assert!(!line.contains('\r'), "some readers end lines there: {line:?}");
    assert_eq!(text(&serde_json::from_str(&line).unwrap()), "a\nb");
    assert_eq!(text(&pipe.ask(&call(2, "pretty", json!({}))).await), "a\nb");
}

#[tokio::test(start_paused = true)]
async fn progress_and_logs_of_a_modern_request() {
    let stub = Stub::new();
    let mut pipe = Pipe::open(&stub, Settings::default());
    let with = |name: &str, meta: Value| modern(1, "tools/call", json!({"name": name, "_meta": meta}));
    pipe.send(&with("progress", json!({"progressToken": 0}))).await;
    let mut got = vec![pipe.recv().await, pipe.recv().await];
    pipe.send(&with("log", json!({"io.modelcontextprotocol/logLevel": "error"}))).await;
    got.extend([pipe.recv().await, pipe.recv().await]);
    insta::assert_snapshot!(lines(&got), @r#"
    {"jsonrpc":"2.0","method":"notifications/progress","params":{"message":"step 1","progress":1,"progressToken":0,"total":1}}
    {"id":1,"jsonrpc":"2.0","result":{"content":[{"text":"done","type":"text"}],"resultType":"complete"}}
    {"jsonrpc":"2.0","method":"notifications/message","params":{"data":"a message at error","level":"error"}}
    {"id":1,"jsonrpc":"2.0","result":{"content":[{"text":"done","type":"text"}],"resultType":"complete"}}
    "#);
    pipe.send(&with("log", json!({}))).await;
    assert_eq!(text(&pipe.recv().await), "done", "no level, no logs");
    for name in ["close_stream", "close_outbox"] {
        stub.release(1);
        pipe.send(&with(name, json!({"progressToken": 0}))).await;
        assert!(!text(&pipe.recv().await).is_empty(), "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn subscriptions_share_the_pipe() {
    let stub = Stub::new();
    let mut pipe = Pipe::open(&stub, Settings::default());
    let listen =
        |id: &str, filter: Value| modern(id, "subscriptions/listen", json!({"notifications": filter}));
    let mut got = vec![
        pipe.ask(&listen("a", json!({"toolsListChanged": true}))).await,
        pipe.ask(&listen("b", json!({"resourceSubscriptions": ["mem:a"]}))).await,
    ];
    assert_eq!(code(&pipe.ask(&listen("a", json!({}))).await), (-32600, json!("a")), "still open");
    stub.tell(&Notice::ToolsChanged);
    got.push(pipe.recv().await);
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    got.push(pipe.recv().await);
    // Ended by the client: there is nothing more to say.
    pipe.cancel("a").await;
    settle().await;
    assert_eq!(stub.subscriptions(), 1);
    stub.tell(&Notice::ToolsChanged);
    assert!(pipe.is_quiet().await);
    // Ended by the service: it says so.
    stub.end_subscriptions();
    got.push(pipe.recv().await);
    insta::assert_snapshot!(lines(&got), @r#"
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"},"notifications":{"toolsListChanged":true}}}
    {"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b"},"notifications":{"resourceSubscriptions":["mem:a"]}}}
    {"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"a"}}}
    {"jsonrpc":"2.0","method":"notifications/resources/updated","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b"},"uri":"mem:a"}}
    {"id":"b","jsonrpc":"2.0","result":{"_meta":{"io.modelcontextprotocol/subscriptionId":"b"},"resultType":"complete"}}
    "#);
}

#[tokio::test(start_paused = true)]
async fn a_legacy_client_hears_of_changes() {
    let stub = Stub::new();
    let mut pipe = Pipe::legacy(&stub, Settings::default(), "2025-03-26").await;
    settle().await;
    stub.tell(&Notice::ToolsChanged);
    assert_eq!(pipe.recv().await, json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}));
    pipe.request(1, "resources/subscribe", json!({"uri": "mem:a"})).await;
    pipe.recv().await;
    settle().await;
    stub.tell(&Notice::ResourceUpdated("mem:a".into()));
    stub.tell(&Notice::ResourceUpdated("mem:b".into()));
    assert_eq!(pipe.recv().await["params"], json!({"uri": "mem:a"}));
    assert!(pipe.is_quiet().await);
}

#[tokio::test(start_paused = true)]
async fn batches() {
    let stub = Stub::new();
    let ping = json!({"jsonrpc": "2.0", "id": 1, "method": "ping"});
    let told = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let slow = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "slow"}});
    let mut pipe = Pipe::legacy(&stub, Settings::default(), "2025-03-26").await;
    pipe.send(&json!([ping, told, 5, slow])).await;
    stub.release(1);
    insta::assert_snapshot!(pipe.line().await.unwrap(), @r#"[{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"Invalid request: expected a JSON object at byte 1"}},{"jsonrpc":"2.0","id":1,"result":{}},{"jsonrpc":"2.0","id":2,"result":{"content":[{"text":"done","type":"text"}]}}]"#);
    pipe.send(&json!([told])).await;
    assert!(pipe.is_quiet().await);
    // A batch of many, all of which have to wait.
    let many: Vec<_> = (0..50)
        .map(|n| json!({"jsonrpc": "2.0", "id": n, "method": "tools/call", "params": {"name": "slow"}}))
        .collect();
    pipe.send(&json!(many)).await;
    stub.until("some to run", |c| c.running > 0).await;
    stub.release(50);
    assert_eq!(pipe.recv().await.as_array().unwrap().len(), 50);
    for revision in ["2024-11-05", "2025-06-18", "2025-11-25"] {
        let mut pipe = Pipe::legacy(&stub, Settings::default(), revision).await;
        assert_eq!(code(&pipe.ask(&json!([ping])).await).0, -32600, "{revision}");
        assert_eq!(pipe.ask(&ping).await["id"], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_does_not_read_is_given_up() {
    let stub = Stub::new();
    let settings = Settings { max_backlog: 10_000, drain: Duration::from_secs(3), ..Settings::default() };
    let mut pipe = Pipe::with_buffer(&stub, settings, 100);
    pipe.send(&call(0, "never", json!({}))).await;
    stub.until("a call to run", |c| c.running == 1).await;
    for n in 1..=3 {
        pipe.send(&call(n, "big", json!({"n": 5_000}))).await;
        settle().await;
    }
    assert_eq!(pipe.ended().await, Ended::OutputClosed);
    stub.until("what ran to stop", |c| c.running == 0).await;
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_slow_gets_everything() {
    let stub = Stub::new();
    let mut pipe = Pipe::with_buffer(&stub, Settings::default(), 64);
    for n in 0..20 {
        pipe.send(&call(n, "big", json!({"n": 10_000}))).await;
    }
    settle().await;
    for n in 0..20 {
        let answer = pipe.recv().await;
        assert_eq!((answer["id"].as_u64(), text(&answer).len()), (Some(n), 10_000));
    }
}

#[tokio::test(start_paused = true)]
async fn a_reader_that_is_gone_ends_the_connection_at_once() {
    let stub = Stub::new();
    let Pipe { mut input, output, server } = Pipe::open(&stub, Settings::default());
    let write = async |input: &mut Option<tokio::io::DuplexStream>, message: Value| {
        let line = format!("{message}\n");
        tokio::io::AsyncWriteExt::write_all(input.as_mut().unwrap(), line.as_bytes()).await.unwrap();
    };
    write(&mut input, call(1, "never", json!({}))).await;
    stub.until("a call to run", |c| c.running == 1).await;
    drop(output);
    let start = tokio::time::Instant::now();
    write(&mut input, call(2, "echo", json!({}))).await;
    assert_eq!(in_time("the end", server).await.unwrap(), Ended::OutputClosed);
    stub.until("what ran to stop", |c| c.running == 0).await;
    assert_eq!(start.elapsed().as_secs(), 0, "nobody is left to wait for");
}

#[tokio::test(start_paused = true)]
async fn a_modern_server_and_legacy_clients() {
    let stub = Stub::new();
    let mut pipe = Pipe::open(&stub, eras(Eras::Modern));
    let mut got = vec![pipe.ask(&initialize("2025-11-25", json!({}))).await];
    for method in ["ping", "tools/list", "server/discover"] {
        got.push(pipe.ask(&json!({"jsonrpc": "2.0", "id": 1, "method": method})).await);
    }
    got.push(pipe.ask(&json!([{"jsonrpc": "2.0", "id": 1, "method": "ping"}])).await);
    insta::assert_snapshot!(lines(&got), @r#"
    {"error":{"code":-32022,"data":{"requested":"2025-11-25","supported":["2026-07-28"]},"message":"Unsupported protocol version \"2025-11-25\": this server supports 2026-07-28"},"id":0,"jsonrpc":"2.0"}
    {"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or of a wrong type"},"id":1,"jsonrpc":"2.0"}
    {"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or of a wrong type"},"id":1,"jsonrpc":"2.0"}
    {"error":{"code":-32602,"message":"Invalid params: _meta[\"io.modelcontextprotocol/protocolVersion\"] is missing or of a wrong type"},"id":1,"jsonrpc":"2.0"}
    {"error":{"code":-32600,"message":"Invalid request: batches are part of revision 2025-03-26 only; send one message"},"jsonrpc":"2.0"}
    "#);
    // What is no request has no effect and no answer.
    pipe.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    pipe.send(&json!({"jsonrpc": "2.0", "id": 1, "result": {}})).await;
    pipe.send(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}})).await;
    assert!(pipe.is_quiet().await);
    assert_eq!(text(&pipe.ask(&call(1, "echo", json!({}))).await), "nothing");
}

#[tokio::test(start_paused = true)]
async fn a_legacy_server_and_modern_clients() {
    let stub = Stub::new();
    let mut pipe = Pipe::open(&stub, eras(Eras::Legacy));
    let mut got = vec![
        pipe.ask(&modern(1, "server/discover", json!({}))).await,
        pipe.ask(&call(2, "echo", json!({}))).await,
        pipe.ask(&initialize("2026-07-28", json!({}))).await,
        pipe.ask(&modern(3, "server/discover", json!({}))).await,
        pipe.ask(&modern(4, "subscriptions/listen", json!({"notifications": {}}))).await,
    ];
    let served = pipe.ask(&call(5, "context", json!({}))).await;
    assert!(text(&served).contains(r#""revision":"2025-11-25""#));
    got[2]["result"].as_object_mut().unwrap().retain(|name, _| name == "protocolVersion");
    insta::assert_snapshot!(lines(&got), @r#"
    {"error":{"code":-32600,"message":"Server not initialized: send initialize first"},"id":1,"jsonrpc":"2.0"}
    {"error":{"code":-32600,"message":"Server not initialized: send initialize first"},"id":2,"jsonrpc":"2.0"}
    {"id":0,"jsonrpc":"2.0","result":{"protocolVersion":"2025-11-25"}}
    {"error":{"code":-32601,"message":"Method not found: server/discover"},"id":3,"jsonrpc":"2.0"}
    {"error":{"code":-32601,"message":"Method not found: subscriptions/listen"},"id":4,"jsonrpc":"2.0"}
    "#);
}

#[tokio::test(start_paused = true)]
async fn lenient_about_the_handshake_on_request() {
    let stub = Stub::new();
    let edge = EdgeSettings { lenient_init: true, ..EdgeSettings::default() };
    let mut pipe = Pipe::open(&stub, Settings { edge, ..Settings::default() });
    pipe.call(1, "context", json!({})).await;
    assert!(text(&pipe.recv().await).contains(r#""revision":"2025-03-26""#));
    // A client that shakes hands after all is welcome.
    let hello = pipe.ask(&initialize("2025-11-25", json!({"roots": {}}))).await;
    assert_eq!(hello["result"]["protocolVersion"], "2025-11-25", "{hello}");
    pipe.call(2, "context", json!({})).await;
    assert!(text(&pipe.recv().await).contains(r#""revision":"2025-11-25""#));
    assert_eq!(
        code(&pipe.ask(&initialize("2025-11-25", json!({}))).await),
        (-32600, json!(0)),
        "but only once"
    );
}

#[tokio::test(start_paused = true)]
async fn a_slow_handshake_keeps_its_place() {
    let stub = Stub::new();
    stub.hold_discovery(true);
    let mut pipe = Pipe::open(&stub, Settings::default());
    pipe.send(&initialize("2025-11-25", json!({}))).await;
    pipe.call(1, "echo", json!({})).await;
    assert!(pipe.is_quiet().await);
    stub.hold_discovery(false);
    assert_eq!(pipe.recv().await["result"]["protocolVersion"], "2025-11-25");
    assert_eq!(text(&pipe.recv().await), "nothing", "not refused for being early");
}

#[tokio::test(start_paused = true)]
async fn the_principal_is_the_connections() {
    let stub = Stub::new();
    let principal = tidegate_service::Principal::subject("alice");
    let mut pipe = Pipe::legacy(&stub, Settings { principal, ..Settings::default() }, "2025-11-25").await;
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "context"}}),
        call(2, "context", json!({})),
    ] {
        assert!(text(&pipe.ask(&message).await).contains(r#""subject":"alice""#));
    }
}

#[tokio::test(start_paused = true)]
async fn a_quiet_subscription_does_not_delay_the_end() {
    let stub = Stub::new();
    let settings = Settings { drain: Duration::from_secs(30), ..Settings::default() };
    let mut pipe = Pipe::open(&stub, settings);
    pipe.send(&modern(1, "subscriptions/listen", json!({"notifications": {}}))).await;
    assert_eq!(pipe.recv().await["method"], "notifications/subscriptions/acknowledged");
    let start = tokio::time::Instant::now();
    let (rest, _) = pipe.finish().await;
    assert_eq!(rest[0]["result"]["resultType"], "complete", "{rest:?}");
    assert_eq!(start.elapsed().as_secs(), 0);
}
