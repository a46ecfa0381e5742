//! [`Clock`]: the one clock of all limits. It is monotonic, so that nobody gains or loses anything when somebody sets the time; in tests it
//! stands still until it is told to go on.

use std::ops::Add;

use governor::clock;
use governor::nanos::Nanos;
use tokio::time::Instant;

/// The clock of the runtime.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Clock;

/// What it shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Reading(pub(crate) Instant);

impl clock::Clock for Clock {
    type Instant = Reading;

    fn now(&self) -> Reading {
        Reading(Instant::now())
    }
}

impl Add<Nanos> for Reading {
    type Output = Reading;

    fn add(self, after: Nanos) -> Reading {
        Reading(self.0 + after.into())
    }
}

impl clock::Reference for Reading {
    fn duration_since(&self, earlier: Reading) -> Nanos {
        self.0.saturating_duration_since(earlier.0).into()
    }

    fn saturating_sub(&self, duration: Nanos) -> Reading {
        Reading(self.0.checked_sub(duration.into()).unwrap_or(self.0))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use governor::clock::{Clock as _, Reference};

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn it_goes_on_and_never_back() {
        let before = Clock.now();
        assert_eq!(Clock.now(), before, "it stands still in tests");
        tokio::time::advance(Duration::from_secs(5)).await;
        let after = Clock.now();
        assert_eq!(Duration::from(after.duration_since(before)), Duration::from_secs(5));
        assert_eq!(Duration::from(before.duration_since(after)), Duration::ZERO);
        assert_eq!(before + Duration::from_secs(5).into(), after);
        assert_eq!(after.saturating_sub(Duration::from_secs(5).into()), before);
    }
}
