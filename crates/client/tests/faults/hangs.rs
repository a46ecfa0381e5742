//! Servers that do not answer, or not in time.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tidegate_protocol::Symbol;

use crate::rig::*;
use crate::wire::Era;

#[test]
fn a_call_that_hangs_ends_at_its_deadline_and_the_server_is_told() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        late(&client, "hang", json!({})).await;
        let modern_http = rig.kind.http && rig.kind.era == Era::Modern;
        rig.until_seen(if modern_http { "closed" } else { "cancelled" }, 1).await;
        works(&client).await;
        assert_eq!((rig.count("call hang"), rig.count("start") < 2), (1, true));
    });
}

#[test]
fn a_call_that_nobody_waits_for_is_cancelled() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        let call = client.call("hang", json!({})).timeout(Duration::from_secs(20)).into_future();
        assert!(tokio::time::timeout(Duration::from_millis(500), call).await.is_err());
        rig.until_seen("call hang", 1).await;
        let modern_http = rig.kind.http && rig.kind.era == Era::Modern;
        rig.until_seen(if modern_http { "closed" } else { "cancelled" }, 1).await;
        works(&client).await;
    });
}

#[test]
fn requests_that_timed_out_do_not_pile_up() {
    every(HTTP, async |rig| {
        let client = rig.client().await;
        works(&client).await;
        let before = tasks();
        let calls = (0..20).map(|_| call_within(&client, "hang", json!({}), Duration::from_millis(300)));
        for answer in join_all(calls).await {
            assert_eq!(answer.expect_err("a timeout").symbol, Symbol::Timeout);
        }
        // Each gives its connection and its task back, whatever the server does.
        rig.until_seen("closed", 20).await;
        assert!(
            within(Duration::from_secs(4), || tasks() <= before).await,
            "{} tasks, not {before}",
            tasks()
        );
    });
}

#[test]
fn a_server_that_does_not_even_take_notifications() {
    every_started(LEGACY_HTTP, "mute_notifications", async |rig| {
        let client = rig.client().await;
        late(&client, "hang", json!({})).await;
        rig.until_seen("cancelled", 1).await;
        works(&client).await;
    });
}

#[test]
fn the_first_call_does_not_wait_for_the_list_of_tools_longer_than_it_may() {
    every_started(MODERN_HTTP, "mute_lists", async |rig| {
        let client = rig.client_with(|o| o.timeout = Duration::from_secs(60)).await;
        late(&client, "echo", json!({})).await;
        assert_eq!(rig.count("call echo"), 0);
    });
}

#[test]
fn a_server_that_hangs_when_it_is_started_again() {
    every_started(STDIO, "second:mute", async |rig| {
        let client = rig.client_with(|o| o.init_timeout = Duration::from_secs(30)).await;
        works(&client).await;
        fails(&client, "crash", json!({"code": 1}), "exited with status 1").await;
        late(&client, "echo", json!({})).await;
        // And closing does not wait for it either: see `clean_up`.
    });
}

#[test]
fn a_slow_drip_is_read_and_waited_for_no_longer_than_the_deadline() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        for stream in [0, 1] {
            let drip = |pause: u64| json!({"pause": pause, "stream": stream});
            assert_eq!(call(&client, "drip", drip(8)).await.expect("an answer"), "good");
            late(&client, "drip", drip(50)).await;
            // Over stdio the rest of that answer is still on its way, and the answer to the next call behind it.
            works(&client).await;
            assert!(!rig.kind.http || rig.count("call drip") == 2 * (1 + stream));
            if !rig.kind.http {
                break;
            }
        }
    });
}

#[test]
fn what_waits_for_a_server_that_does_not_read_is_bounded() {
    every(STDIO, async |rig| {
        let client = rig.client().await;
        assert_eq!(call(&client, "deaf", json!({})).await.expect("an answer"), "deaf from now on");
        let large = json!({"text": "x".repeat(1024 * 1024)});
        let (mut late, mut refused) = (0, 0);
        let deaf = (0..32).map(|_| call_within(&client, "echo", large.clone(), SHORT));
        for answer in join_all(deaf).await {
            let error = answer.expect_err("an error");
            match error.symbol {
                Symbol::Timeout => late += 1,
                Symbol::Unavailable if error.message.contains("does not read its input") => refused += 1,
                _ => panic!("{error}"),
            }
        }
        assert!((1..=10).contains(&late), "about 8 MiB may wait, not {late}");
        assert_eq!(late + refused, 32);
        assert_eq!(rig.count("call echo"), 0);
    });
}
