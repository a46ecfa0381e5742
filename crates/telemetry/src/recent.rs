//! [`Recent`]: how many calls of the last minutes went well. What is long ago says nothing about how things are now.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How many parts the time is in.
const PARTS: usize = 10;
/// How long each is.
const PART: Duration = Duration::from_secs(30);

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
}

impl Recent {
    pub(crate) fn new() -> Recent {
        Recent { start: Instant::now(), parts: Mutex::default() }
    }

    pub(crate) fn count(&self, is_well: bool) {
        self.count_at(self.start.elapsed(), is_well);
    }

    /// How many went well, and how many badly.
    pub(crate) fn counts(&self) -> (u64, u64) {
        self.counts_at(self.start.elapsed())
    }

    fn count_at(&self, since_start: Duration, is_well: bool) {
        let number = number(since_start);
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        let part = &mut parts[(number % PARTS as u64) as usize];
        if part.number != number {
            *part = Part { number, ..Part::default() };
        }
        *(if is_well { &mut part.well } else { &mut part.badly }) += 1;
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
        recent.count_at(at(0), false);
        recent.count_at(at(1), true);
        recent.count_at(at(100), true);
        assert_eq!(recent.counts_at(at(299)), (2, 1));
        assert_eq!(recent.counts_at(at(300)), (1, 0));
        recent.count_at(at(301), false);
        assert_eq!(recent.counts_at(at(302)), (1, 1));
        assert_eq!(recent.counts_at(at(10_000)), (0, 0));
    }
}
