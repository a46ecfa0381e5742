//! What the edge tells the layers around it in the extensions of its responses.

use serde_json::json;
use tidegate_edge::http::{OpenEnded, Settings};

use crate::common::*;

fn is_open_ended(answer: &Answer) -> bool {
    answer.extensions.get::<OpenEnded>().is_some()
}

#[tokio::test(start_paused = true)]
async fn streams_that_belong_to_no_request_are_marked() {
    let stub = Stub::new();
    let client = Client::new(&stub, Settings { http_sse: true, ..Settings::default() });
    let session = Session::open(&client, "2025-11-25").await;
    let listen = modern(1, "subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    for ask in [session.get(), client.request("GET", "/sse"), client.modern(&listen)] {
        let answer = ask.send().await;
        assert!(answer.is_stream() && is_open_ended(&answer));
    }
    let progress = json!({"name": "progress", "arguments": {}, "_meta": {"progressToken": 1}});
    let answer = client.modern(&modern(1, "tools/call", progress)).send().await;
    assert!(answer.is_stream() && !is_open_ended(&answer), "a modern call");
    let answer = session.call_with_token(1, "progress", json!({}), json!(1)).send().await;
    assert!(answer.is_stream() && !is_open_ended(&answer), "a legacy call");
    let mut events = answer.events();
    events.message().await;
    let resumed = session.get_from(events.last_id()).send().await;
    assert!(resumed.is_stream() && !is_open_ended(&resumed), "the same, resumed");
    assert!(!is_open_ended(&session.request(2, "ping", json!({})).send().await));
}
