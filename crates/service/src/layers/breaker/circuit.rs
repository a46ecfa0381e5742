//! [`Circuit`]: one breaker, shared by those who call, those who probe and those who watch.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use tidegate_protocol::{Error, Json, Object, Symbol};

use super::settings::BreakerSettings;
use super::state::{BreakerReport, BreakerState, Machine, Outcome, Permit, Refused, Transition};
use crate::events::{self, CircuitChanged, Event};

/// A handle on a breaker. Clones are handles on the same one.
///
/// [`BreakerLayer`](super::BreakerLayer) puts a circuit around a door. Whatever else a server calls, a web API for
/// example, can use one directly:
///
/// ```
/// use tidegate_service::layers::{BreakerSettings, BreakerState, Circuit};
///
/// let circuit = Circuit::new("api.example.com", BreakerSettings::devflow());
/// for _ in 0..3 {
///     let pass = circuit.begin().unwrap();
///     pass.failure("connection refused");
/// }
/// assert_eq!(circuit.state(), BreakerState::Open);
/// assert!(circuit.begin().unwrap_err().message().starts_with(
///     "Service temporarily unavailable (circuit open): api.example.com failed 3 times in a row, \
///      the last time with: connection refused. It is tried again in"
/// ));
/// ```
#[derive(Debug, Clone)]
pub struct Circuit(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    name: Box<str>,
    machine: Mutex<Machine>,
}

impl Circuit {
    /// A closed circuit. The name is what people know the other side by.
    pub fn new(name: impl Into<String>, settings: BreakerSettings) -> Circuit {
        let machine = Mutex::new(Machine::new(settings, now()));
        Circuit(Arc::new(Shared { name: name.into().into(), machine }))
    }

    /// The name of the other side.
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// Asks for leave to make a call. The error is the answer to the caller: it says why, and when to come back.
    pub fn begin(&self) -> Result<Pass, Error> {
        self.begin_until(None)
    }

    /// The same for a call that ends at `deadline`: if its pass is dropped after that, the other side was too slow, and
    /// that counts as a failure.
    pub fn begin_until(&self, deadline: Option<Instant>) -> Result<Pass, Error> {
        let begun =
            self.with(|machine, now| machine.try_begin(now).map_err(|refused| (refused, machine.why())));
        match begun {
            Ok(permit) => Ok(Pass { circuit: self.clone(), permit: Some(permit), deadline }),
            Err((refused, why)) => Err(self.refusal(refused, &why)),
        }
    }

    /// The state at this moment. An open circuit whose time is over is half-open.
    pub fn state(&self) -> BreakerState {
        self.with(|machine, now| machine.state(now))
    }

    /// Everything there is to show: state, since when, failures, how often it opened, and the last failure.
    pub fn report(&self) -> BreakerReport {
        self.with(|machine, now| machine.report(now))
    }

    /// A probe got an answer: a circuit that is open because the other side could not be reached closes without waiting
    /// for a caller. One that failing calls opened stays as it is, because a server can answer `ping` while its tools
    /// hang: that one is closed by trial calls.
    pub fn report_success(&self) {
        self.with(|machine, now| machine.report_success(now));
    }

    /// A probe failed: counts like a call that could not be made. It does not put off the next trial call of an open
    /// circuit.
    pub fn report_failure(&self, sentence: &str) {
        self.with(|machine, now| machine.report_failure(sentence, now));
    }

    /// Closes the circuit and forgets all failures, for example because the server was replaced.
    pub fn reset(&self) {
        self.with(|machine, now| machine.reset(now));
    }

    /// Works on the machine and logs what changed. Nothing is logged or awaited under the lock.
    fn with<T>(&self, work: impl FnOnce(&mut Machine, Instant) -> T) -> T {
        let now = now();
        let (result, transitions, why) = {
            let mut machine = self.0.machine.lock().unwrap_or_else(PoisonError::into_inner);
            let result = work(&mut machine, now);
            let transitions = machine.take_transitions();
            let why = if transitions.is_empty() { String::new() } else { machine.why() };
            (result, transitions, why)
        };
        for Transition { from, to } in transitions {
            let changed = CircuitChanged { breaker: self.name(), from, to, why: &why };
            events::emit(&Event::CircuitChanged(changed));
        }
        result
    }

    fn refusal(&self, refused: Refused, why: &str) -> Error {
        let name = self.name();
        let then = match refused.trying {
            true => "is being tried again at this moment".to_owned(),
            false => format!("is tried again in {} s", refused.retry_after.as_secs_f64().ceil().max(1.0)),
        };
        let message = format!("Service temporarily unavailable (circuit open): {name} {why}. It {then}");
        let state = if refused.trying { BreakerState::HalfOpen } else { BreakerState::Open };
        let error = Error::new(Symbol::CircuitOpen, message).unexecuted();
        with_state(error.with_retry_after(refused.retry_after), state)
    }
}

/// The same failure, with the state of the circuit among its data.
pub(super) fn with_state(error: Error, state: BreakerState) -> Error {
    let data = match error.data() {
        None => Object::of(&Json::empty_object()),
        Some(data) => Object::of(data),
    };
    // Data that is no object is somebody else's, and stays as it is.
    match data {
        Some(data) => error.with_data(data.with("circuitState", &Json::string(state.as_str()))),
        None => error,
    }
}

/// Leave to make one call. Say how it ended; a pass that is dropped says nothing, and a trial gives its place back.
#[derive(Debug)]
#[must_use = "a pass that is dropped says nothing about the call"]
pub struct Pass {
    circuit: Circuit,
    permit: Option<Permit>,
    deadline: Option<Instant>,
}

impl Pass {
    /// The other side answered, be it with an error of the caller's making.
    pub fn success(self) {
        self.finish(Outcome::Success);
    }

    /// The other side broke down or was too slow. The sentence is shown to those whose calls are refused later on.
    pub fn failure(self, sentence: &str) {
        self.finish(Outcome::Failure(sentence));
    }

    /// The other side could not be reached, so that nothing was asked of it. The sentence is shown to those whose calls
    /// are refused later on.
    pub fn unreachable(self, sentence: &str) {
        self.finish(Outcome::Unreachable(sentence));
    }

    /// Says how the call ended. Returns the state that the circuit is in then.
    pub(super) fn finish(mut self, outcome: Outcome<'_>) -> BreakerState {
        self.give_back(outcome).unwrap_or(BreakerState::Closed)
    }

    fn give_back(&mut self, outcome: Outcome<'_>) -> Option<BreakerState> {
        let permit = self.permit.take()?;
        Some(self.circuit.with(|machine, now| {
            machine.finish(permit, outcome, now);
            machine.state(now)
        }))
    }
}

impl Drop for Pass {
    fn drop(&mut self) {
        // A layer further out drops the call when its deadline passes. That is no change of mind of the caller but a
        // server that did not answer, and nobody else would count it.
        let late = self.permit.is_some() && self.deadline.is_some_and(|deadline| deadline <= now());
        self.give_back(match late {
            true => Outcome::Failure("it did not answer in time"),
            false => Outcome::Neither,
        });
    }
}

/// The runtime's clock, which tests can stop.
fn now() -> Instant {
    tokio::time::Instant::now().into_std()
}
