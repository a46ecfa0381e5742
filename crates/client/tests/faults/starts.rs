//! Servers that go wrong before the first call.

use std::time::Duration;

use serde_json::json;
use tidegate_protocol::Symbol;

use crate::rig::*;

#[test]
fn a_server_that_never_answers_the_handshake() {
    for start in ["mute", "mute_handshake"] {
        let kinds = if start == "mute" { ALL } else { LEGACY };
        every_started(kinds, start, async |rig| {
            let connecting = rig.builder(|o| (o.init_timeout, o.probe_timeout) = (SHORT, SHORT)).connect();
            let error = bounded(3 * SHORT, connecting).await.expect_err("an error");
            assert_eq!(error.symbol, Symbol::Timeout, "{error}");
            let gone = within(Duration::from_secs(10), || rig.processes().is_empty()).await;
            assert!(gone, "nobody wants the process any more");
        });
    }
}

#[test]
fn a_call_does_not_wait_longer_than_it_may_for_the_handshake() {
    for start in ["mute", "mute_handshake"] {
        let kinds = if start == "mute" { ALL } else { LEGACY };
        every_started(kinds, start, async |rig| {
            let client = rig.lazy(|o| o.init_timeout = Duration::from_secs(60));
            late(&client, "echo", json!({})).await;
            // Closing does not wait for the handshake either: see `clean_up`.
        });
    }
}

#[test]
fn a_server_that_hangs_at_the_end_of_the_handshake() {
    every_started(LEGACY_HTTP, "mute_initialized", async |rig| {
        let connecting = rig.builder(|o| o.init_timeout = SHORT).connect();
        let error = bounded(3 * SHORT, connecting).await.expect_err("an error");
        assert_eq!(error.symbol, Symbol::Timeout, "{error}");
    });
}

#[test]
fn a_stream_for_notifications_that_never_opens_keeps_nobody_waiting() {
    every_started(LEGACY_HTTP, "mute_streams", async |rig| {
        let client = rig.client().await;
        works(&client).await;
    });
}

#[test]
fn a_version_that_nobody_knows() {
    every_started(ALL, "unknown_version", async |rig| {
        let error = bounded(PATIENCE, rig.builder(|o| o.retry.max_retries = 3).connect()).await;
        let error = error.expect_err("an error");
        assert_eq!(error.symbol, Symbol::UnsupportedVersion, "{error}");
        assert!(error.message.contains("2099-12-31"), "{error}");
        assert!(rig.count("method initialize") <= 1);
        let gone = within(Duration::from_secs(10), || rig.processes().is_empty()).await;
        assert!(gone, "nobody wants the process any more");
    });
}

#[test]
fn a_connection_that_is_always_closed() {
    every_started(HTTP, "crash", async |rig| {
        let client = rig.lazy(|_| {});
        for _ in 0..3 {
            let error = fails(&client, "echo", json!({}), "closed the connection").await;
            assert_eq!(error.symbol, Symbol::Unavailable);
        }
        assert_eq!(rig.count("call"), 0);
    });
}
