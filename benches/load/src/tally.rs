//! [`Tally`]: what came of all calls.

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::Value;

use crate::exchange::Answer;

/// How many different failures are shown.
const MOST_SHOWN: usize = 10;
/// How long all may take to send one call.
const SENT_WITHIN: Duration = Duration::from_secs(30);

/// What came of one call.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// A result.
    Good,
    /// The refusal of a limit.
    Limited,
    /// Anything else that was answered.
    Failed(String),
    /// No answer, or half of one.
    Closed(String),
}

impl Outcome {
    pub(crate) fn of(answer: &Answer) -> Outcome {
        let message: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
        let result = &message["result"];
        if answer.status == 200 && result.is_object() && result["isError"] != true {
            return Outcome::Good;
        }
        let of_error = &message["error"]["data"]["symbol"];
        let of_tool = &result["_meta"]["dev.tidegate/error"]["symbol"];
        match of_error.as_str().or(of_tool.as_str()) {
            Some("RATE_LIMIT_ERROR") => Outcome::Limited,
            _ => Outcome::Failed(format!("{} {}", answer.status, String::from_utf8_lossy(&answer.body))),
        }
    }
}

/// What came of all calls.
#[derive(Default)]
pub(crate) struct Tally {
    sent: AtomicU64,
    /// When the gateway was told to end.
    told: OnceLock<Instant>,
    counts: Mutex<Counts>,
}

#[derive(Default)]
struct Counts {
    good: u64,
    limited: u64,
    /// What else was answered, and how often.
    failed: BTreeMap<String, u64>,
    /// Of what was sent before the gateway was told to end: had no answer.
    lost: BTreeMap<String, u64>,
    /// Of what was sent after that.
    refused_at_the_end: u64,
    /// How many of those that were sent before the end were answered after it.
    answered_at_the_end: u64,
    /// How many connections were closed while nothing was asked on them, before the end.
    closed_early: u64,
    latencies: Vec<Duration>,
}

impl Tally {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One more call was sent as a whole.
    pub(crate) fn sent(&self) {
        self.sent.fetch_add(1, Relaxed);
    }

    /// Waits until so many more were sent.
    pub(crate) async fn until_sent(&self, more: u64) -> Result<()> {
        let (before, start) = (self.sent.load(Relaxed), Instant::now());
        while self.sent.load(Relaxed) < before + more {
            ensure!(start.elapsed() < SENT_WITHIN, "calls could not be sent");
            tokio::task::yield_now().await;
        }
        Ok(())
    }

    /// The gateway is told to end: what was sent before is accepted, and has to be answered.
    pub(crate) fn told_to_end(&self, now: Instant) {
        let _ = self.told.set(now);
    }

    /// A call that was sent has come to something; how long it took counts unless it was slow.
    pub(crate) fn count(&self, sent: Instant, took: Option<Duration>, outcome: Outcome) {
        let told = self.told.get().copied();
        let mut counts = self.counts();
        if told.is_none() {
            counts.latencies.extend(took);
        }
        if told.is_some_and(|told| sent < told) && !matches!(outcome, Outcome::Closed(_)) {
            counts.answered_at_the_end += 1;
        }
        match outcome {
            Outcome::Good => counts.good += 1,
            Outcome::Limited => counts.limited += 1,
            Outcome::Failed(what) => add(&mut counts.failed, what),
            Outcome::Closed(_) if told.is_some_and(|told| sent >= told) => counts.refused_at_the_end += 1,
            Outcome::Closed(what) => add(&mut counts.lost, what),
        }
    }

    /// A call could not be sent.
    pub(crate) fn unsent(&self, began: Instant, error: &io::Error) {
        match self.told.get() {
            Some(_) => self.counts().refused_at_the_end += 1,
            None => add(&mut self.counts().failed, format!("not sent after {:?}: {error}", began.elapsed())),
        }
    }

    /// A connection ended on which nothing was asked.
    pub(crate) fn ended_idle(&self) {
        if self.told.get().is_none() {
            self.counts().closed_early += 1;
        }
    }

    /// Says what came of it; an error if something did that must not.
    pub(crate) fn print(&self) -> Result<()> {
        let mut counts = self.counts();
        let Counts { good, limited, refused_at_the_end, answered_at_the_end, closed_early, .. } = *counts;
        let [failed, lost] = [&counts.failed, &counts.lost].map(|of| of.values().sum::<u64>());
        counts.latencies.sort_unstable();
        let latency = |share: f64| {
            let at = (counts.latencies.len() as f64 * share) as usize;
            counts
                .latencies
                .get(at.min(counts.latencies.len().saturating_sub(1)))
                .copied()
                .unwrap_or_default()
        };
        println!("answers: {good} good, {limited} refused by limits, {failed} other failures, {lost} lost");
        println!("time: p50 {:?}, p99 {:?}, at most {:?}", latency(0.5), latency(0.99), latency(1.0));
        println!(
            "at the end: {answered_at_the_end} calls were still answered, {refused_at_the_end} that came later were not"
        );
        for (what, count) in counts.failed.iter().chain(&counts.lost).take(MOST_SHOWN) {
            println!("  {count} x {what}");
        }
        ensure!(good > 0, "no call was answered well");
        ensure!(failed == 0, "{failed} calls failed for another reason than a limit");
        ensure!(lost == 0, "{lost} calls were lost that were sent before the gateway was told to end");
        ensure!(closed_early == 0, "{closed_early} connections were closed while they were in use");
        Ok(())
    }
}

fn add(counts: &mut BTreeMap<String, u64>, mut what: String) {
    if let Some((end, _)) = what.char_indices().nth(300) {
        what.truncate(end);
    }
    // There is a bound for what is told apart.
    let key = if counts.contains_key(&what) || counts.len() < 100 { what } else { "others".to_owned() };
    *counts.entry(key).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_answer_is() {
        let of = |status, body: &str| Outcome::of(&Answer { status, body: body.into(), is_last: false });
        assert_eq!(of(200, r#"{"result":{"content":[]}}"#), Outcome::Good);
        assert_eq!(of(429, r#"{"error":{"data":{"symbol":"RATE_LIMIT_ERROR"}}}"#), Outcome::Limited);
        let tool =
            r#"{"result":{"isError":true,"_meta":{"dev.tidegate/error":{"symbol":"RATE_LIMIT_ERROR"}}}}"#;
        assert_eq!(of(200, tool), Outcome::Limited);
        for (status, body) in [
            (500, r#"{"result":{}}"#),
            (200, r#"{"result":{"isError":true}}"#),
            (503, r#"{"error":{"data":{"symbol":"OVERLOADED"}}}"#),
            (200, ""),
        ] {
            assert!(matches!(of(status, body), Outcome::Failed(_)), "{status} {body}");
        }
    }

    #[test]
    fn what_was_sent_before_the_end_is_lost_without_an_answer_and_what_came_later_is_not() {
        let tally = Tally::default();
        let before = Instant::now();
        let told = before + Duration::from_millis(1);
        let closed = || Outcome::Closed("closed".to_owned());
        tally.count(before, None, Outcome::Good);
        tally.told_to_end(told);
        tally.count(told, None, closed());
        assert!(tally.print().is_ok());
        tally.count(before, None, closed());
        assert!(tally.print().unwrap_err().to_string().starts_with("1 calls were lost"));
    }
}
