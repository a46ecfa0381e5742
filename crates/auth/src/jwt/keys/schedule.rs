//! [`Schedule`]: when the keys of an issuer are fetched.

use std::time::Duration;

use tokio::time::Instant;

/// How long things take. Only tests have others than the default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// A token with an unknown `kid` has keys fetched so often at most.
    pub(crate) cool_down: Duration,
    /// And so often while its issuer changes them: when the fetch before brought new ones.
    pub(crate) rotating: Duration,
    /// Keys are fetched again after this time at the earliest, whatever their server says,
    pub(crate) shortest: Duration,
    /// after this time if it says nothing,
    pub(crate) usual: Duration,
    /// and after this time at the latest.
    pub(crate) longest: Duration,
    /// How long keys are good while their server is away.
    pub(crate) last_good: Duration,
    /// After how long a fetch that failed is tried again; twice as long each further time, up to `last_retry`.
    pub(crate) first_retry: Duration,
    pub(crate) last_retry: Duration,
    /// How long a token waits for keys.
    pub(crate) patience: Duration,
    /// How often a file is looked at.
    pub(crate) look: Duration,
}

impl Default for Timing {
    fn default() -> Timing {
        Timing {
            cool_down: Duration::from_secs(30),
            rotating: Duration::from_secs(5),
            shortest: Duration::from_secs(5 * 60),
            usual: Duration::from_secs(3600),
            longest: Duration::from_secs(24 * 3600),
            last_good: Duration::from_secs(24 * 3600),
            first_retry: Duration::from_secs(1),
            last_retry: Duration::from_secs(5 * 60),
            patience: Duration::from_secs(10),
            look: Duration::from_secs(1),
        }
    }
}

/// When to fetch. It takes the time as an argument and fetches nothing itself.
#[derive(Debug)]
pub(crate) struct Schedule {
    timing: Timing,
    due: Instant,
    under_way: bool,
    asked: Option<Instant>,
    /// Whether new keys have come since.
    is_rotating: bool,
    failures: u32,
    good_until: Option<Instant>,
}

impl Schedule {
    /// The first fetch is due at once.
    pub(crate) fn new(timing: Timing, now: Instant) -> Schedule {
        Schedule {
            timing,
            due: now,
            under_way: false,
            asked: None,
            is_rotating: false,
            failures: 0,
            good_until: None,
        }
    }

    /// When the next one is due.
    pub(crate) fn due(&self) -> Instant {
        self.due
    }

    /// Somebody needs keys that are not there. Whether it is worth waiting for a fetch: one that is under way or about to
    /// begin, or one that is brought forward because nobody asked for the time of the cool-down.
    pub(crate) fn ask(&mut self, now: Instant) -> bool {
        if self.under_way || self.due <= now {
            return true;
        }
        let Timing { cool_down, rotating, .. } = self.timing;
        let pause = if self.is_rotating { rotating.min(cool_down) } else { cool_down };
        if self.asked.is_some_and(|asked| now < asked + pause) {
            return false;
        }
        (self.asked, self.due, self.is_rotating) = (Some(now), now, false);
        true
    }

    /// The next one is due at once, unless one is under way.
    pub(crate) fn bring_forward(&mut self, now: Instant) {
        if !self.under_way {
            self.due = self.due.min(now);
        }
    }

    /// A fetch brought keys that were not there before: where one is new, another may soon be. The next one to ask need not wait
    /// for the whole cool-down.
    pub(crate) fn rotated(&mut self) {
        self.is_rotating = true;
    }

    /// A fetch begins.
    pub(crate) fn begin(&mut self) {
        self.under_way = true;
    }

    /// It brought keys that their server calls fresh for so long.
    pub(crate) fn succeeded(&mut self, now: Instant, fresh: Option<Duration>) {
        let fresh = fresh.unwrap_or(self.timing.usual).clamp(self.timing.shortest, self.timing.longest);
        (self.under_way, self.failures, self.due) = (false, 0, now + fresh);
        // As old as they may be, and a day in which their server is away.
        self.good_until = Some(now + fresh + self.timing.last_good);
    }

    /// It did not. `chance` is a random number from 0 to 1, so that not all come back together. Says how long to wait.
    pub(crate) fn failed(&mut self, now: Instant, chance: f64) -> Duration {
        let wait = self.timing.first_retry.saturating_mul(2_u32.saturating_pow(self.failures.min(16)));
        let wait = wait.min(self.timing.last_retry);
        let wait = wait + wait.mul_f64(chance.clamp(0.0, 1.0) / 4.0);
        (self.under_way, self.due) = (false, now + wait);
        self.failures = self.failures.saturating_add(1);
        wait
    }

    /// Whether the keys of the last fetch that succeeded may still be used.
    pub(crate) fn is_good(&self, now: Instant) -> bool {
        self.good_until.is_some_and(|until| now < until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn keys_are_fetched_when_they_are_old_and_never_too_often() {
        let start = Instant::now();
        let mut schedule = Schedule::new(Timing::default(), start);
        assert_eq!(schedule.due(), start);
        for (fresh, due) in [(None, 3600), (Some(1), 300), (Some(900), 900), (Some(1_000_000), 86_400)] {
            schedule.begin();
            schedule.succeeded(start, fresh.map(Duration::from_secs));
            assert_eq!(schedule.due(), start + due * SECOND);
        }
    }

    #[test]
    fn who_asks_waits_for_the_fetch_under_way_or_for_the_cool_down_to_end() {
        let start = Instant::now();
        let mut schedule = Schedule::new(Timing::default(), start);
        assert!(schedule.ask(start), "one is due");
        schedule.begin();
        assert!(schedule.ask(start), "one is under way");
        schedule.succeeded(start, None);
        assert!(schedule.ask(start + SECOND));
        assert_eq!(schedule.due(), start + SECOND);
        schedule.begin();
        schedule.succeeded(start + SECOND, None);
        for seconds in [2, 10, 30] {
            assert!(!schedule.ask(start + seconds * SECOND), "{seconds}");
        }
        assert!(schedule.ask(start + 31 * SECOND));
    }

    #[test]
    fn after_new_keys_the_next_one_to_ask_waits_less() {
        let start = Instant::now();
        let mut schedule = Schedule::new(Timing::default(), start);
        schedule.begin();
        schedule.succeeded(start, None);
        assert!(schedule.ask(start));
        schedule.begin();
        schedule.succeeded(start, None);
        schedule.rotated();
        assert!(!schedule.ask(start + 4 * SECOND));
        assert!(schedule.ask(start + 5 * SECOND));
        // That one brought nothing new.
        schedule.begin();
        schedule.succeeded(start + 5 * SECOND, None);
        assert!(!schedule.ask(start + 34 * SECOND));
        assert!(schedule.ask(start + 35 * SECOND));
    }

    #[test]
    fn failures_are_retried_later_and_later_and_keys_go_on_for_a_day() {
        let start = Instant::now();
        let mut schedule = Schedule::new(Timing::default(), start);
        assert!(!schedule.is_good(start));
        let waits: Vec<u64> = (0..11).map(|_| schedule.failed(start, 0.0).as_secs()).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300]);
        assert_eq!(schedule.failed(start, 1.0).as_secs(), 375);
        schedule.succeeded(start, None);
        assert_eq!(schedule.failed(start, 0.0), SECOND);
        let day = 24 * 3600;
        assert!(schedule.is_good(start + (3600 + day - 1) * SECOND));
        assert!(!schedule.is_good(start + (3600 + day) * SECOND));
    }
}
