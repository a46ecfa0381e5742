//! [`Runs`]: what each run has done, and whether it goes round in circles.
//!
//! A run is what a principal does at an endpoint with one trace, or else over one session or connection, or else altogether. Its window begins
//! with its first call; the first call after the window has ended begins a new one. A run that was not used for longest makes room for
//! another, those with calls under way last. Runs of one principal share a part of the room with some others', so that nobody can push out
//! the runs of everybody.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tidegate_config::RunSettings;
use tidegate_service::{Call, CorrelationId, Principal};
use tokio::time::Instant;

use crate::keyed::{Hashed, KeyMaker, lock};

const SHARDS: usize = 16;
/// How many runs are remembered.
const MOST_RUNS: usize = 16_384;
/// How many different calls of a run are remembered.
const MOST_CALLS: usize = 256;

/// Which run a call belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RunKey {
    shard: usize,
    hash: u64,
}

impl RunKey {
    pub(crate) fn of(call: &Call, keys: &KeyMaker) -> RunKey {
        let Principal { issuer, subject, tenant } = &call.context.principal;
        let user = [issuer.as_deref(), subject.as_deref(), tenant.as_deref()];
        let shard = keys.hash(user) as usize % SHARDS;
        let trace =
            call.params.meta().and_then(|meta| CorrelationId::from_traceparent(&meta.str("traceparent")?));
        let caller = call.context.caller.filter(|_| trace.is_none());
        let [issuer, subject, tenant] = user;
        let trace = trace.as_ref().map(|trace| trace.as_str());
        let whose = [issuer, subject, tenant, call.context.endpoint.as_deref(), trace];
        RunKey { shard, hash: keys.hash_with(whose, &caller) }
    }
}

/// Of what a run has used up its budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverBudget {
    Calls(u64),
    Repeats(u32),
    Bytes(u64),
    Time(Duration),
}

/// A call as the budget sees it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Booking {
    pub(crate) key: RunKey,
    /// What tells it from other calls; `None` if it may be repeated.
    pub(crate) digest: Option<u64>,
    /// How many bytes were booked for it.
    pub(crate) bytes: u64,
    /// Which window of the run it is booked in.
    window: u64,
}

#[derive(Debug)]
struct Run {
    /// Which window this is, among all.
    window: u64,
    since: Instant,
    last: Instant,
    under_way: u32,
    calls: u64,
    bytes: u64,
    time: Duration,
    /// The calls made lately and how often, the latest last.
    seen: VecDeque<(u64, u32)>,
}

/// What each run has done.
#[derive(Debug)]
pub(crate) struct Runs {
    shards: [Mutex<Hashed<Run>>; SHARDS],
    per_shard: usize,
    next_window: AtomicU64,
}

impl Runs {
    pub(crate) fn new() -> Runs {
        Runs {
            shards: std::array::from_fn(|_| Mutex::new(HashMap::default())),
            per_shard: MOST_RUNS / SHARDS,
            next_window: AtomicU64::new(0),
        }
    }

    /// Books a call, if the run may still make it.
    pub(crate) fn book(
        &self,
        settings: &RunSettings,
        key: RunKey,
        digest: Option<u64>,
        bytes: u64,
    ) -> Result<Booking, OverBudget> {
        let now = Instant::now();
        let mut shard = lock(&self.shards[key.shard]);
        if !shard.contains_key(&key.hash) && shard.len() >= self.per_shard {
            let oldest = shard.iter().min_by_key(|(_, run)| (run.under_way > 0, run.last));
            if let Some(oldest) = oldest.map(|(hash, _)| *hash) {
                shard.remove(&oldest);
            }
        }
        let begin = || Run::begin(self.next_window.fetch_add(1, Ordering::Relaxed), now);
        let run = shard.entry(key.hash).or_insert_with(begin);
        if now.saturating_duration_since(run.since) >= settings.window {
            *run = Run { under_way: run.under_way, ..begin() };
        }
        run.last = now;
        run.check(settings, digest, bytes)?;
        run.calls += 1;
        run.bytes = run.bytes.saturating_add(bytes);
        run.under_way += 1;
        if let Some(digest) = digest {
            run.note(digest);
        }
        Ok(Booking { key, digest, bytes, window: run.window })
    }

    /// A call that was booked was not made after all.
    pub(crate) fn undo(&self, booking: &Booking) {
        self.with(booking.key, |run| {
            run.under_way = run.under_way.saturating_sub(1);
            if run.window != booking.window {
                return;
            }
            run.calls = run.calls.saturating_sub(1);
            run.bytes = run.bytes.saturating_sub(booking.bytes);
            if let Some(at) = booking.digest.and_then(|digest| run.place_of(digest)) {
                run.seen[at].1 -= 1;
                if run.seen[at].1 == 0 {
                    run.seen.remove(at);
                }
            }
        });
    }

    /// A call has ended after so long, with a result of so many bytes.
    pub(crate) fn end(&self, booking: &Booking, time: Duration, bytes: u64) {
        self.with(booking.key, |run| {
            run.under_way = run.under_way.saturating_sub(1);
            if run.window == booking.window {
                run.time = run.time.saturating_add(time);
                run.bytes = run.bytes.saturating_add(bytes);
            }
        });
    }

    fn with(&self, key: RunKey, act: impl FnOnce(&mut Run)) {
        // One that had to make room is forgotten.
        if let Some(run) = lock(&self.shards[key.shard]).get_mut(&key.hash) {
            act(run);
        }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| lock(shard).len()).sum()
    }
}

impl Run {
    fn begin(window: u64, now: Instant) -> Run {
        Run {
            window,
            since: now,
            last: now,
            under_way: 0,
            calls: 0,
            bytes: 0,
            time: Duration::ZERO,
            seen: VecDeque::new(),
        }
    }

    fn check(&self, settings: &RunSettings, digest: Option<u64>, bytes: u64) -> Result<(), OverBudget> {
        let times = digest.and_then(|digest| self.place_of(digest)).map_or(0, |at| self.seen[at].1);
        match settings {
            RunSettings { repeats: Some(most), .. } if times >= *most => Err(OverBudget::Repeats(times)),
            RunSettings { calls: Some(most), .. } if self.calls >= *most => {
                Err(OverBudget::Calls(self.calls))
            }
            RunSettings { bytes: Some(most), .. } if self.bytes.saturating_add(bytes) > *most => {
                Err(OverBudget::Bytes(self.bytes))
            }
            RunSettings { time: Some(most), .. } if self.time >= *most => Err(OverBudget::Time(self.time)),
            _ => Ok(()),
        }
    }

    fn place_of(&self, digest: u64) -> Option<usize> {
        self.seen.iter().position(|(seen, _)| *seen == digest)
    }

    fn note(&mut self, digest: u64) {
        let times = self.place_of(digest).and_then(|at| self.seen.remove(at)).map_or(0, |(_, times)| times);
        if self.seen.len() >= MOST_CALLS {
            self.seen.pop_front();
        }
        self.seen.push_back((digest, times.saturating_add(1)));
    }
}
