//! The one clock of all limits. It is monotonic, so that nobody gains or loses anything when somebody sets the time; in tests it stands still
//! until it is told to go on.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use governor::clock::Clock;
use governor::nanos::Nanos;
use tokio::time::Instant;

/// What the clock shows: how long it is since a day before it was first looked at.
pub(crate) fn now() -> Nanos {
    static FIRST: OnceLock<Instant> = OnceLock::new();
    let (first, now) = (*FIRST.get_or_init(Instant::now), Instant::now());
    // A runtime whose time stands still may be behind another.
    let shown = match now.checked_duration_since(first) {
        Some(since) => DAY + since,
        None => DAY.saturating_sub(first.saturating_duration_since(now)),
    };
    shown.into()
}

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A clock that shows what it was told last: who takes something from a bucket knows the time already.
#[derive(Debug)]
pub(crate) struct ToldClock(AtomicU64);

impl ToldClock {
    pub(crate) fn at(now: Nanos) -> ToldClock {
        ToldClock(AtomicU64::new(now.as_u64()))
    }

    pub(crate) fn tell(&self, now: Nanos) {
        self.0.store(now.as_u64(), Ordering::Relaxed);
    }
}

impl Clone for ToldClock {
    fn clone(&self) -> ToldClock {
        ToldClock::at(self.now())
    }
}

impl Clock for ToldClock {
    type Instant = Nanos;

    fn now(&self) -> Nanos {
        self.0.load(Ordering::Relaxed).into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_and_never_back() {
        let before = now();
        assert_eq!(now(), before, "it stands still in tests");
        tokio::time::advance(Duration::from_secs(5)).await;
        assert_eq!(now(), before + Nanos::from(Duration::from_secs(5)));
        let clock = ToldClock::at(before);
        clock.tell(now());
        assert_eq!(clock.clone().now(), now());
    }
}
