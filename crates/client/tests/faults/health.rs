//! Probes, and servers that are laid to rest.

use std::time::Duration;

use serde_json::json;
use tidegate_client::{Client, Filter};
use tidegate_protocol::Symbol;
use tidegate_service::layers::{BreakerSettings, BreakerState};

use crate::rig::*;

/// How long callers are made to wait before the server is started again.
async fn pause(client: &Client) -> Duration {
    let error = call(client, "echo", json!({})).await.expect_err("an error");
    error.retry_after.unwrap_or_default()
}

#[test]
fn a_probe_keeps_to_the_pauses_until_somebody_has_set_it_right() {
    for kind in STDIO {
        let file = format!("{}/broken-{}-{:?}", env!("CARGO_TARGET_TMPDIR"), std::process::id(), kind.era);
        std::fs::write(&file, "").expect("a file");
        every_started(&[*kind], &format!("crash_while:{file}"), async |rig| {
            let client = rig.lazy(|_| {});
            while pause(&client).await < Duration::from_secs(3) {
                let _ = bounded(PATIENCE, client.probe(PATIENCE)).await;
            }
            let starts = rig.count("start");
            for _ in 0..3 {
                let error = bounded(PATIENCE, client.probe(PATIENCE)).await.expect_err("an error");
                assert!(error.message.contains("is not started again"), "{error}");
                assert!(error.message.contains("exited with status 3"), "{error}");
            }
            assert_eq!(rig.count("start"), starts, "a probe starts nothing in a pause: {:?}", rig.seen());
            std::fs::remove_file(&file).expect("the file");
            client.forget_failures();
            bounded(PATIENCE, client.probe(PATIENCE)).await.expect("it is there");
            works(&client).await;
        });
    }
}

#[test]
fn a_process_that_shakes_hands_and_dies_is_started_less_and_less_often() {
    every_started(&STDIO[1..], "crash_at_ping", async |rig| {
        let client = rig.lazy(|_| {});
        for _ in 0..20 {
            let _ = bounded(PATIENCE, client.probe(PATIENCE)).await;
        }
        let starts = rig.count("start");
        assert!((2..=8).contains(&starts), "{starts} starts");
    });
}

/// A server that takes long to start would else get all their questions at once, and then be told that nobody waits for
/// the answers. Version 1 of the Python SDK can end by that.
#[test]
fn probes_that_waited_for_a_connection_ask_nothing_more() {
    every(ALL, async |rig| {
        let client = rig.lazy(|_| {});
        let probes = std::iter::repeat_with(|| client.probe(PATIENCE)).take(5);
        for answered in bounded(PATIENCE, futures_util::future::join_all(probes)).await {
            answered.expect("it is there");
        }
        let asked =
            ["ping", "server/discover", "initialize"].map(|method| rig.count(&format!("method {method}")));
        assert!(asked[0] == 0 && asked[1] <= 1 && asked[2] <= 1, "{asked:?}: {:?}", rig.seen());
        works(&client).await;
    });
}

#[test]
fn a_probe_neither_opens_the_breaker_nor_closes_what_failing_calls_opened() {
    every(HTTP, async |rig| {
        let client = rig.lazy(|o| o.breaker = Some(BreakerSettings::consecutive(2, Duration::from_secs(2))));
        works(&client).await;
        rig.http().refuse("*", usize::MAX, 503, "");
        for _ in 0..5 {
            bounded(PATIENCE, client.probe(PATIENCE)).await.expect_err("an error");
        }
        assert_eq!(client.circuit().state(), BreakerState::Closed);
        while client.circuit().state() == BreakerState::Closed {
            call(&client, "echo", json!({})).await.expect_err("an error");
        }
        rig.http().relent();
        let refused = call(&client, "echo", json!({})).await.expect_err("an error");
        assert_eq!(refused.symbol, Symbol::CircuitOpen);
        bounded(PATIENCE, client.probe(PATIENCE)).await.expect("it is there");
        assert_ne!(client.circuit().state(), BreakerState::Closed);
        let tried = within(PATIENCE, || client.circuit().state() == BreakerState::HalfOpen).await;
        assert!(tried, "a trial call may be made");
        works(&client).await;
        assert_eq!(client.circuit().state(), BreakerState::Closed);
    });
}

#[test]
fn a_probe_mends_a_session_that_was_forgotten() {
    every(LEGACY_HTTP, async |rig| {
        let client = rig.client().await;
        rig.http().forget_sessions();
        bounded(PATIENCE, client.probe(PATIENCE)).await.expect("it is there");
        assert_eq!((rig.count("unknown session"), rig.count("method initialize")), (1, 2));
        works(&client).await;
    });
}

#[test]
fn a_probe_takes_no_longer_than_it_may() {
    every_started(ALL, "mute", async |rig| {
        let client = rig.lazy(|o| o.init_timeout = Duration::from_secs(60));
        let error = bounded(SHORT, client.probe(SHORT)).await.expect_err("an error");
        assert_eq!(error.symbol, Symbol::Timeout, "{error}");
    });
}

#[test]
fn a_server_at_rest_is_gone_and_the_next_call_starts_it_again() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        works(&client).await;
        assert_eq!(client.is_running(), !MODERN_HTTP.contains(&rig.kind));
        assert!(bounded(PATIENCE, client.rest()).await);
        assert!(!client.is_running());
        assert!(rig.processes().is_empty());
        let ends = if rig.kind.http { "delete" } else { "end" };
        let expected = usize::from(!MODERN_HTTP.contains(&rig.kind));
        assert_eq!(rig.count(ends), expected, "it was asked to end: {:?}", rig.seen());
        assert!(bounded(PATIENCE, client.rest()).await, "it is at rest already");
        works(&client).await;
        assert_eq!(client.is_running(), !MODERN_HTTP.contains(&rig.kind));
    });
}

#[test]
fn nothing_rests_while_a_call_is_in_flight() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        let calling = tokio::spawn({
            let client = client.clone();
            async move { call_within(&client, "hang", json!({}), SHORT).await }
        });
        rig.until_seen("call hang", 1).await;
        assert_eq!(client.in_flight(), 1);
        assert!(!client.rest().await);
        let error = bounded(PATIENCE, calling).await.expect("no panic").expect_err("a timeout");
        assert_eq!(error.symbol, Symbol::Timeout, "the call went on to its own end: {error}");
        assert_eq!(client.in_flight(), 0);
        assert!(bounded(PATIENCE, client.rest()).await);
    });
}

#[test]
fn nothing_rests_while_somebody_listens() {
    every(HTTP, async |rig| {
        let client = rig.client().await;
        let subscribed = bounded(PATIENCE, client.subscribe(Filter::lists())).await.expect("a subscription");
        assert!(!client.rest().await);
        drop(subscribed);
        for _ in 0..200 {
            if client.rest().await {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it never came to rest");
    });
}
