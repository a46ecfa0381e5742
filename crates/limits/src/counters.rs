//! [`Counters`]: how often somebody may still do something, and [`MemoryCounters`], which count in this process.

use std::collections::HashMap;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::middleware::NoOpMiddleware;
use governor::nanos::Nanos;
use governor::state::{InMemoryState, NotKeyed};
use governor::{Quota, RateLimiter};
use tidegate_config::Rate;

use crate::clock::{ToldClock, now};
use crate::keyed::{CounterKey, KeyedMap};

/// How many keys are counted at once.
const MOST_KEYS: usize = 65_536;

/// What came of taking one from each of some buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taken {
    /// All had one.
    All,
    /// The bucket with this index is empty until after this time. From those before it, one was taken; those behind it were not asked.
    AllBefore(usize, Duration),
}

/// Counts how often things are done. Each key has a bucket of as many as its rate says, which fills up again evenly.
pub trait Counters: Send + Sync + 'static {
    /// Takes one from the bucket of each key, in their order, until one is empty. From that one, nothing is taken.
    fn take(&self, wanted: &[(CounterKey, Rate)]) -> Taken;

    /// What is left in the emptiest bucket of each limit that somebody has used lately, from 0 to 1, by the number of the limit. Nothing
    /// where that cannot be told.
    fn emptiest(&self) -> HashMap<u64, f64> {
        HashMap::new()
    }
}

/// Counts in this process, for at most 65,536 keys; beyond that, newcomers share one bucket for each limit.
#[derive(Debug)]
pub struct MemoryCounters {
    buckets: KeyedMap<Bucket>,
}

type Limiter = RateLimiter<NotKeyed, InMemoryState, ToldClock, NoOpMiddleware<Nanos>>;

#[derive(Debug)]
struct Bucket {
    limiter: Limiter,
    /// When something was last taken from it.
    used: Nanos,
    /// In which time it fills up.
    fills_in: Nanos,
    /// When it will be full, if nothing is taken from it until then.
    full_at: Nanos,
    /// The number of the limit that it is for.
    limit: u64,
}

impl Bucket {
    /// What is left in it, from 0 to 1.
    fn left(&self, now: Nanos) -> f64 {
        let missing = self.full_at.saturating_sub(now).as_u64() as f64;
        (1.0 - missing / self.fills_in.as_u64().max(1) as f64).clamp(0.0, 1.0)
    }
}

impl MemoryCounters {
    /// Nothing has been counted yet.
    pub fn new() -> MemoryCounters {
        MemoryCounters::with_room_for(MOST_KEYS)
    }

    pub(crate) fn with_room_for(keys: usize) -> MemoryCounters {
        MemoryCounters { buckets: KeyedMap::new(keys) }
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.buckets.len()
    }
}

impl Default for MemoryCounters {
    fn default() -> MemoryCounters {
        MemoryCounters::new()
    }
}

impl Counters for MemoryCounters {
    fn take(&self, wanted: &[(CounterKey, Rate)]) -> Taken {
        if wanted.is_empty() {
            return Taken::All;
        }
        let now = now();
        for (at, (key, rate)) in wanted.iter().enumerate() {
            if let Err(after) = self.take_one(*key, *rate, now) {
                return Taken::AllBefore(at, after);
            }
        }
        Taken::All
    }

    fn emptiest(&self) -> HashMap<u64, f64> {
        let now = now();
        let mut emptiest = HashMap::new();
        self.buckets.for_each(|bucket| {
            let least = emptiest.entry(bucket.limit).or_insert(1.0);
            *least = bucket.left(now).min(*least);
        });
        emptiest
    }
}

impl MemoryCounters {
    /// Takes one from a bucket, or says when there will be one.
    fn take_one(&self, key: CounterKey, rate: Rate, now: Nanos) -> Result<(), Duration> {
        let make = || {
            let burst = NonZeroU32::new(rate.calls).unwrap_or(NonZeroU32::MIN);
            let one = replenished_in(rate);
            // A time of zero is none; nobody can say so.
            let quota = Quota::with_period(one).unwrap_or(Quota::per_second(burst)).allow_burst(burst);
            let limiter = RateLimiter::direct_with_clock(quota, ToldClock::at(now));
            let fills_in = one.saturating_mul(burst.get()).into();
            Bucket { limiter, used: now, fills_in, full_at: now, limit: key.limit }
        };
        self.buckets.with(
            key,
            // It is as good as a new one.
            |bucket| bucket.used + bucket.fills_in <= now,
            make,
            |bucket| {
                // Another thread may have read the clock later and come first.
                let now = now.max(bucket.used);
                bucket.limiter.clock().tell(now);
                bucket.limiter.check().map_err(|refused| refused.wait_time_from(now))?;
                bucket.used = now;
                bucket.full_at = bucket.full_at.max(now) + Nanos::from(replenished_in(rate));
                Ok(())
            },
        )
    }
}

/// In which time there is one more.
fn replenished_in(rate: Rate) -> Duration {
    (rate.per.duration() / rate.calls.max(1)).max(Duration::from_nanos(1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use tidegate_config::RateUnit;

    use super::*;

    proptest! {
        /// However calls come: never more than the bucket holds and what has come into it since, and never less.
        #[test]
        fn as_many_as_the_rate_says(
            calls in 1..50u32,
            unit in prop_oneof![Just(RateUnit::Second), Just(RateUnit::Minute), Just(RateUnit::Day)],
            steps in prop::collection::vec((0..200_000u64, 0..20u32), 1..40),
        ) {
            let rate = Rate { calls, per: unit };
            let one = replenished_in(rate);
            let key = CounterKey { limit: 1, subject: 2 };
            let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
            runtime.unwrap().block_on(async {
                let counters = MemoryCounters::with_room_for(64);
                // What is in the bucket, in the time that it takes to come into it.
                let full = one * calls;
                let mut level = full;
                for (milliseconds, times) in steps {
                    let pause = Duration::from_millis(milliseconds);
                    tokio::time::advance(pause).await;
                    level = level.saturating_add(pause).min(full);
                    for _ in 0..times {
                        match counters.take(&[(key, rate)]) {
                            Taken::All => {
                                assert!(level >= one, "there was none left");
                                level -= one;
                                let left = level.as_secs_f64() / full.as_secs_f64();
                                assert!((counters.emptiest()[&1] - left).abs() < 1e-6, "{left}");
                            }
                            Taken::AllBefore(at, after) => {
                                assert!(level < one, "there was one left");
                                assert_eq!((at, after), (0, one - level));
                            }
                        }
                    }
                }
            });
        }
    }
}
