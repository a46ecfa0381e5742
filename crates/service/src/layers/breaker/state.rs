//! The breaker as a state machine. It has no clock: every method takes the time, and what happened is fetched with
//! [`Machine::take_transitions`].
//!
//! ```text
//!             too many failures               open_for is over
//!   CLOSED ----------------------> OPEN ----------------------> HALF_OPEN
//!      ^  ^                          | ^                         |     |
//!      |  +-- unreachable, and a ----+ +------- a trial fails ---+     |
//!      |      probe is answered                                        |
//!      +------------------ enough trials succeed ----------------------+
//! ```
//!
//! A breaker knows why it is open. What could not be reached is there again as soon as a probe is answered. What was
//! reached and failed is not: a server can answer `ping` while its tools hang, so only trial calls close that breaker.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::settings::{BreakerMode, BreakerSettings};

/// What a breaker does with the next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BreakerState {
    /// Lets every call through.
    Closed,
    /// Refuses every call.
    Open,
    /// Lets a few trial calls through to see whether the other side is back.
    HalfOpen,
}

impl BreakerState {
    /// `CLOSED`, `OPEN` or `HALF_OPEN`, as health endpoints spell it.
    pub const fn as_str(self) -> &'static str {
        match self {
            BreakerState::Closed => "CLOSED",
            BreakerState::Open => "OPEN",
            BreakerState::HalfOpen => "HALF_OPEN",
        }
    }
}

impl fmt::Display for BreakerState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a call ended, as far as the breaker cares.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome<'a> {
    /// The other side answered, be it with an error.
    Success,
    /// The other side said what it offers, which says little about whether it can do it.
    Answered,
    /// The other side could not be reached, so that nothing was asked of it, in a sentence.
    Unreachable(&'a str),
    /// The other side was reached and broke down or was too slow, in a sentence.
    Failure(&'a str),
    /// The call says nothing about the other side.
    Neither,
}

/// Leave to make one call, to be handed back with [`Machine::finish`].
#[derive(Debug)]
#[must_use]
pub(super) struct Permit {
    generation: u64,
}

/// The call must not be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Refused {
    /// When to come back.
    pub(super) retry_after: Duration,
    /// Whether trial calls are running at this moment: the breaker is half-open.
    pub(super) trying: bool,
}

/// A change of state, to be logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Transition {
    pub(super) from: BreakerState,
    pub(super) to: BreakerState,
}

/// What health endpoints show of a breaker.
#[derive(Debug, Clone)]
pub struct BreakerReport {
    /// Its state at this moment.
    pub state: BreakerState,
    /// Since when it is in that state.
    pub since: Instant,
    /// How many calls failed: in a row, or in rate mode among the last calls.
    pub failures: u32,
    /// How often it has opened so far.
    pub opened: u64,
    /// What the last failure said.
    pub last_failure: Option<Arc<str>>,
    /// Whether it is not closed because the other side could not be reached, so that a probe that is answered closes it.
    pub unreachable: bool,
}

/// A breaker without a clock.
#[derive(Debug)]
pub(super) struct Machine {
    settings: BreakerSettings,
    phase: Phase,
    since: Instant,
    /// Counts the phases. Calls that began in an earlier phase say nothing about this one.
    generation: u64,
    in_a_row: u32,
    window: Window,
    opened: u64,
    last_failure: Option<Arc<str>>,
    /// Whether the last failure was that the other side could not be reached. In a breaker that is not closed it is the one
    /// that opened it: nothing that begins later is counted.
    unreachable: bool,
    transitions: Vec<Transition>,
}

#[derive(Debug, Clone, Copy)]
enum Phase {
    Closed,
    Open { until: Instant },
    HalfOpen { running: u32, successes: u32, begun: Instant },
}

/// When to come back while a trial call is running. Nobody knows how long it takes; it is usually quick.
const TRIAL_WAIT: Duration = Duration::from_secs(1);

/// How much of a failure's sentence is remembered.
const SENTENCE_BYTES: usize = 300;

impl Machine {
    pub(super) fn new(settings: BreakerSettings, now: Instant) -> Machine {
        Machine {
            settings: settings.sane(),
            phase: Phase::Closed,
            since: now,
            generation: 0,
            in_a_row: 0,
            window: Window::default(),
            opened: 0,
            last_failure: None,
            unreachable: false,
            transitions: Vec::new(),
        }
    }

    /// Asks for leave to make a call.
    pub(super) fn try_begin(&mut self, now: Instant) -> Result<Permit, Refused> {
        self.settle(now);
        let (max, stuck_after) = (self.settings.half_open_max, self.settings.open_for);
        match &mut self.phase {
            Phase::Closed => {}
            Phase::Open { until } => {
                return Err(Refused { retry_after: until.saturating_duration_since(now), trying: false });
            }
            Phase::HalfOpen { running, begun, .. } => {
                // A trial call that never ends must not keep the breaker from ever closing.
                if *running >= max && now.saturating_duration_since(*begun) < stuck_after {
                    return Err(Refused { retry_after: TRIAL_WAIT.min(stuck_after), trying: true });
                }
                *running += 1;
                *begun = now;
            }
        }
        Ok(Permit { generation: self.generation })
    }

    /// Hands a permit back and says how the call ended.
    pub(super) fn finish(&mut self, permit: Permit, outcome: Outcome<'_>, now: Instant) {
        if permit.generation != self.generation {
            return;
        }
        if let Phase::HalfOpen { running, .. } = &mut self.phase {
            *running = running.saturating_sub(1);
        }
        match outcome {
            Outcome::Success => self.succeeded(now),
            // Like a probe: it ends that the server could not be reached, and nothing else.
            Outcome::Answered if self.unreachable => self.succeeded(now),
            Outcome::Answered => {}
            Outcome::Unreachable(sentence) => self.failed(sentence, true, now),
            Outcome::Failure(sentence) => self.failed(sentence, false, now),
            Outcome::Neither => {}
        }
    }

    /// A probe got an answer. That closes a breaker that is open because nobody could be reached, and no other: whether
    /// calls still fail is for trial calls to find out. In a closed breaker it makes up for no failed call either.
    pub(super) fn report_success(&mut self, now: Instant) {
        if self.is_unreachable() {
            self.reset(now);
        }
    }

    /// A probe failed. It counts like a call that could not be made. In an open breaker it changes nothing but the
    /// sentence: a server that does not answer probes may well answer calls, so the trial call is not put off.
    pub(super) fn report_failure(&mut self, sentence: &str, now: Instant) {
        self.settle(now);
        self.failed(sentence, true, now);
    }

    /// Closes the breaker and forgets all failures.
    pub(super) fn reset(&mut self, now: Instant) {
        self.last_failure = None;
        self.enter(Phase::Closed, now);
    }

    /// The state at `now`: an open breaker whose time is over is half-open, even if nobody has called since.
    pub(super) fn state(&self, now: Instant) -> BreakerState {
        match self.phase {
            Phase::Open { until } if until <= now => BreakerState::HalfOpen,
            phase => phase.state(),
        }
    }

    /// Everything there is to show at `now`.
    pub(super) fn report(&self, now: Instant) -> BreakerReport {
        let since = match self.phase {
            Phase::Open { until } if until <= now => until,
            _ => self.since,
        };
        BreakerReport {
            state: self.state(now),
            since,
            failures: self.failures(),
            opened: self.opened,
            last_failure: self.last_failure.clone(),
            unreachable: self.is_unreachable(),
        }
    }

    fn is_unreachable(&self) -> bool {
        self.unreachable && !matches!(self.phase, Phase::Closed)
    }

    /// Why calls are refused: "failed 5 times in a row, the last time with: …".
    pub(super) fn why(&self) -> String {
        let mut why = match (self.settings.mode, self.failures()) {
            (_, 0 | 1) => "failed".to_owned(),
            (BreakerMode::Consecutive(_), n) => format!("failed {n} times in a row, the last time"),
            (BreakerMode::Rate { .. }, n) => {
                format!("failed in {n} of the last {} calls, the last time", self.window.len())
            }
        };
        if let Some(sentence) = &self.last_failure {
            why.push_str(" with: ");
            why.push_str(sentence);
        }
        why
    }

    /// The changes of state since the last time this was asked, oldest first.
    pub(super) fn take_transitions(&mut self) -> Vec<Transition> {
        std::mem::take(&mut self.transitions)
    }

    /// How many calls failed, as the mode counts them.
    fn failures(&self) -> u32 {
        match self.settings.mode {
            BreakerMode::Consecutive(_) => self.in_a_row,
            BreakerMode::Rate { .. } => self.window.failures,
        }
    }

    /// Lets an open breaker whose time is over become half-open.
    fn settle(&mut self, now: Instant) {
        if let Phase::Open { until } = self.phase
            && until <= now
        {
            self.enter(Phase::HalfOpen { running: 0, successes: 0, begun: until }, until);
        }
    }

    fn succeeded(&mut self, now: Instant) {
        self.in_a_row = 0;
        match &mut self.phase {
            Phase::Closed => self.remember(false),
            Phase::Open { .. } => {}
            Phase::HalfOpen { successes, .. } => {
                *successes += 1;
                if *successes >= self.settings.success_threshold {
                    self.enter(Phase::Closed, now);
                }
            }
        }
    }

    fn failed(&mut self, sentence: &str, unreachable: bool, now: Instant) {
        self.last_failure = Some(shorten(sentence).into());
        let too_many = match self.phase {
            Phase::Open { .. } => return,
            Phase::HalfOpen { .. } => true,
            Phase::Closed => false,
        };
        self.unreachable = unreachable;
        self.in_a_row = self.in_a_row.saturating_add(1);
        self.remember(true);
        let too_many = too_many
            || match self.settings.mode {
                BreakerMode::Consecutive(n) => self.in_a_row >= n,
                BreakerMode::Rate { window, percent } => self.window.exceeds(window, percent),
            };
        if too_many {
            // A time that no clock can show is as good as a year.
            let until =
                now.checked_add(self.settings.open_for).unwrap_or(now + Duration::from_secs(365 * 86_400));
            self.opened += 1;
            self.enter(Phase::Open { until }, now);
        }
    }

    fn remember(&mut self, failed: bool) {
        if let BreakerMode::Rate { window, .. } = self.settings.mode {
            self.window.push(failed, window);
        }
    }

    fn enter(&mut self, phase: Phase, now: Instant) {
        let (from, to) = (self.phase.state(), phase.state());
        if to == BreakerState::Closed {
            self.in_a_row = 0;
            self.window = Window::default();
        }
        self.phase = phase;
        self.generation += 1;
        if from != to {
            self.since = now;
            self.transitions.push(Transition { from, to });
        }
    }
}

impl Phase {
    fn state(self) -> BreakerState {
        match self {
            Phase::Closed => BreakerState::Closed,
            Phase::Open { .. } => BreakerState::Open,
            Phase::HalfOpen { .. } => BreakerState::HalfOpen,
        }
    }
}

/// How the last calls ended, oldest first.
#[derive(Debug, Default)]
struct Window {
    failed: VecDeque<bool>,
    failures: u32,
}

impl Window {
    fn len(&self) -> usize {
        self.failed.len()
    }

    fn push(&mut self, failed: bool, size: u32) {
        if self.failed.len() >= size as usize {
            self.failures -= u32::from(self.failed.pop_front() == Some(true));
        }
        self.failed.push_back(failed);
        self.failures += u32::from(failed);
    }

    fn exceeds(&self, size: u32, percent: u8) -> bool {
        self.failed.len() >= size as usize
            && u64::from(self.failures) * 100 >= u64::from(percent) * u64::from(size)
    }
}

/// The beginning of a sentence, on one line and without a full stop, because it becomes part of another one.
fn shorten(sentence: &str) -> String {
    let mut line = String::new();
    for word in sentence.split_whitespace() {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > SENTENCE_BYTES {
            let end = (0..=SENTENCE_BYTES).rev().find(|&at| line.is_char_boundary(at)).unwrap_or(0);
            line.truncate(end);
            line.push('…');
            return line;
        }
    }
    line.truncate(line.trim_end_matches('.').len());
    line
}
