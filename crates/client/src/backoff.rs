//! How long to wait before trying again: [`Backoff`] for what keeps failing when it is started, [`tidegate_service::Pause`] for a stream that
//! keeps breaking.

use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Symbol};

/// A process that ends sooner than this after its start has not really started.
pub(crate) const HEALTHY_AFTER: Duration = Duration::from_secs(30);
/// The longest that anybody is made to wait for a pause to be over; a longer one fails at once.
pub(crate) const PATIENCE: Duration = Duration::from_secs(1);

/// Grows with every failure in a row, from nothing to a minute. Calls and probes keep to it alike: a program that cannot
/// live is started no oftener because somebody looks after it.
#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until: Option<Instant>,
}

impl Backoff {
    const FIRST: Duration = Duration::from_secs(1);
    const MOST: Duration = Duration::from_secs(60);

    /// It failed. The first failure costs nothing: what worked yesterday may work at once.
    pub(crate) fn failed(&mut self, now: Instant) {
        match self.until {
            // It was started before the pause began, together with what failed then.
            Some(until) if now < until => return,
            // What failed long ago says nothing about today.
            Some(until) if now.saturating_duration_since(until) > Self::MOST => self.failures = 0,
            _ => {}
        }
        self.failures += 1;
        let pause = match self.failures {
            1 => Duration::ZERO,
            n => Self::FIRST.saturating_mul(1 << (n - 2).min(16)).min(Self::MOST),
        };
        self.until = Some(now + pause);
    }

    /// It was started, so nobody waits any more. Whether it really works shows when it ends.
    pub(crate) fn started(&mut self) {
        self.until = None;
    }

    /// It works, or somebody has set something right.
    pub(crate) fn reset(&mut self) {
        *self = Backoff::default();
    }

    /// How long to wait yet.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        self.until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }
}

/// What whoever comes in a long pause is told at once, instead of waiting for its end.
pub(crate) fn not_yet(pause: Duration, last: Option<&Error>) -> Error {
    let sentence = |why: &str| {
        format!("The server is not started again for another {:.1} s: {why}", pause.as_secs_f32())
    };
    let error = match last {
        Some(last) => {
            Error::new(Symbol::Unavailable, sentence(last.message())).with_detail(sentence(last.detail()))
        }
        None => Error::new(Symbol::Unavailable, sentence("it ended right after its start")),
    };
    error.unexecuted().with_retry_after(pause)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grows_and_is_bounded() {
        let mut now = Instant::now();
        let mut backoff = Backoff::default();
        let mut pauses = Vec::new();
        for _ in 0..10 {
            backoff.failed(now);
            pauses.push(backoff.wait(now).as_secs());
            now += backoff.wait(now);
        }
        assert_eq!(pauses, [0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let later = now + Duration::from_secs(61);
        backoff.failed(later);
        assert_eq!(backoff.wait(later), Duration::ZERO, "what failed long ago does not count");
    }

    #[test]
    fn what_fails_together_counts_once() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        for _ in 0..5 {
            backoff.failed(now);
        }
        assert_eq!(backoff.wait(now), Duration::from_secs(1));
    }

    #[test]
    fn a_start_ends_the_pause_and_only_life_ends_the_count() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        for _ in 0..3 {
            backoff.failed(now + backoff.wait(now));
        }
        backoff.started();
        assert_eq!(backoff.wait(now), Duration::ZERO);
        backoff.failed(now);
        assert_eq!(backoff.wait(now), Duration::from_secs(4));
        backoff.reset();
        backoff.failed(now);
        assert_eq!(backoff.wait(now), Duration::ZERO);
    }
}
