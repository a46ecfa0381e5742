//! What fails again and again leaves nothing in memory.

use std::time::Duration;

use serde_json::{Value, json};
use tidegate_client::Client;

use crate::rig::*;

/// How much the process may grow while nothing of consequence happens.
const FEW: usize = 4 * 1024 * 1024;

/// Resident memory.
fn resident() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("/proc");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("VmRSS");
    let kilobytes: usize = line.split_whitespace().nth(1).and_then(|n| n.parse().ok()).expect("a number");
    kilobytes * 1024
}

/// Makes failing calls, a thousand of them, and sees that the second half costs no memory.
async fn a_thousand(client: &Client, tool: &str, arguments: Value, deadline: Duration) {
    let mut half = 0;
    for n in 0..1000 {
        let answer = call_within(client, tool, arguments.clone(), deadline).await;
        assert!(answer.is_err(), "call {n} of {tool}");
        if n == 500 {
            half = resident();
        }
    }
    let grown = resident().saturating_sub(half);
    assert!(grown < FEW, "{tool}: {grown} bytes more after the second half");
}

#[test]
fn a_thousand_failures() {
    every_alone(ALL, async |rig| {
        let client = rig.client().await;
        works(&client).await;
        let before = tasks();
        a_thousand(&client, "hang", json!({}), Duration::from_millis(5)).await;
        a_thousand(&client, "duplicate", json!({}), PATIENCE).await;
        if rig.kind.http {
            a_thousand(&client, "garbage", json!({}), PATIENCE).await;
            a_thousand(&client, "crash", json!({}), PATIENCE).await;
            rig.http().refuse("tools/call", 1000, 503, "");
            a_thousand(&client, "echo", json!({}), PATIENCE).await;
        } else {
            a_thousand(&client, "wrong_id", json!({}), Duration::from_millis(5)).await;
            a_thousand(&client, "utf8", json!({}), PATIENCE).await;
        }
        assert!(
            within(Duration::from_secs(4), || tasks() <= before).await,
            "{} tasks, not {before}",
            tasks()
        );
        works(&client).await;
    });
}

#[test]
fn a_flood() {
    every_alone(ALL, async |rig| {
        let client = rig.client().await;
        let mut before = 0;
        for round in 0..2 {
            let slow = |_| std::thread::sleep(Duration::from_micros(20));
            let flood = client.call("flood", json!({"count": 100_000})).timeout(Duration::from_secs(60));
            let answer = bounded(Duration::from_secs(60), flood.on_progress(slow)).await;
            assert_eq!(answer.expect("the answer").text(), "good");
            let grown = resident().saturating_sub(before);
            assert!(round == 0 || grown < FEW, "{grown} bytes more after flood {round}");
            before = resident();
        }
    });
}
