//! Event streams that break.

use serde_json::json;
use tidegate_protocol::Symbol;

use crate::rig::*;

#[test]
fn half_an_event_and_a_closed_connection_are_an_error_at_once() {
    every(HTTP, async |rig| {
        let client = rig.client_with(|o| o.retry.max_retries = 3).await;
        for tool in ["half_closed", "half_chunked"] {
            let error = call(&client, tool, json!({})).await.expect_err("an error");
            assert_eq!(error.symbol, Symbol::Unavailable, "{error}");
            works(&client).await;
            assert_eq!(
                rig.count(&format!("call {tool}")),
                1,
                "what may have been executed is not called again"
            );
        }
    });
}

#[test]
fn a_stream_with_event_ids_is_taken_up_again() {
    every(LEGACY_HTTP, async |rig| {
        let client = rig.client().await;
        for breaks in [0, 1] {
            let before = rig.count("resumed");
            let answer = call(&client, "resume", json!({"breaks": breaks})).await;
            assert_eq!(answer.expect("the answer, in the end"), "good");
            assert_eq!(rig.count("resumed") - before, 1 + breaks);
        }
        assert_eq!(rig.count("call resume"), 2);
    });
}

#[test]
fn a_modern_stream_is_not_taken_up_again() {
    every(MODERN_HTTP, async |rig| {
        let client = rig.client().await;
        fails(&client, "resume", json!({}), "ended before the answer").await;
        assert_eq!((rig.count("resumed"), rig.count("call resume")), (0, 1));
        works(&client).await;
    });
}
