//! The transport of 2024-11-05, in which one stream carries every answer.

use std::time::Duration;

use serde_json::json;
use tidegate_protocol::Symbol;

use crate::rig::*;

#[test]
fn a_stream_that_breaks_in_the_middle_of_a_call_is_opened_again() {
    every_started(LEGACY_HTTP, "old", async |rig| {
        let client = rig.client_with(|o| o.retry.max_retries = 3).await;
        for (round, tool) in ["crash", "half_closed"].into_iter().enumerate() {
            let error = fails(&client, tool, json!({}), "ended before the answer").await;
            assert_eq!(error.symbol, Symbol::Unavailable);
            works(&client).await;
            assert_eq!(
                rig.count(&format!("call {tool}")),
                1,
                "what may have been executed is not called again"
            );
            assert_eq!(rig.count("stream"), round + 2);
        }
    });
}

#[test]
fn a_call_that_hangs_ends_at_its_deadline() {
    every_started(LEGACY_HTTP, "old", async |rig| {
        let client = rig.client().await;
        for (times, tool) in [(1, "hang"), (2, "deaf"), (3, "wrong_id")] {
            late(&client, tool, json!({})).await;
            rig.until_seen("cancelled", times).await;
            works(&client).await;
        }
        assert_eq!(rig.count("stream"), 1);
    });
}

#[test]
fn garbage_and_second_answers_are_passed_over() {
    every_started(LEGACY_HTTP, "old", async |rig| {
        let client = rig.client().await;
        for tool in ["garbage", "twice"] {
            assert_eq!(call(&client, tool, json!({})).await.expect("an answer"), "good");
            works(&client).await;
        }
        fails(&client, "duplicate", json!({}), "result").await;
        works(&client).await;
        assert_eq!(rig.count("stream"), 1);
    });
}

#[test]
fn a_stream_that_never_says_where_messages_go() {
    every_started(LEGACY_HTTP, "old_mute", async |rig| {
        let connecting = rig.builder(|o| o.init_timeout = Duration::from_secs(1)).connect();
        let error = bounded(Duration::from_secs(3), connecting).await.expect_err("an error");
        assert!(error.message.contains("HTTP 405"), "what led here is told: {error}");
    });
}
