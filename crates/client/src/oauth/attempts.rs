//! [`Attempts`]: how often a token may be asked for before it is clear that tokens do not help.

use std::time::{Duration, Instant};

/// How many authorizations in a row.
const MAX: u32 = 3;
/// A token that is refused sooner than this after it was given out was never any good: the refused request is repeated
/// at once.
const YOUNG: Duration = Duration::from_secs(60);

/// Counts the authorizations since a token last worked.
#[derive(Debug, Default)]
pub(super) struct Attempts {
    made: u32,
    /// When the current token was given out, if it was by this process.
    issued: Option<Instant>,
    /// The current token was refused before it ever worked.
    bad: bool,
}

impl Attempts {
    /// Whether one more may be made.
    pub(super) fn may(&self) -> bool {
        self.made < MAX
    }

    /// One more was made, whatever came of it.
    pub(super) fn made(&mut self) {
        self.made += 1;
    }

    /// There is a new token.
    pub(super) fn issued(&mut self, now: Instant) {
        self.issued = Some(now);
        self.bad = false;
    }

    /// A request with the current token succeeded.
    pub(super) fn worked(&mut self) {
        self.made = 0;
        self.issued = None;
        self.bad = false;
    }

    /// The current token was refused. Nobody has to report successes: a token that was not refused for a while has
    /// worked.
    pub(super) fn refused(&mut self, now: Instant) {
        match self.issued {
            Some(issued) if now.duration_since(issued) < YOUNG => self.bad = true,
            Some(_) if !self.bad => self.worked(),
            _ => {}
        }
    }

    /// Whether the current token is one that never worked, so that renewing it the same way is no use.
    pub(super) fn is_bad(&self) -> bool {
        self.bad
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_that_never_work_are_not_asked_for_again_and_again() {
        let start = Instant::now();
        let mut attempts = Attempts::default();
        for _ in 0..3 {
            assert!(attempts.may());
            attempts.made();
            attempts.issued(start);
            attempts.refused(start + Duration::from_secs(1));
        }
        assert!(!attempts.may() && attempts.is_bad());
        // It does not get better by waiting.
        attempts.refused(start + Duration::from_secs(3600));
        assert!(!attempts.may());
        attempts.worked();
        assert!(attempts.may() && !attempts.is_bad());
    }

    #[test]
    fn a_token_that_lived_has_worked() {
        let start = Instant::now();
        let mut attempts = Attempts::default();
        for hour in 0..9 {
            assert!(attempts.may());
            attempts.made();
            let issued = start + Duration::from_secs(3600 * hour);
            attempts.issued(issued);
            attempts.refused(issued + Duration::from_secs(3000));
        }
    }
}
