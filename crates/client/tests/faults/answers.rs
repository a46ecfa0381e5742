//! Answers that nobody asked for, or that are ambiguous.

use std::time::Duration;

use serde_json::json;
use tidegate_protocol::Symbol;

use crate::rig::*;
use crate::wire::Era;

#[test]
fn a_second_answer_is_dropped() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        for stream in [0, 1] {
            let answer = call(&client, "twice", json!({"stream": stream})).await;
            assert_eq!(answer.expect("an answer"), "good");
            works(&client).await;
        }
        assert_eq!((rig.count("call twice"), rig.count("call echo")), (2, 2));
    });
}

#[test]
fn an_answer_to_another_request_is_no_answer() {
    every(ALL, async |rig| {
        let client = rig.client_with(|o| o.retry.max_retries = 3).await;
        if rig.kind.http {
            // There can be no other answer, so that nobody need wait.
            let error = fails(&client, "wrong_id", json!({}), "answered another request").await;
            assert_eq!(error.symbol, Symbol::Unavailable, "{error}");
        } else {
            late(&client, "wrong_id", json!({})).await;
        }
        works(&client).await;
        assert_eq!((rig.count("call wrong_id"), rig.count("call echo")), (1, 1));
    });
}

#[test]
fn an_ambiguous_answer_is_refused_at_once() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        let error = call_within(&client, "duplicate", json!({}), Duration::from_secs(60));
        let error = tokio::time::timeout(Duration::from_secs(10), error).await.expect("at once");
        let error = error.expect_err("an error");
        assert!(error.message.contains("result"), "the key is named: {error}");
        works(&client).await;
        assert_eq!(rig.count("call duplicate"), 1);
    });
}

#[test]
fn calls_side_by_side_get_their_own_answers() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        let mut calls = Vec::new();
        for n in 0..40 {
            let tool = ["echo", "slow", "twice", "wrong_id", "duplicate"][n % 5];
            let client = client.clone();
            let deadline = if tool == "wrong_id" { SHORT } else { PATIENCE };
            calls.push(tokio::spawn(
                async move { (tool, call_within(&client, tool, json!({}), deadline).await) },
            ));
        }
        for answer in calls {
            let (tool, answer) = answer.await.expect("no panic");
            match tool {
                "wrong_id" | "duplicate" => assert!(answer.is_err(), "{tool}"),
                _ => assert_eq!(answer.expect(tool), "good"),
            }
        }
        assert_eq!(rig.count("call"), 40);
        if rig.kind.era == Era::Legacy && rig.kind.http {
            assert_eq!(rig.count("method initialize"), 1);
        }
    });
}
