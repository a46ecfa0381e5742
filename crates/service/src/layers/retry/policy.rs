//! [`RetryPolicy`], and the state machine that decides after each failure: again, and when, or not.
//!
//! It has no clock and no dice: the time and a random number come in, the delay goes out.

use std::fmt;
use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Method, Symbol};

/// How often and how patiently calls are made again. The delays are 1, 2 and 4 s by default, each shortened by up to
/// half at random.
///
/// ```
/// use std::time::Duration;
/// use tidegate_service::layers::RetryPolicy;
///
/// let quick = RetryPolicy { base: Duration::from_millis(100), ..RetryPolicy::default() };
/// assert_eq!(quick.max_retries, 3);
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct RetryPolicy {
    /// How often a call is made again after the first attempt. Default 3; 0 turns retries off.
    pub max_retries: u32,
    /// How long to wait before the first retry. Default 1 s.
    pub base: Duration,
    /// By how much each delay is longer than the one before. Default 2.
    pub multiplier: f64,
    /// The longest delay, unless the other side asks for a longer one. Default 10 s.
    pub max: Duration,
    /// Which part of a delay is left to chance, so that callers that failed together do not come back together: with
    /// `j` a delay of `d` is anything from `d × (1 - j)` to `d`. Default 0.5; 0 is none, 1 is all of it.
    pub jitter: f64,
    /// How long after its beginning a call may still be made again. Default 60 s. With `None` only the call's own
    /// deadline counts; a call without one then waits as long as the other side asks for.
    pub overall: Option<Duration>,
    /// Whether a call that an open circuit breaker refused waits for the breaker. Default no: a breaker is there so
    /// that callers hear at once.
    pub wait_for_circuit: bool,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        RetryPolicy {
            max_retries: 3,
            base: Duration::from_secs(1),
            multiplier: 2.0,
            max: Duration::from_secs(10),
            jitter: 0.5,
            overall: Some(Duration::from_secs(60)),
            wait_for_circuit: false,
        }
    }
}

impl RetryPolicy {
    /// No retries at all.
    pub fn never() -> Self {
        RetryPolicy { max_retries: 0, ..RetryPolicy::default() }
    }

    /// The delay before retry number `retry` (0 is the first). `random` is from 0 to 1.
    pub(super) fn delay(&self, retry: u32, random: f64) -> Duration {
        let max = self.max.as_secs_f64();
        let exponent = i32::try_from(retry).unwrap_or(i32::MAX);
        let full = self.base.as_secs_f64() * self.multiplier.max(1.0).powi(exponent);
        let full = full.min(max);
        let delay = full * (1.0 - self.jitter.clamp(0.0, 1.0) * random.clamp(0.0, 1.0));
        Duration::try_from_secs_f64(delay).unwrap_or(self.max)
    }
}

/// Whether making a request of this method twice is as good as once, by the protocol: it only reads.
///
/// `tools/call` is not among them, whatever the tool's annotations say: the specification calls those untrusted, so
/// whoever trusts a server says so with `RetryLayer::idempotent`.
pub fn is_safe(method: &Method) -> bool {
    matches!(
        method,
        Method::Discover
            | Method::Ping
            | Method::ToolsList
            | Method::ResourcesList
            | Method::ResourcesTemplatesList
            | Method::PromptsList
            | Method::TasksList
            | Method::RootsList
            | Method::ResourcesRead
            | Method::PromptsGet
            | Method::Complete
            | Method::TasksGet
    )
}

/// What to do after a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Make the call again after this time.
    Again(Duration),
    /// Answer with the failure.
    GiveUp(Why),
}

/// Why a call is not made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It would fail again.
    NotRetryable,
    /// It may have been executed, and twice is not as good as once.
    MayHaveRun,
    /// It has been made often enough.
    Exhausted,
    /// The caller would not be there any more.
    NoTime,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Why::NotRetryable => "it would fail again",
            Why::MayHaveRun => "it may have been executed",
            Why::Exhausted => "it has been tried often enough",
            Why::NoTime => "too little time is left",
        })
    }
}

/// The attempts at one call.
#[derive(Debug, Clone)]
pub(super) struct Attempts {
    retries: u32,
    /// After which time no attempt is worth while.
    end: Option<Instant>,
}

impl Attempts {
    /// A call begins that its caller wants answered by `deadline`. `None` if there can be no retry, whatever happens.
    pub(super) fn begin(policy: &RetryPolicy, deadline: Option<Instant>, now: Instant) -> Option<Attempts> {
        let overall = policy.overall.and_then(|overall| now.checked_add(overall));
        let end = match (deadline, overall) {
            (Some(deadline), Some(overall)) => Some(deadline.min(overall)),
            (one, other) => one.or(other),
        };
        let attempts = Attempts { retries: 0, end };
        (policy.max_retries > 0 && attempts.fits(policy.delay(0, 1.0), now)).then_some(attempts)
    }

    /// How many retries were made or decided on.
    pub(super) fn retries(&self) -> u32 {
        self.retries
    }

    /// An attempt failed at `now`. `safe` is asked whether making the call twice is as good as once, and only if that
    /// matters.
    pub(super) fn failed(
        &mut self,
        policy: &RetryPolicy,
        error: &Error,
        safe: impl FnOnce() -> bool,
        now: Instant,
        random: f64,
    ) -> Verdict {
        let retryable = match error.symbol() {
            Symbol::Unavailable | Symbol::Timeout | Symbol::RateLimited => true,
            Symbol::CircuitOpen => policy.wait_for_circuit,
            _ => false,
        };
        if !retryable {
            return Verdict::GiveUp(Why::NotRetryable);
        }
        if !error.is_unexecuted() && !safe() {
            return Verdict::GiveUp(Why::MayHaveRun);
        }
        if self.retries >= policy.max_retries {
            return Verdict::GiveUp(Why::Exhausted);
        }
        let delay = policy.delay(self.retries, random).max(error.retry_after().unwrap_or_default());
        if !self.fits(delay, now) {
            return Verdict::GiveUp(Why::NoTime);
        }
        self.retries += 1;
        Verdict::Again(delay)
    }

    /// Whether there is time left after waiting for `delay`.
    fn fits(&self, delay: Duration, now: Instant) -> bool {
        match (now.checked_add(delay), self.end) {
            (Some(then), Some(end)) => then < end,
            (Some(_), None) => true,
            (None, _) => false,
        }
    }
}
