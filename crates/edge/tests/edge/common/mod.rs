//! What the tests share: a stub behind the door, and clients in front of the transports.

mod http;
mod pipe;
pub(crate) mod socket;
mod stub;

pub(crate) use http::{Answer, Ask, Client, Events, Session, initialize, modern};
pub(crate) use pipe::Pipe;
pub(crate) use stub::Stub;

use std::time::Duration;

use serde_json::Value;

/// All legacy revisions, oldest first.
pub(crate) const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// How long a test waits for what must come. On a paused clock this passes at once when nothing moves any more.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for `future`, or fails saying what was waited for.
#[track_caller]
pub(crate) fn in_time<F: Future>(what: &str, future: F) -> impl Future<Output = F::Output> {
    let at = std::panic::Location::caller();
    async move {
        match tokio::time::timeout(PATIENCE, future).await {
            Ok(done) => done,
            Err(_) => panic!("{at}: waited in vain for {what}"),
        }
    }
}

/// Whether `future` would never finish by itself. Only on a paused clock, where time passes when nothing else does.
pub(crate) async fn never<F: Future>(future: F) -> bool {
    tokio::time::timeout(Duration::from_secs(5), future).await.is_err()
}

/// Lets everything run that can.
pub(crate) async fn settle() {
    tokio::time::sleep(Duration::from_millis(1)).await;
}

/// Messages, one per line.
pub(crate) fn lines(messages: &[Value]) -> String {
    messages.iter().map(|m| format!("{m}\n")).collect()
}

/// The JSON-RPC code of an error response, with its id.
pub(crate) fn code(message: &Value) -> (i64, Value) {
    (message["error"]["code"].as_i64().unwrap_or_default(), message["id"].clone())
}

/// The text of a tool's result.
#[track_caller]
pub(crate) fn text(message: &Value) -> &str {
    match message["result"]["content"][0]["text"].as_str() {
        Some(text) => text,
        None => panic!("not a result with text: {message}"),
    }
}
