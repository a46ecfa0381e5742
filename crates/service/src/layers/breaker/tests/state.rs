//! The state machine, without a runtime and with a clock that only moves when told.

use std::time::{Duration, Instant};

use crate::layers::breaker::settings::{BreakerMode, BreakerSettings};
use crate::layers::breaker::state::BreakerState::{self, Closed, HalfOpen, Open};
use crate::layers::breaker::state::{Machine, Outcome, Permit, Refused};

/// A machine with a clock, in seconds.
struct Bench {
    machine: Machine,
    now: Instant,
}

impl Bench {
    fn new(settings: BreakerSettings) -> Bench {
        let now = Instant::now();
        Bench { machine: Machine::new(settings, now), now }
    }

    /// One that has just opened.
    fn open(settings: BreakerSettings) -> Bench {
        let mut bench = Bench::new(settings);
        while bench.state() == Closed {
            bench.fail("down");
        }
        bench.machine.take_transitions();
        bench
    }

    fn wait(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
    }

    fn begin(&mut self) -> Permit {
        self.machine.try_begin(self.now).expect("a permit")
    }

    fn refused(&mut self) -> Refused {
        self.machine.try_begin(self.now).expect_err("no permit")
    }

    fn end(&mut self, permit: Permit, outcome: Outcome<'_>) {
        self.machine.finish(permit, outcome, self.now);
    }

    fn call(&mut self, outcome: Outcome<'_>) {
        let permit = self.begin();
        self.end(permit, outcome);
    }

    fn fail(&mut self, sentence: &str) {
        self.call(Outcome::Failure(sentence));
    }

    fn succeed(&mut self) {
        self.call(Outcome::Success);
    }

    fn state(&self) -> BreakerState {
        self.machine.state(self.now)
    }

    fn failures(&self) -> u32 {
        self.machine.report(self.now).failures
    }

    /// The changes since the last time, as text.
    fn changes(&mut self) -> Vec<String> {
        self.machine.take_transitions().iter().map(|t| format!("{} {}", t.from, t.to)).collect()
    }
}

#[test]
fn profiles() {
    let seconds = Duration::from_secs;
    let of = |s: BreakerSettings| (s.mode, s.open_for, s.half_open_max, s.success_threshold);
    let row = BreakerMode::Consecutive;
    assert_eq!(of(BreakerSettings::default()), (row(5), seconds(30), 1, 1));
    assert_eq!(of(BreakerSettings::gbif()), (row(5), seconds(60), 1, 2));
    assert_eq!(of(BreakerSettings::docling()), (row(5), seconds(30), 1, 1));
    assert_eq!(of(BreakerSettings::devflow()), (row(3), seconds(30), 1, 1));
    let rate = BreakerMode::Rate { window: 10, percent: 50 };
    assert_eq!(of(BreakerSettings::rate()), (rate, seconds(30), 1, 1));
}

#[test]
fn opens_after_failures_in_a_row() {
    let mut bench = Bench::new(BreakerSettings::default());
    for n in 1..5 {
        bench.fail("down");
        assert_eq!((bench.state(), bench.failures()), (Closed, n));
    }
    assert_eq!(bench.changes(), [""; 0]);
    bench.fail("down");
    assert_eq!((bench.state(), bench.failures()), (Open, 5));
    assert_eq!(bench.changes(), ["CLOSED OPEN"]);
    assert_eq!(bench.machine.report(bench.now).opened, 1);
}

#[test]
fn a_success_in_between_forgives() {
    let mut bench = Bench::new(BreakerSettings::default());
    for _ in 0..3 {
        for _ in 0..4 {
            bench.fail("down");
        }
        bench.succeed();
        assert_eq!((bench.state(), bench.failures()), (Closed, 0));
    }
}

#[test]
fn what_says_nothing_changes_nothing() {
    let mut bench = Bench::new(BreakerSettings::default());
    for _ in 0..4 {
        bench.fail("down");
    }
    bench.call(Outcome::Neither);
    assert_eq!(bench.failures(), 4);
    bench.fail("down");
    assert_eq!(bench.state(), Open);
}

#[test]
fn an_open_breaker_refuses_and_says_for_how_long() {
    let mut bench = Bench::open(BreakerSettings::default());
    assert_eq!(bench.refused(), Refused { retry_after: Duration::from_secs(30), trying: false });
    bench.wait(29);
    assert_eq!(bench.refused(), Refused { retry_after: Duration::from_secs(1), trying: false });
    assert_eq!(bench.state(), Open);
    assert_eq!(bench.changes(), [""; 0]);
}

#[test]
fn reads_know_the_time() {
    let mut bench = Bench::open(BreakerSettings::default());
    let opened = bench.now;
    assert_eq!(bench.machine.report(bench.now).since, opened);
    bench.wait(30);
    assert_eq!(bench.state(), HalfOpen);
    bench.wait(100);
    let report = bench.machine.report(bench.now);
    assert_eq!((report.state, report.since), (HalfOpen, opened + Duration::from_secs(30)));
    assert_eq!(bench.changes(), [""; 0], "a read is not a change");
    let permit = bench.begin();
    assert_eq!(bench.changes(), ["OPEN HALF_OPEN"]);
    assert_eq!(bench.machine.report(bench.now).since, opened + Duration::from_secs(30));
    bench.end(permit, Outcome::Success);
}

#[test]
fn a_successful_trial_closes() {
    let mut bench = Bench::open(BreakerSettings::default());
    bench.wait(30);
    bench.succeed();
    assert_eq!((bench.state(), bench.failures()), (Closed, 0));
    assert_eq!(bench.changes(), ["OPEN HALF_OPEN", "HALF_OPEN CLOSED"]);
    let report = bench.machine.report(bench.now);
    assert_eq!((report.since, report.opened), (bench.now, 1));
    assert_eq!(report.last_failure.as_deref(), Some("down"), "still worth knowing");
    for _ in 0..4 {
        bench.fail("down");
    }
    assert_eq!(bench.state(), Closed, "the count begins anew");
}

#[test]
fn a_failed_trial_opens_again_for_the_whole_time() {
    let mut bench = Bench::open(BreakerSettings::default());
    bench.wait(31);
    bench.fail("still down");
    assert_eq!((bench.state(), bench.failures()), (Open, 6));
    assert_eq!(bench.changes(), ["OPEN HALF_OPEN", "HALF_OPEN OPEN"]);
    assert_eq!(bench.refused().retry_after, Duration::from_secs(30));
    let report = bench.machine.report(bench.now);
    assert_eq!((report.opened, report.last_failure.as_deref()), (2, Some("still down")));
}

#[test]
fn so_many_trials_at_once() {
    let mut bench =
        Bench::open(BreakerSettings { half_open_max: 2, success_threshold: 3, ..Default::default() });
    bench.wait(30);
    let (one, two) = (bench.begin(), bench.begin());
    assert_eq!(bench.refused(), Refused { retry_after: Duration::from_secs(1), trying: true });
    bench.end(one, Outcome::Success);
    let three = bench.begin();
    assert!(bench.refused().trying);
    bench.end(two, Outcome::Success);
    assert_eq!(bench.state(), HalfOpen);
    bench.end(three, Outcome::Success);
    assert_eq!(bench.state(), Closed);
}

#[test]
fn several_successes_to_close() {
    let mut bench = Bench::open(BreakerSettings::gbif());
    bench.wait(60);
    bench.succeed();
    assert_eq!(bench.state(), HalfOpen);
    bench.succeed();
    assert_eq!(bench.state(), Closed);

    let mut bench = Bench::open(BreakerSettings::gbif());
    bench.wait(60);
    bench.succeed();
    bench.fail("down");
    assert_eq!(bench.state(), Open);
    bench.wait(60);
    bench.succeed();
    assert_eq!(bench.state(), HalfOpen, "the successes count anew");
}

#[test]
fn a_trial_that_says_nothing_gives_its_place_back() {
    let mut bench = Bench::open(BreakerSettings::default());
    bench.wait(30);
    let trial = bench.begin();
    assert!(bench.refused().trying);
    bench.end(trial, Outcome::Neither);
    assert_eq!(bench.state(), HalfOpen);
    bench.succeed();
    assert_eq!(bench.state(), Closed);
}

#[test]
fn a_trial_that_never_ends_does_not_block_for_ever() {
    let mut bench = Bench::open(BreakerSettings::default());
    bench.wait(30);
    let stuck = bench.begin();
    bench.wait(29);
    assert!(bench.refused().trying);
    bench.wait(1);
    bench.succeed();
    assert_eq!(bench.state(), Closed);
    bench.end(stuck, Outcome::Failure("late"));
    assert_eq!(bench.failures(), 0);
}

#[test]
fn calls_of_an_earlier_phase_say_nothing_about_this_one() {
    let mut bench = Bench::new(BreakerSettings::default());
    let early: Vec<_> = (0..3).map(|_| bench.begin()).collect();
    let mut early = early.into_iter();
    while bench.state() == Closed {
        bench.fail("down");
    }
    bench.end(early.next().unwrap(), Outcome::Success);
    assert_eq!(bench.state(), Open);
    bench.wait(30);
    let trial = bench.begin();
    bench.end(early.next().unwrap(), Outcome::Success);
    assert_eq!(bench.state(), HalfOpen);
    assert!(bench.refused().trying, "the early call had no place to give back");
    bench.end(early.next().unwrap(), Outcome::Failure("late"));
    assert_eq!(bench.state(), HalfOpen);
    bench.end(trial, Outcome::Success);
    assert_eq!(bench.state(), Closed);
}

#[test]
fn a_rate_is_judged_over_a_full_window() {
    let mut bench = Bench::new(BreakerSettings::rate());
    for _ in 0..9 {
        bench.fail("down");
    }
    assert_eq!(bench.state(), Closed, "only nine calls so far");
    bench.fail("down");
    assert_eq!(bench.state(), Open);
}

#[test]
fn a_rate_below_the_limit_stays_closed() {
    let mut bench = Bench::new(BreakerSettings::rate());
    for n in 0..100 {
        match n % 10 {
            0..4 => bench.fail("down"),
            _ => bench.succeed(),
        }
        assert_eq!(bench.state(), Closed);
    }
    assert_eq!(bench.failures(), 4);
}

#[test]
fn a_rate_at_the_limit_opens_on_a_failure_only() {
    let mut bench = Bench::new(BreakerSettings::rate());
    for _ in 0..6 {
        bench.fail("down");
    }
    for _ in 0..4 {
        bench.succeed();
    }
    assert_eq!((bench.state(), bench.failures()), (Closed, 6));
    bench.succeed(); // pushes a failure out: 5 of 10
    assert_eq!((bench.state(), bench.failures()), (Closed, 5));
    bench.fail("down"); // pushes another one out: still 5 of 10
    assert_eq!((bench.state(), bench.failures()), (Open, 5));
    assert_eq!(bench.machine.why(), "failed in 5 of the last 10 calls, the last time with: down");
    bench.wait(30);
    bench.fail("down");
    assert_eq!((bench.state(), bench.failures()), (Open, 5), "a failed trial opens in this mode too");
    bench.wait(30);
    bench.succeed();
    assert_eq!((bench.state(), bench.failures()), (Closed, 0));
}

#[test]
fn a_probe_ends_that_nobody_could_be_reached() {
    for settings in [BreakerSettings::default(), BreakerSettings::gbif(), BreakerSettings::rate()] {
        let mut bench = Bench::new(settings);
        bench.fail("it hung");
        while bench.state() == Closed {
            bench.call(Outcome::Unreachable("connection refused"));
        }
        assert!(bench.machine.report(bench.now).unreachable);
        bench.machine.take_transitions();
        bench.wait(3);
        bench.machine.report_success(bench.now);
        assert_eq!((bench.state(), bench.failures()), (Closed, 0));
        assert_eq!(bench.changes(), ["OPEN CLOSED"]);
        assert!(!bench.machine.report(bench.now).unreachable);
    }
}

#[test]
fn a_probe_does_not_close_what_failing_calls_opened() {
    for settings in [BreakerSettings::default(), BreakerSettings::gbif(), BreakerSettings::rate()] {
        let (open_for, successes) = (settings.open_for.as_secs(), settings.success_threshold);
        let mut bench = Bench::new(settings);
        bench.call(Outcome::Unreachable("connection refused"));
        while bench.state() == Closed {
            bench.fail("tools hang");
        }
        bench.machine.take_transitions();
        bench.machine.report_success(bench.now);
        assert_eq!(bench.refused().retry_after.as_secs(), open_for, "as long as was said");
        bench.wait(open_for);
        bench.machine.report_success(bench.now);
        assert_eq!(bench.state(), HalfOpen, "no trial call has shown anything");
        for _ in 0..successes {
            bench.succeed();
        }
        assert_eq!(bench.state(), Closed);
        assert_eq!(bench.changes(), ["OPEN HALF_OPEN", "HALF_OPEN CLOSED"]);
    }
}

#[test]
fn a_trial_that_reaches_nobody_leaves_the_rest_to_probes() {
    let mut bench = Bench::open(BreakerSettings::default());
    bench.wait(30);
    bench.call(Outcome::Unreachable("connection refused"));
    assert_eq!(bench.state(), Open);
    bench.machine.report_success(bench.now);
    assert_eq!(bench.state(), Closed, "it was gone, and is back");
}

#[test]
fn a_probe_does_not_forgive_failed_calls() {
    let mut bench = Bench::new(BreakerSettings::default());
    for _ in 0..4 {
        bench.fail("tools hang");
    }
    bench.machine.report_success(bench.now);
    bench.fail("tools hang");
    assert_eq!(bench.state(), Open);
}

#[test]
fn a_failed_probe_counts() {
    let mut bench = Bench::new(BreakerSettings::devflow());
    for _ in 0..3 {
        bench.machine.report_failure("no pong", bench.now);
    }
    assert_eq!(bench.state(), Open);
    bench.wait(10);
    bench.machine.report_failure("no pong yet", bench.now);
    assert_eq!(bench.refused().retry_after, Duration::from_secs(20), "the trial is not put off");
    assert_eq!(bench.machine.report(bench.now).last_failure.as_deref(), Some("no pong yet"));
    bench.wait(20);
    assert_eq!(bench.state(), HalfOpen);
    bench.machine.report_failure("no pong", bench.now);
    assert_eq!(bench.state(), Open);
}

#[test]
fn reset_closes_and_forgets() {
    let mut bench = Bench::open(BreakerSettings::default());
    bench.machine.reset(bench.now);
    let report = bench.machine.report(bench.now);
    assert_eq!((report.state, report.failures, report.last_failure), (Closed, 0, None));
    assert_eq!(bench.changes(), ["OPEN CLOSED"]);
    let running = bench.begin();
    bench.machine.reset(bench.now);
    assert_eq!(bench.changes(), [""; 0]);
    bench.end(running, Outcome::Failure("down"));
    assert_eq!(bench.failures(), 0, "it began before the reset");
}

#[test]
fn senseless_settings_do_no_harm() {
    let mut bench = Bench::open(BreakerSettings {
        mode: BreakerMode::Consecutive(0),
        open_for: Duration::MAX,
        half_open_max: 0,
        success_threshold: 0,
    });
    assert_eq!(bench.machine.report(bench.now).opened, 1);
    assert!(bench.refused().retry_after > Duration::from_secs(86_400));
    let mut bench = Bench::open(BreakerSettings {
        mode: BreakerMode::Rate { window: 0, percent: 0 },
        open_for: Duration::ZERO,
        half_open_max: 0,
        success_threshold: 0,
    });
    bench.succeed();
    assert_eq!(bench.state(), Closed);
}

#[test]
fn sentences() {
    let mut bench = Bench::new(BreakerSettings::consecutive(1, Duration::from_secs(1)));
    bench.fail("HTTP 503:\n  Service Unavailable.");
    assert_eq!(bench.machine.why(), "failed with: HTTP 503: Service Unavailable");
    bench.wait(1);
    bench.fail("down");
    assert_eq!(bench.machine.why(), "failed 2 times in a row, the last time with: down");
    bench.wait(1);
    bench.fail(&"ö".repeat(10_000));
    let last = bench.machine.report(bench.now).last_failure.unwrap();
    assert!(last.len() < 310 && last.ends_with("ö…"), "{last}");
}
