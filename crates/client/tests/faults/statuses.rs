//! HTTP statuses that say no, retries and the breaker.

use std::time::Duration;

use serde_json::json;
use tidegate_client::ClientSettings;
use tidegate_protocol::Symbol;
use tidegate_service::layers::{BreakerSettings, BreakerState, RetryPolicy};

use crate::rig::*;

fn quick_retries(options: &mut ClientSettings) {
    let base = Duration::from_millis(20);
    options.retry = RetryPolicy { base, max: base, ..RetryPolicy::default() };
}

#[test]
fn what_may_have_been_executed_is_not_called_again() {
    every(HTTP, async |rig| {
        let client = rig.client_with(quick_retries).await;
        works(&client).await;
        for (status, headers) in [(503, ""), (500, ""), (502, ""), (500, "Retry-After: 0\r\n")] {
            let before = rig.count("refused");
            rig.http().refuse("tools/call", 1, status, headers);
            let error = fails(&client, "echo", json!({}), &format!("HTTP {status}")).await;
            assert_eq!(error.symbol, Symbol::Unavailable, "{error}");
            assert_eq!(rig.count("refused") - before, 1, "{status} {headers:?}");
        }
        assert_eq!(rig.count("call echo"), 1);
        works(&client).await;
    });
}

#[test]
fn what_was_surely_not_executed_is_called_again() {
    every(HTTP, async |rig| {
        let client = rig.client_with(quick_retries).await;
        works(&client).await;
        for (status, headers) in [(503, "Retry-After: 0\r\n"), (429, "Retry-After: 0\r\n"), (429, "")] {
            let (refused, called) = (rig.count("refused"), rig.count("call echo"));
            rig.http().refuse("tools/call", 2, status, headers);
            works(&client).await;
            assert_eq!(rig.count("refused") - refused, 2, "{status} {headers:?}");
            assert_eq!(rig.count("call echo") - called, 1, "executed once");
        }
    });
}

#[test]
fn a_pause_that_the_server_asks_for_is_kept_if_there_is_time_and_told_if_not() {
    every(HTTP, async |rig| {
        let client = rig.client_with(quick_retries).await;
        works(&client).await;
        for status in [503, 429] {
            rig.http().refuse("tools/call", 1, status, "Retry-After: 1\r\n");
            let start = std::time::Instant::now();
            works(&client).await;
            assert!(start.elapsed() >= Duration::from_secs(1), "not earlier than the server wants");
            rig.http().refuse("tools/call", 1, status, "Retry-After: 100\r\n");
            let error = fails(&client, "echo", json!({}), &format!("HTTP {status}")).await;
            assert_eq!(error.retry_after, Some(Duration::from_secs(100)));
        }
        assert_eq!(rig.count("refused"), 4);
    });
}

#[test]
fn lists_are_asked_for_again() {
    every(HTTP, async |rig| {
        let client = rig.client_with(quick_retries).await;
        for status in [503, 500, 502] {
            rig.http().refuse("tools/list", 2, status, "");
            let list = bounded(PATIENCE, client.request("tools/list", json!({}))).await;
            list.expect("a list, in the end");
            client.invalidate();
            rig.http().refuse("tools/list", 2, status, "");
            let tools = bounded(PATIENCE, client.tools()).await.expect("tools, in the end");
            assert!(tools.len() > 10);
        }
        assert_eq!(rig.count("refused tools/list"), 12);
    });
}

#[test]
fn refused_credentials_are_told_clearly_and_are_nobodys_failure() {
    every(HTTP, async |rig| {
        let settings = BreakerSettings::consecutive(2, Duration::from_secs(60));
        let client = rig.client_with(|o| {
            quick_retries(o);
            o.breaker = Some(settings);
        });
        let client = client.await;
        works(&client).await;
        for (status, sentence) in [(401, "wants a login (HTTP 401)"), (403, "does not allow this (HTTP 403)")]
        {
            let before = rig.count("refused");
            rig.http().refuse("tools/call", 5, status, "");
            for _ in 0..5 {
                let error = fails(&client, "echo", json!({}), sentence).await;
                assert_eq!(error.symbol, Symbol::Unauthorized);
            }
            assert_eq!(rig.count("refused") - before, 5, "each asked once");
            assert_eq!(client.circuit().state(), BreakerState::Closed);
        }
        works(&client).await;
    });
}

#[test]
fn a_storm_opens_the_breaker_which_recovers() {
    every(HTTP, async |rig| {
        let client =
            rig.client_with(|o| o.breaker = Some(BreakerSettings::consecutive(5, Duration::from_secs(1))));
        let client = client.await;
        works(&client).await;
        for headers in ["", "Retry-After: 1\r\n"] {
            rig.http().refuse("tools/call", 1000, 503, headers);
            let before = rig.count("refused");
            for _ in 0..5 {
                assert_eq!(client.circuit().state(), BreakerState::Closed);
                fails(&client, "echo", json!({}), "HTTP 503").await;
            }
            assert_eq!(client.circuit().state(), BreakerState::Open);
            let error = fails(&client, "echo", json!({}), "circuit open").await;
            assert!(error.message.contains("HTTP 503") && error.retry_after.is_some(), "{error:?}");
            assert_eq!(rig.count("refused") - before, 5, "the server is left alone");
            rig.http().relent();
            assert!(
                within(Duration::from_secs(10), || client.circuit().state() == BreakerState::HalfOpen).await
            );
            works(&client).await;
            assert_eq!(client.circuit().state(), BreakerState::Closed);
        }
        assert_eq!(rig.count("call echo"), 3);
    });
}

#[test]
fn a_server_that_is_down_at_first_is_found_later() {
    every(HTTP, async |rig| {
        let client = rig.lazy(|_| {});
        for (status, headers) in [(503, ""), (502, ""), (401, ""), (429, "Retry-After: 1\r\n")] {
            rig.http().refuse("*", 1, status, headers);
            fails(&client, "echo", json!({}), &format!("HTTP {status}")).await;
        }
        works(&client).await;
        assert_eq!(rig.count("call echo"), 1);
    });
}
