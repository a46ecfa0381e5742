//! Servers that ask too much, or at the wrong time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use serde_json::{Map, json};
use tidegate_client::{Client, ElicitAnswer, Handlers};

use crate::rig::*;

/// Answers every question, and counts.
fn patient(count: &Arc<AtomicUsize>) -> Handlers {
    let count = count.clone();
    Handlers::new().on_elicit(false, move |_| {
        count.fetch_add(1, Ordering::Relaxed);
        async { ElicitAnswer::Accept(Map::from_iter([("name".to_owned(), json!("me"))])) }
    })
}

async fn answering(rig: &Rig, count: &Arc<AtomicUsize>) -> Client {
    let connecting = rig.builder(|o| o.max_rounds = 8).handlers(patient(count)).connect();
    rig.keep(bounded(Duration::from_secs(20), connecting).await.expect("a connection"))
}

#[test]
fn a_question_is_answered() {
    every(ALL, async |rig| {
        let count = Arc::default();
        let client = answering(rig, &count).await;
        let answer = call(&client, "ask", json!({})).await.expect("an answer");
        assert!(answer.contains("me"), "{answer}");
        assert_eq!(count.load(Ordering::Relaxed), 1);
    });
}

#[test]
fn a_call_that_asks_without_end_is_given_up() {
    every(ALL, async |rig| {
        let count = Arc::default();
        let client = answering(rig, &count).await;
        let answer = call_within(&client, "ask_forever", json!({}), Duration::from_secs(20)).await;
        let error = answer.expect_err("an error");
        assert!(error.message.contains("asked for input 8 times"), "{error}");
        assert!(count.load(Ordering::Relaxed) <= 8);
        works(&client).await;
    });
}

#[test]
fn a_question_to_nobody_is_refused() {
    every(ALL, async |rig| {
        let client = rig.client().await;
        // Without handlers nothing was declared that could be asked.
        let answer = call(&client, "ask", json!({})).await;
        if rig.kind.era == crate::wire::Era::Legacy {
            assert_eq!(answer.expect("an answer, though to no question"), "null");
            let refusal = rig.seen().into_iter().find(|line| line.starts_with("answer")).expect("an answer");
            // 2025-11-25 client/elicitation: a mode that was not declared.
            assert!(refusal.contains("-32602"), "{refusal}");
        } else {
            assert_eq!(answer.expect_err("an error").code, "E205");
        }
        works(&client).await;
    });
}

#[test]
fn a_question_outside_of_any_call() {
    every_started(LEGACY, "asks", async |rig| {
        // Nobody to ask: the server hears that.
        let client = rig.client().await;
        rig.until_seen("answer", 1).await;
        assert!(rig.seen().iter().any(|line| line.starts_with("answer") && line.contains("-32602")));
        works(&client).await;
        client.close().await;
        // Somebody to ask: they answer.
        let count = Arc::default();
        let client = answering(rig, &count).await;
        rig.until_seen("answer", 2).await;
        assert!(rig.seen().iter().any(|line| line.starts_with("answer") && line.contains("accept")));
        works(&client).await;
    });
}
