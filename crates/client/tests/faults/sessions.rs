//! Sessions that the server forgets.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::json;
use tidegate_protocol::Symbol;

use crate::rig::*;

#[test]
fn a_forgotten_session_is_opened_again_and_the_call_made_once_more() {
    every(LEGACY_HTTP, async |rig| {
        let client = rig.client().await;
        works(&client).await;
        for round in 1..=3 {
            rig.http().forget_sessions();
            works(&client).await;
            assert_eq!(rig.count("unknown session"), round);
            assert_eq!((rig.count("method initialize"), rig.count("call echo")), (round + 1, round + 1));
        }
    });
}

#[test]
fn many_calls_that_find_their_session_forgotten_share_a_new_one() {
    every(LEGACY_HTTP, async |rig| {
        let client = rig.client().await;
        works(&client).await;
        rig.http().forget_sessions();
        let calls = (0..20).map(|_| call_within(&client, "slow", json!({}), Duration::from_secs(10)));
        for answer in join_all(calls).await {
            assert_eq!(answer.expect("an answer"), "good");
        }
        assert_eq!((rig.count("method initialize"), rig.count("call slow")), (2, 20));
    });
}

#[test]
fn a_server_that_forgets_every_session_at_once_is_not_asked_for_ever() {
    every(LEGACY_HTTP, async |rig| {
        let client = rig.client_with(|o| o.retry.max_retries = 3).await;
        rig.http().refuse("tools/call", 1000, 404, "");
        let error = fails(&client, "echo", json!({}), "no longer knows the session").await;
        assert_eq!(error.symbol, Symbol::SessionNotFound);
        assert_eq!((rig.count("refused"), rig.count("method initialize"), rig.count("call")), (2, 2, 0));
        rig.http().relent();
        works(&client).await;
    });
}

#[test]
fn the_end_of_a_session_is_told() {
    every(LEGACY_HTTP, async |rig| {
        let client = rig.client().await;
        works(&client).await;
        bounded(Duration::from_secs(5), client.close()).await;
        assert_eq!(rig.count("delete"), 1);
        let error = fails(&client, "echo", json!({}), "client is closed").await;
        assert_eq!(error.symbol, Symbol::Unavailable);
        assert_eq!(rig.count("method initialize"), 1);
    });
}
