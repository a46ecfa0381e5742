//! [`Backoff`]: how long to wait before starting again what keeps failing; [`Pace`]: who has to.

use std::time::{Duration, Instant};

/// Who starts something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pace {
    /// A call: it keeps to the pause, and its failures count.
    Caller,
    /// A probe: it goes at once, and its failures make the pause no longer.
    Probe,
}

/// Grows with every failure in a row, from nothing to half a minute.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(250);
    const MOST: Duration = Duration::from_secs(30);

    /// It failed. The first failure costs nothing: what worked yesterday may work at once.
    pub(crate) fn failed(&mut self, now: Instant) {
        // What failed long ago says nothing about today.
        if self.until.is_some_and(|until| now.saturating_duration_since(until) > Self::MOST) {
            self.failures = 0;
        }
        self.failures += 1;
        let pause = match self.failures {
            1 => Duration::ZERO,
            n => Self::FIRST.saturating_mul(1 << (n - 2).min(16)).min(Self::MOST),
        };
        self.until = Some(now + pause);
    }

    /// It works.
    pub(crate) fn succeeded(&mut self) {
        *self = Backoff::default();
    }

    /// How long to wait yet.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_is_bounded() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let mut pauses = Vec::new();
        for _ in 0..12 {
            backoff.failed(now);
            pauses.push(backoff.wait(now).as_millis());
        }
        assert_eq!(pauses, [0, 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 30000, 30000]);
        assert_eq!(backoff.wait(now + Duration::from_secs(29)), Duration::from_secs(1));
        let later = now + Duration::from_secs(61);
        backoff.failed(later);
        assert_eq!(backoff.wait(later), Duration::ZERO, "what failed long ago does not count");
        backoff.succeeded();
        assert_eq!(backoff.wait(now), Duration::ZERO);
    }
}
