//! [`BreakerSettings`]: when a breaker opens, for how long, and what it takes to close it again.

use std::time::Duration;

/// How a breaker is set up. The default opens after 5 failures in a row, for 30 s, and closes after one success.
///
/// ```
/// use std::time::Duration;
/// use tidegate_service::layers::{BreakerMode, BreakerSettings};
///
/// let patient = BreakerSettings { open_for: Duration::from_secs(5), ..BreakerSettings::default() };
/// assert_eq!(patient.mode, BreakerMode::Consecutive(5));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BreakerSettings {
    /// What is too much. Default: 5 failures in a row.
    pub mode: BreakerMode,
    /// For how long an open breaker refuses every call. Default 30 s.
    pub open_for: Duration,
    /// How many trial calls may run at once afterwards. Default 1.
    pub half_open_max: u32,
    /// How many trial calls must succeed to close the breaker. Default 1.
    pub success_threshold: u32,
}

/// Which failures open a breaker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BreakerMode {
    /// So many in a row.
    Consecutive(u32),
    /// A share of the last calls. Nothing is judged before that many calls have ended, and a call that succeeds never
    /// opens the breaker, even when the share of failures is still too high.
    Rate {
        /// How many calls are looked at.
        window: u32,
        /// From how many percent of failures on the breaker opens.
        percent: u8,
    },
}

impl Default for BreakerSettings {
    fn default() -> Self {
        BreakerSettings::consecutive(5, Duration::from_secs(30))
    }
}

impl BreakerSettings {
    /// Opens after `failures` in a row, for `open_for`; one trial call, and its success closes it.
    pub fn consecutive(failures: u32, open_for: Duration) -> Self {
        let mode = BreakerMode::Consecutive(failures);
        BreakerSettings { mode, open_for, half_open_max: 1, success_threshold: 1 }
    }

    /// Opens for 30 s when at least half of the last 10 calls failed; one trial call, and its success closes it.
    pub fn rate() -> Self {
        BreakerSettings { mode: BreakerMode::Rate { window: 10, percent: 50 }, ..BreakerSettings::default() }
    }

    /// What the GBIF server uses: 5 failures, 60 s, trial calls one at a time, two of which must succeed.
    pub fn gbif() -> Self {
        BreakerSettings { success_threshold: 2, ..BreakerSettings::consecutive(5, Duration::from_secs(60)) }
    }

    /// What the Docling client uses: 5 failures, 30 s, one trial call.
    pub fn docling() -> Self {
        BreakerSettings::consecutive(5, Duration::from_secs(30))
    }

    /// What DevFlow uses: 3 failures, 30 s, one trial call.
    pub fn devflow() -> Self {
        BreakerSettings::consecutive(3, Duration::from_secs(30))
    }

    /// The same settings without values under which a breaker could never open, or never close.
    pub(super) fn sane(mut self) -> Self {
        self.mode = match self.mode {
            BreakerMode::Consecutive(n) => BreakerMode::Consecutive(n.max(1)),
            BreakerMode::Rate { window, percent } => {
                BreakerMode::Rate { window: window.clamp(1, MAX_WINDOW), percent: percent.clamp(1, 100) }
            }
        };
        self.half_open_max = self.half_open_max.max(1);
        self.success_threshold = self.success_threshold.max(1);
        self
    }
}

/// How many calls a rate is taken of at most, because each is remembered.
const MAX_WINDOW: u32 = 10_000;
