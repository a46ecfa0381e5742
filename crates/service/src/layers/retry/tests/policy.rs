//! Delays and decisions, without a runtime and with dice that always show the same.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Method, Symbol};

use crate::layers::retry::policy::{Attempts, RetryPolicy, Verdict, Why, is_safe};

/// The dice that give the full delay, and the ones that give the shortest.
const FULL: f64 = 0.0;
const SHORTEST: f64 = 1.0;

fn error(symbol: Symbol) -> Error {
    Error::new(symbol, "it broke")
}

fn seconds(n: f64) -> Duration {
    Duration::from_secs_f64(n)
}

/// The verdicts over a call that keeps failing at once with `error`. Deadlines are in seconds.
fn verdicts(
    policy: &RetryPolicy,
    error: &Error,
    safe: bool,
    deadline: Option<u64>,
    random: f64,
) -> Vec<Verdict> {
    let mut now = Instant::now();
    let deadline = deadline.map(|s| now + Duration::from_secs(s));
    let Some(mut attempts) = Attempts::begin(policy, deadline, now) else { return Vec::new() };
    let mut verdicts = Vec::new();
    loop {
        let verdict = attempts.failed(policy, error, || safe, now, random);
        verdicts.push(verdict);
        match verdict {
            Verdict::Again(delay) => now += delay,
            Verdict::GiveUp(_) => return verdicts,
        }
    }
}

fn again(n: f64) -> Verdict {
    Verdict::Again(seconds(n))
}

#[test]
fn delays() {
    let policy = RetryPolicy::default();
    let of = |random: f64| (0..6).map(|n| policy.delay(n, random).as_secs_f64()).collect::<Vec<_>>();
    assert_eq!(of(FULL), [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]);
    assert_eq!(of(0.5), [0.75, 1.5, 3.0, 6.0, 7.5, 7.5]);
    assert_eq!(of(SHORTEST), [0.5, 1.0, 2.0, 4.0, 5.0, 5.0]);
}

#[test]
fn delays_of_senseless_policies() {
    let none = RetryPolicy { jitter: 0.0, ..RetryPolicy::default() };
    assert_eq!(none.delay(1, SHORTEST), seconds(2.0));
    let all = RetryPolicy { jitter: 9.0, ..RetryPolicy::default() };
    assert_eq!(all.delay(1, SHORTEST), Duration::ZERO);
    for multiplier in [f64::NAN, f64::NEG_INFINITY, 0.0, -2.0] {
        let odd = RetryPolicy { multiplier, ..RetryPolicy::default() };
        assert_eq!(odd.delay(3, FULL), seconds(1.0), "{multiplier}");
    }
    let steep = RetryPolicy { multiplier: f64::INFINITY, ..RetryPolicy::default() };
    assert_eq!(steep.delay(u32::MAX, FULL), seconds(10.0));
    let nothing = RetryPolicy { base: Duration::ZERO, max: Duration::MAX, ..RetryPolicy::default() };
    assert_eq!(nothing.delay(2, FULL), Duration::ZERO);
}

#[test]
fn so_many_retries_with_growing_delays() {
    let verdicts = verdicts(&RetryPolicy::default(), &error(Symbol::Unavailable), true, None, FULL);
    assert_eq!(verdicts, [again(1.0), again(2.0), again(4.0), Verdict::GiveUp(Why::Exhausted)]);
}

#[test]
fn which_errors() {
    let policy = RetryPolicy::default();
    for (symbol, retried) in [
        (Symbol::Unavailable, true),
        (Symbol::Timeout, true),
        (Symbol::RateLimited, true),
        (Symbol::CircuitOpen, false),
        (Symbol::Internal, false),
        (Symbol::Unauthorized, false),
        (Symbol::Cancelled, false),
        (Symbol::InvalidParams, false),
        (Symbol::ToolExecution, false),
        (Symbol::TooLarge, false),
    ] {
        let first = verdicts(&policy, &error(symbol).unexecuted(), true, None, FULL)[0];
        assert_eq!(
            first,
            if retried { again(1.0) } else { Verdict::GiveUp(Why::NotRetryable) },
            "{symbol:?}"
        );
    }
}

#[test]
fn what_may_have_run_is_not_run_again() {
    let policy = RetryPolicy::default();
    let down = error(Symbol::Unavailable);
    assert_eq!(verdicts(&policy, &down, false, None, FULL), [Verdict::GiveUp(Why::MayHaveRun)]);
    assert_eq!(verdicts(&policy, &down.unexecuted(), false, None, FULL)[0], again(1.0));
}

#[test]
fn whether_a_call_is_safe_is_asked_only_if_it_matters() {
    let (policy, now) = (RetryPolicy::default(), Instant::now());
    let mut attempts = Attempts::begin(&policy, None, now).unwrap();
    let asked = Cell::new(false);
    let ask = || {
        asked.set(true);
        true
    };
    attempts.failed(&policy, &error(Symbol::Internal), ask, now, FULL);
    attempts.failed(&policy, &error(Symbol::Timeout).unexecuted(), ask, now, FULL);
    assert!(!asked.get());
    attempts.failed(&policy, &error(Symbol::Timeout), ask, now, FULL);
    assert!(asked.get());
}

#[test]
fn safe_methods() {
    use Method::*;
    let safe = [
        Discover,
        Ping,
        ToolsList,
        ResourcesList,
        ResourcesTemplatesList,
        PromptsList,
        TasksList,
        RootsList,
        ResourcesRead,
        PromptsGet,
        Complete,
        TasksGet,
    ];
    assert!(safe.iter().all(is_safe));
    let other = [
        Initialize,
        ToolsCall,
        ResourcesSubscribe,
        SetLevel,
        Listen,
        TasksUpdate,
        TasksCancel,
        SamplingCreate,
        Method::from_name("tools/call_batch"),
    ];
    assert!(!other.iter().any(is_safe));
}

#[test]
fn the_other_side_says_when() {
    let policy = RetryPolicy::default();
    let busy = |s: u64| error(Symbol::RateLimited).unexecuted().with_retry_after(Duration::from_secs(s));
    assert_eq!(verdicts(&policy, &busy(0), true, None, FULL)[0], again(1.0), "never sooner than we would");
    assert_eq!(verdicts(&policy, &busy(3), true, None, FULL)[..3], [again(3.0), again(3.0), again(4.0)]);
    assert_eq!(
        verdicts(&policy, &busy(20), true, None, FULL)[0],
        again(20.0),
        "even beyond our longest delay"
    );
    assert_eq!(verdicts(&policy, &busy(60), true, None, FULL), [Verdict::GiveUp(Why::NoTime)]);
    assert_eq!(verdicts(&policy, &busy(20), true, Some(20), FULL), [Verdict::GiveUp(Why::NoTime)]);
    let endless = error(Symbol::RateLimited).unexecuted().with_retry_after(Duration::MAX);
    let patient = RetryPolicy { overall: None, ..policy };
    assert_eq!(verdicts(&patient, &endless, true, None, FULL), [Verdict::GiveUp(Why::NoTime)]);
}

#[test]
fn never_beyond_the_deadline_or_the_overall_time() {
    let policy = RetryPolicy::default();
    let down = error(Symbol::Unavailable);
    let give_up = Verdict::GiveUp(Why::NoTime);
    assert_eq!(verdicts(&policy, &down, true, Some(3), FULL), [again(1.0), give_up]);
    assert_eq!(verdicts(&policy, &down, true, Some(4), FULL), [again(1.0), again(2.0), give_up]);
    let short = RetryPolicy { overall: Some(Duration::from_secs(3)), ..policy.clone() };
    assert_eq!(verdicts(&short, &down, true, None, FULL), [again(1.0), give_up]);
    assert_eq!(verdicts(&short, &down, true, Some(100), FULL), [again(1.0), give_up]);
}

#[test]
fn a_call_whose_deadline_passed_is_over() {
    let (policy, now) = (RetryPolicy::default(), Instant::now());
    let deadline = now + Duration::from_secs(5);
    let mut attempts = Attempts::begin(&policy, Some(deadline), now).unwrap();
    let verdict = attempts.failed(&policy, &error(Symbol::Timeout).unexecuted(), || true, deadline, SHORTEST);
    assert_eq!(verdict, Verdict::GiveUp(Why::NoTime));
}

#[test]
fn nothing_is_kept_when_no_retry_is_possible() {
    let now = Instant::now();
    assert!(Attempts::begin(&RetryPolicy::never(), None, now).is_none());
    let policy = RetryPolicy::default();
    assert!(Attempts::begin(&policy, Some(now), now).is_none());
    assert!(Attempts::begin(&policy, Some(now + seconds(0.5)), now).is_none(), "the shortest delay is 0.5 s");
    assert!(Attempts::begin(&policy, Some(now + seconds(0.6)), now).is_some());
}

#[test]
fn an_open_circuit_is_waited_for_only_on_request() {
    let open = |s: u64| error(Symbol::CircuitOpen).unexecuted().with_retry_after(Duration::from_secs(s));
    let policy = RetryPolicy::default();
    assert_eq!(verdicts(&policy, &open(1), true, None, FULL), [Verdict::GiveUp(Why::NotRetryable)]);
    let patient = RetryPolicy { wait_for_circuit: true, ..policy };
    assert_eq!(verdicts(&patient, &open(15), true, None, FULL)[0], again(15.0));
    assert_eq!(verdicts(&patient, &open(15), true, Some(10), FULL), [Verdict::GiveUp(Why::NoTime)]);
}
