//! Servers that send what is no message, or too much of one.

use serde_json::json;
use tidegate_protocol::Symbol;

use crate::rig::*;

const LIMIT: usize = 64 * 1024;

#[test]
fn a_banner_before_the_first_message_is_passed_over() {
    every_started(STDIO, "banner", async |rig| {
        let client = rig.client().await;
        works(&client).await;
        assert_eq!((rig.count("start"), rig.count("call")), (1, 1));
    });
}

#[test]
fn garbage_between_messages_is_passed_over() {
    every(STDIO, async |rig| {
        let client = rig.client().await;
        let (one, other) =
            tokio::join!(call(&client, "garbage", json!({})), call(&client, "slow", json!({})));
        assert_eq!((one.expect("an answer"), other.expect("an answer")), ("good".into(), "good".into()));
        works(&client).await;
        assert_eq!((rig.count("start"), rig.count("call garbage")), (1, 1));
    });
}

#[test]
fn an_answer_that_is_broken_fails_its_own_call_at_once() {
    every(STDIO, async |rig| {
        let client = rig.client().await;
        let (broken, other) = tokio::join!(
            fails(&client, "utf8", json!({}), "broken message"),
            call(&client, "slow", json!({}))
        );
        assert_ne!(broken.symbol, Symbol::Timeout);
        assert_eq!(other.expect("an answer"), "good");
        works(&client).await;
        assert_eq!(rig.count("start"), 1);
    });
}

#[test]
fn a_body_that_is_no_message_fails_its_call_at_once() {
    every(HTTP, async |rig| {
        let client = rig.client_with(|o| o.retry.max_retries = 3).await;
        for (tool, sentence) in
            [("garbage", "cannot be read"), ("utf8", "cannot be read"), ("html", "no MCP endpoint")]
        {
            let error = fails(&client, tool, json!({}), sentence).await;
            assert_eq!(error.symbol, Symbol::Unavailable, "{error}");
            works(&client).await;
            assert_eq!(rig.count(&format!("call {tool}")), 1);
        }
    });
}

#[test]
fn an_answer_over_the_limit_fails_its_own_call_and_names_the_limit() {
    every(ALL, async |rig| {
        let client = rig.client_with(|o| o.limits.max_bytes = LIMIT).await;
        let limit = LIMIT.to_string();
        for tool in ["oversize", "oversize_event"] {
            if tool == "oversize_event" && !rig.kind.http {
                continue;
            }
            for size in [LIMIT, 40 * LIMIT] {
                let (huge, other) = tokio::join!(
                    fails(&client, tool, json!({"size": size}), &limit),
                    call(&client, "slow", json!({}))
                );
                assert_eq!(huge.symbol, Symbol::TooLarge, "{huge}");
                assert_eq!(other.expect("the other call is unharmed"), "good");
            }
            assert_eq!(rig.count(&format!("call {tool}")), 2);
        }
        works(&client).await;
        assert!(rig.count("start") < 2 && rig.count("method initialize") < 2, "the connection goes on");
    });
}

#[test]
fn an_answer_within_the_limit_is_fine() {
    every(ALL, async |rig| {
        let client = rig.client_with(|o| o.limits.max_bytes = LIMIT).await;
        let size = LIMIT - 1024;
        let answer = call(&client, "oversize", json!({"size": size})).await.expect("an answer");
        assert_eq!(answer.len(), size);
    });
}
