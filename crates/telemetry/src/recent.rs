//! [`Recent`]: how many calls of the last minutes went well. What is long ago says nothing about how things are now.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many parts the time is in.
const PARTS: usize = 10;
/// How long each is.
const PART: Duration = Duration::from_secs(30);
/// From how many calls on their average says something.
const ENOUGH: u64 = 20;

/// The calls of the last five minutes.
#[derive(Debug)]
pub(crate) struct Recent {
    start: Instant,
    parts: Mutex<[Part; PARTS]>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Part {
    /// Which part of all time it is.
    number: u64,
    well: u64,
    badly: u64,
    /// How long those took that went well, in microseconds.
    us: u64,
}

impl Recent {
    pub(crate) fn new() -> Recent {
        Recent { start: Instant::now(), parts: Mutex::default() }
    }

    /// A call went well, and took so long, or badly.
    pub(crate) fn count(&self, is_well: bool, took: Duration) {
        self.count_at(self.start.elapsed(), is_well, took);
    }

    /// How long calls took on average that ended well in the last minute, and in the four before, if there were enough of both.
    pub(crate) fn latency(&self) -> Option<(Duration, Duration)> {
        self.latency_at(self.start.elapsed())
    }

    /// How many went well, and how many badly.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.counts_at(self.start.elapsed())
    }

    fn count_at(&self, since_start: Duration, is_well: bool, took: Duration) {
        let number = number(since_start);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part = &mut parts[(number % PARTS as u64) as usize];
        if part.number != number {
            *part = Part { number, ..Part::default() };
        }
        match is_well {
            true => {
                part.well += 1;
                part.us = part.us.saturating_add(u64::try_from(took.as_micros()).unwrap_or(u64::MAX));
            }
            false => part.badly += 1,
        }
    }

    fn latency_at(&self, since_start: Duration) -> Option<(Duration, Duration)> {
        let now = number(since_start);
        let parts = *self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let average = |is_in: &dyn Fn(u64) -> bool| {
            let of = parts.iter().filter(|part| part.number + PARTS as u64 > now && is_in(part.number));
            let (count, us) =
                of.fold((0, 0u64), |(count, us), part| (count + part.well, us.saturating_add(part.us)));
            (count >= ENOUGH).then(|| Duration::from_micros(us / count))
        };
        Some((average(&|number| number + 1 >= now)?, average(&|number| number + 1 < now)?))
    }

    fn counts_at(&self, since_start: Duration) -> (u64, u64) {
        let now = number(since_start);
        let parts = *self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = parts.iter().filter(|part| part.number + PARTS as u64 > now);
        fresh.fold((0, 0), |(well, badly), part| (well + part.well, badly + part.badly))
    }
}

fn number(since_start: Duration) -> u64 {
    since_start.as_secs() / PART.as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_ago_is_forgotten() {
        let recent = Recent::new();
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
    fn the_last_minute_is_compared_with_those_before() {
        let recent = Recent::new();
        let at = Duration::from_secs;
        (0..20).for_each(|_| recent.count_at(at(10), true, Duration::from_millis(10)));
        assert_eq!(recent.latency_at(at(20)), None, "there is nothing to compare it with");
        (0..19).for_each(|_| recent.count_at(at(100), true, Duration::from_millis(50)));
        assert_eq!(recent.latency_at(at(100)), None, "they are too few");
        recent.count_at(at(100), true, Duration::from_millis(50));
        recent.count_at(at(100), false, Duration::from_secs(60));
        assert_eq!(recent.latency_at(at(100)), Some((Duration::from_millis(50), Duration::from_millis(10))));
        assert_eq!(recent.latency_at(at(1_000)), None);
    }
}
