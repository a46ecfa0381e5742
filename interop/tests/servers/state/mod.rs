//! Servers that remember something between calls, behind the gateway: one process each, whichever clients call.

mod rig;

use std::time::Instant;

use futures_util::future::join_all;
use serde_json::json;

use crate::meeting::Over;
use rig::{Kind, Rig};

const KINDS: [Kind; 3] = [Kind::ModernAskable, Kind::Legacy, Kind::Bare];
/// How often each client calls.
const CALLS: u64 = 10;

/// One step of a line of thought; the server says how many it has heard.
async fn think(client: &tidegate_client::Client, number: u64) -> u64 {
    let thought = json!({"thought": "and then", "nextThoughtNeeded": true, "thoughtNumber": number, "totalThoughts": 99});
    let said = rig::call(client, "thinking_sequentialthinking", thought).await;
    let said: serde_json::Value = serde_json::from_str(&said).expect("JSON");
    said["thoughtHistoryLength"].as_u64().expect("a number")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_of_thought_goes_on_whoever_thinks() {
    let rig = Rig::start(&["thinking"]).await;
    let mut expected = 0;
    for kind in KINDS {
        let client = rig.client(Over::Http, kind).await;
        for number in 1..=CALLS {
            expected += 1;
            assert_eq!(think(&client, number).await, expected, "{kind:?}");
        }
        client.close().await;
    }
    assert_eq!(rig.processes().await, 1);
    rig.stop().await;
    for kind in KINDS {
        let client = rig::over_stdio(&["thinking"], kind).await;
        for number in 1..=CALLS {
            assert_eq!(think(&client, number).await, number, "{kind:?} over stdio");
        }
        client.close().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_keeps_its_page() {
    let count = json!({"function": "() => { window.count = (window.count || 0) + 1; return 'counted ' + window.count; }"});
    let page = json!({"url": "data:text/html,<title>A page</title>"});
    let visit = async |client: &tidegate_client::Client, at: &str| {
        rig::call(client, "browser_browser_navigate", page.clone()).await;
        for number in 1..=CALLS {
            let said = rig::call(client, "browser_browser_evaluate", count.clone()).await;
            assert!(said.contains(&format!("counted {number}\"")), "{at}, call {number}: {said}");
        }
        client.close().await;
    };
    let rig = Rig::start(&["browser"]).await;
    for kind in KINDS {
        visit(&rig.client(Over::Http, kind).await, &format!("{kind:?} over HTTP")).await;
    }
    assert_eq!(rig.processes().await, 1);
    rig.stop().await;
    visit(&rig::over_stdio(&["browser"], Kind::ModernAskable).await, "over stdio").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_of_all_kinds_at_once_need_one_process_for_each_server() {
    let rig = Rig::start(&["thinking", "everything"]).await;
    let clients = join_all((0..9).map(|n| rig.client(Over::Http, KINDS[n % 3]))).await;
    let calls = clients.iter().map(|client| async {
        think(client, 1).await;
        let said = rig::call(client, "everything_echo", json!({"message": "hi"})).await;
        assert!(said.contains("hi"), "{said}");
        assert!(client.tools().await.expect("tools").len() > 2);
    });
    join_all(calls).await;
    assert_eq!(rig.processes().await, 2);
    join_all(clients.iter().map(|client| client.close())).await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_of_one_client_run_side_by_side() {
    let rig = Rig::start(&["everything"]).await;
    let client = rig.client(Over::Http, Kind::ModernAskable).await;
    let second = json!({"duration": 1, "steps": 1});
    let begun = Instant::now();
    let calls =
        (0..16).map(|_| rig::call(&client, "everything_trigger-long-running-operation", second.clone()));
    join_all(calls).await;
    let took = begun.elapsed();
    // One after the other they take sixteen seconds; side by side little more than one.
    assert!(took.as_secs() < 8, "they took {took:?}");
    assert_eq!(rig.processes().await, 1);
    client.close().await;
    rig.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_abandoned_sessions_leave_one_process() {
    let rig = Rig::start(&["thinking"]).await;
    for number in 1..=200 {
        let client =
            rig.client(Over::Http, if number % 2 == 0 { Kind::Legacy } else { Kind::ModernAskable }).await;
        assert_eq!(think(&client, 1).await, number);
        // It never says that it has left.
        std::mem::forget(client);
    }
    assert_eq!(rig.processes().await, 1);
    rig.stop().await;
}
