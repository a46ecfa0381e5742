//! The id of a call in its answer: in `_meta` of results and in a header, for callers of both eras, over both transports.

use serde_json::{Value, json};
use tidegate_edge::{http, stdio};

use crate::common::*;

const HEADER: &str = "tidegate-correlation-id";
/// What there is instead of a header that is not there.
const NONE: &str = "-";

fn id_of(answer: &Value) -> &str {
    answer["result"]["_meta"]["dev.tidegate/correlationId"].as_str().unwrap_or(NONE)
}

#[tokio::test(start_paused = true)]
async fn over_http() {
    for call_ids in [true, false] {
        let stub = Stub::new();
        let mut settings = http::Settings::default();
        settings.edge.call_ids = call_ids;
        let client = Client::new(&stub, settings);
        let session = Session::open(&client, "2025-11-25").await;
        let small = json!({"name": "echo", "arguments": {"text": "small"}});
        let large = json!({"name": "echo", "arguments": {"text": "é\\".repeat(20_000)}});
        for params in [small, large] {
            let asked = client.modern(&modern(1, "tools/call", params.clone())).send();
            let in_session = session.request(2, "tools/call", params).send();
            for answer in [asked.await, in_session.await] {
                let header = answer.header(HEADER).to_owned();
                let answer = answer.json().await;
                assert_eq!((id_of(&answer), header == NONE), (&*header, !call_ids), "{answer}");
                assert!(answer["result"]["content"].is_array(), "{answer}");
            }
        }
        // Lists are the same for many: there is only the header.
        for answer in [
            client.modern(&modern(3, "tools/list", json!({}))).send().await,
            session.request(4, "tools/list", json!({})).send().await,
        ] {
            assert_eq!(answer.header(HEADER) == NONE, !call_ids);
            assert_eq!(id_of(&answer.json().await), NONE);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn it_is_the_trace_of_whoever_sent_one() {
    let stub = Stub::new();
    let mut settings = http::Settings::default();
    settings.edge.call_ids = true;
    let client = Client::new(&stub, settings);
    let trace = "0af7651916cd43dd8448eb211c80319c";
    let mut message = modern(1, "tools/call", json!({"name": "echo", "arguments": {"text": "x"}}));
    message["params"]["_meta"]["traceparent"] = json!(format!("00-{trace}-00f067aa0ba902b7-01"));
    let answer = client.modern(&message).send().await;
    assert_eq!(answer.header(HEADER), trace);
    assert_eq!(id_of(&answer.json().await), trace);
}

#[tokio::test(start_paused = true)]
async fn over_stdio() {
    for call_ids in [true, false] {
        let stub = Stub::new();
        let mut settings = stdio::Settings::default();
        settings.edge.call_ids = call_ids;
        let params = json!({"name": "echo", "arguments": {"text": "x"}});
        let mut pipe = Pipe::open(&stub, settings.clone());
        let answer = pipe.ask(&modern(1, "tools/call", params.clone())).await;
        assert_eq!(id_of(&answer) == NONE, !call_ids, "{answer}");
        let mut pipe = Pipe::legacy(&stub, settings, "2025-06-18").await;
        pipe.send(&json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params})).await;
        let answer = pipe.recv().await;
        assert_eq!(id_of(&answer) == NONE, !call_ids, "{answer}");
    }
}
