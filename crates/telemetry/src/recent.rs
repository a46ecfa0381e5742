//! [`Recent`]: how many calls of the last minutes went well. What is long ago says nothing about how things are now.
//!
//! The time is in parts, each with its counts, and the oldest part becomes the newest. Counting is a few additions; only whoever begins a new part
//! takes a lock. The clock is one that nobody sets; should it jump all the same, what is a whole round away, on either side, does not count.

use std::sync::atomic::{AtomicU64, Ordering::Acquire, Ordering::Relaxed, Ordering::Release};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many parts the time is in.
const PARTS: usize = 10;
/// How many of these are now; the others are before.
const NOW: u64 = 2;

/// The calls of the last minutes.
#[derive(Debug)]
pub(crate) struct Recent {
    start: Instant,
    /// How long each part is, in nanoseconds.
    part: u64,
    parts: [Part; PARTS],
    /// Held while a new part begins.
    beginning: Mutex<()>,
}

#[derive(Debug, Default)]
struct Part {
    /// Which part of all time it is.
    number: AtomicU64,
    well: AtomicU64,
    badly: AtomicU64,
    /// How long those took that went well, in microseconds.
    us: AtomicU64,
}

impl Recent {
    /// Remembers calls for so long.
    pub(crate) fn new(window: Duration) -> Recent {
        let part = (window / PARTS as u32).max(Duration::from_millis(1));
        let part = u64::try_from(part.as_nanos()).unwrap_or(u64::MAX);
        Recent { start: Instant::now(), part, parts: Default::default(), beginning: Mutex::default() }
    }

    /// A call that ended then went well, and took so long, or badly.
    pub(crate) fn count(&self, ended: Instant, is_well: bool, took: Duration) {
        self.count_at(ended.saturating_duration_since(self.start), is_well, took);
    }

    /// How long calls took on average that ended well in the last fifth of the time, and before, if there were `enough` of both.
    pub(crate) fn latency(&self, enough: u64) -> Option<(Duration, Duration)> {
        self.latency_at(self.start.elapsed(), enough)
    }

    /// How many went well, and how many badly.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.counts_at(self.start.elapsed())
    }

    fn count_at(&self, since_start: Duration, is_well: bool, took: Duration) {
        let part = self.begun(self.number(since_start));
        if is_well {
            part.well.fetch_add(1, Relaxed);
            // A day in microseconds is far from the end of the numbers.
            part.us.fetch_add(took.as_micros().min(1 << 40) as u64, Relaxed);
        } else {
            part.badly.fetch_add(1, Relaxed);
        }
    }

    /// The part with this number. What was in its place is long ago, and forgotten.
    fn begun(&self, number: u64) -> &Part {
        let part = &self.parts[(number % PARTS as u64) as usize];
        if part.number.load(Acquire) != number {
            let _beginning = self.beginning.lock().unwrap_or_else(PoisonError::into_inner);
            if part.number.load(Acquire) != number {
                [&part.well, &part.badly, &part.us].into_iter().for_each(|count| count.store(0, Relaxed));
                part.number.store(number, Release);
            }
        }
        part
    }

    fn latency_at(&self, since_start: Duration, enough: u64) -> Option<(Duration, Duration)> {
        let now = self.number(since_start);
        let average = |is_now: bool| {
            let of = self.fresh(now).filter(|part| (part.number.load(Relaxed) + NOW > now) == is_now);
            let (count, us) = of.fold((0, 0), |(count, us), part| {
                (count + part.well.load(Relaxed), us + part.us.load(Relaxed))
            });
            (count >= enough.max(1)).then(|| Duration::from_micros(us / count))
        };
        Some((average(true)?, average(false)?))
    }

    fn counts_at(&self, since_start: Duration) -> (u64, u64) {
        let fresh = self.fresh(self.number(since_start));
        fresh.fold((0, 0), |(well, badly), part| {
            (well + part.well.load(Relaxed), badly + part.badly.load(Relaxed))
        })
    }

    fn fresh(&self, now: u64) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| part.number.load(Acquire).abs_diff(now) < PARTS as u64)
    }

    fn number(&self, since_start: Duration) -> u64 {
        // The numbers end after five centuries.
        u64::try_from(since_start.as_nanos()).unwrap_or(u64::MAX) / self.part
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recent() -> Recent {
        Recent::new(Duration::from_secs(300))
    }

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let recent = recent();
        let at = Duration::from_secs;
        recent.count_at(at(0), false, Duration::ZERO);
        recent.count_at(at(1), true, Duration::ZERO);
        recent.count_at(at(100), true, Duration::ZERO);
        assert_eq!(recent.counts_at(at(299)), (2, 1));
        assert_eq!(recent.counts_at(at(300)), (1, 0));
        recent.count_at(at(301), false, Duration::ZERO);
        assert_eq!(recent.counts_at(at(302)), (1, 1));
        assert_eq!(recent.counts_at(at(10_000)), (0, 0));
    }

    #[test]
    fn the_last_fifth_is_compared_with_what_was_before() {
        let recent = recent();
        let at = Duration::from_secs;
        (0..20).for_each(|_| recent.count_at(at(10), true, Duration::from_millis(10)));
        assert_eq!(recent.latency_at(at(20), 20), None, "there is nothing to compare it with");
        (0..19).for_each(|_| recent.count_at(at(100), true, Duration::from_millis(50)));
        assert_eq!(recent.latency_at(at(100), 20), None, "they are too few");
        recent.count_at(at(100), true, Duration::from_millis(50));
        recent.count_at(at(100), false, Duration::from_secs(60));
        let both = Some((Duration::from_millis(50), Duration::from_millis(10)));
        assert_eq!((recent.latency_at(at(100), 20), recent.latency_at(at(100), 21)), (both, None));
        assert_eq!(recent.latency_at(at(1_000), 20), None);
        assert_eq!(recent.latency_at(at(1_000), 0), None, "nothing has no average");
    }

    /// Whatever the clock does, only what is near counts, and nothing that was counted elsewhere comes back.
    #[test]
    fn a_clock_that_jumps() {
        let recent = recent();
        let at = Duration::from_secs;
        recent.count_at(at(1_000_000), false, Duration::ZERO);
        assert_eq!(recent.counts_at(at(1_000_000)), (0, 1));
        // Back by days.
        assert_eq!(recent.counts_at(at(10)), (0, 0));
        recent.count_at(at(10), true, Duration::MAX);
        assert_eq!(recent.counts_at(at(10)), (1, 0));
        assert_eq!(recent.latency_at(at(10), 1), None);
        // A moment back, as two threads may see it.
        recent.count_at(at(60), true, Duration::ZERO);
        assert_eq!((recent.counts_at(at(60)), recent.counts_at(at(29))), ((2, 0), (2, 0)));
        // To the end of time.
        recent.count_at(Duration::MAX, false, Duration::ZERO);
        assert_eq!(recent.counts_at(Duration::MAX), (0, 1));
        assert_eq!(recent.counts_at(at(60)).1, 0);
    }

    #[test]
    fn many_threads_lose_nothing() {
        let recent = recent();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for second in 0..290 {
                        recent.count_at(
                            Duration::from_secs(second),
                            second % 2 == 0,
                            Duration::from_millis(1),
                        );
                    }
                });
            }
        });
        assert_eq!(recent.counts_at(Duration::from_secs(290)), (4 * 145, 4 * 145));
    }
}
