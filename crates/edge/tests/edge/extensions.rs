//! What the edge tells the layers around it in the extensions of its responses.

use serde_json::json;
use tidegate_edge::http::{OpenEnded, RequiredScopes, Settings};

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

fn required(answer: &Answer) -> Option<Vec<&str>> {
    let RequiredScopes(scopes) = answer.extensions.get()?;
    Some(scopes.iter().map(String::as_str).collect())
}

#[tokio::test(start_paused = true)]
async fn a_call_for_which_the_token_lacks_a_scope_is_forbidden() {
    let client = Client::new(&Stub::new(), Settings::default());
    let session = Session::open(&client, "2025-11-25").await;
    let call = json!({"name": "scoped", "arguments": {}});
    let bare = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    for ask in [
        client.modern(&modern(1, "tools/call", call.clone())),
        session.call(1, "scoped", json!({})),
        session.call(1, "scoped", json!({})).header("accept", "application/json"),
        client.post(bare.to_string()),
    ] {
        let answer = ask.send().await;
        assert_eq!(answer.status, 403);
        assert_eq!(required(&answer), Some(vec!["mcp", "files:write"]));
        let message = answer.json().await;
        assert_eq!(message["id"], 1);
        assert_eq!(message["error"]["data"]["requiredScopes"], json!(["mcp", "files:write"]), "{message}");
    }
}

#[tokio::test(start_paused = true)]
async fn once_something_else_was_said_it_is_said_in_band() {
    let client = Client::new(&Stub::new(), Settings::default());
    let session = Session::open(&client, "2025-03-26").await;
    let mut call = json!({"name": "scoped", "arguments": {}, "_meta": {"progressToken": 1}});
    for ask in [
        client.modern(&modern(1, "tools/call", call.clone())),
        session.call_with_token(1, "scoped", json!({}), json!(1)),
    ] {
        let answer = ask.send().await;
        assert_eq!((answer.status, required(&answer)), (200, None));
        let messages = answer.events().rest().await;
        assert_eq!(messages[1]["error"]["data"]["requiredScopes"], json!(["mcp", "files:write"]));
    }
    call["_meta"].take();
    let request = |id: u64| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call});
    let answer = session.post(&json!([request(1), request(2)])).send().await;
    assert_eq!((answer.status, required(&answer)), (200, None));
    assert_eq!(answer.json().await.as_array().unwrap().len(), 2);
}
