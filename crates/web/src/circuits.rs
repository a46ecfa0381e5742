//! [`Circuits`]: what is outside and keeps failing is left alone for a while.
//!
//! Three calls in a row that get no answer, or a status from 500 on, open the circuit of a service: for 30 seconds everybody
//! is told at once that it is unavailable, then one call tries it again. An answer with a status below 500 shows that the
//! service is there.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_service::layers::{BreakerSettings, BreakerState, Circuit, Pass};

/// Who is given less time than this and gives up says nothing about the service.
const FAIR: Duration = Duration::from_secs(5);
/// How much of the name of a part is used, in characters.
const LONGEST: usize = 100;

/// A circuit for each of a number of services. The one that was not used for longest makes room for another.
#[derive(Debug)]
pub struct Circuits {
    most: usize,
    /// The one that was used last comes first.
    known: Mutex<VecDeque<Circuit>>,
}

impl Circuits {
    /// Circuits for at most this many services.
    pub fn new(most: usize) -> Circuits {
        Circuits { most: most.max(1), known: Mutex::default() }
    }

    fn known(&self) -> MutexGuard<'_, VecDeque<Circuit>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The circuit of a service, by the name that people know it by.
    pub fn of(&self, name: &str) -> Circuit {
        let mut known = self.known();
        let at = known.iter().position(|circuit| circuit.name() == name);
        let circuit = at.and_then(|at| known.remove(at)).unwrap_or_else(|| Circuits::one(name));
        known.truncate(self.most - 1);
        known.push_front(circuit.clone());
        circuit
    }

    /// The circuit of a part of a service, such as one model of a provider: it may fail while the others do not.
    pub fn part(&self, name: &str, part: &str) -> Circuit {
        // Callers may name any.
        let part: String = part.chars().take(LONGEST).collect();
        self.of(&format!("{name} ({part})"))
    }

    /// The circuit of a service, to be looked at: the worst, if its parts have circuits of their own. Nothing is remembered
    /// for that.
    pub fn peek(&self, name: &str) -> Circuit {
        let parts = format!("{name} (");
        let is_it = |circuit: &&Circuit| circuit.name() == name || circuit.name().starts_with(&parts);
        let known: Vec<Circuit> = self.known().iter().filter(is_it).cloned().collect();
        let worst = known.iter().find(|circuit| circuit.state() != BreakerState::Closed).or(known.first());
        worst.cloned().unwrap_or_else(|| Circuits::one(name))
    }

    /// A circuit of its own.
    pub fn one(name: &str) -> Circuit {
        Circuit::new(name, BreakerSettings::devflow())
    }
}

/// Leave to call a service, or that it is unavailable. Who stops waiting at `until` had enough of it, if there was enough
/// time.
pub fn begin(circuit: &Circuit, until: Option<Instant>) -> Result<Pass, tidegate_protocol::Error> {
    match until.filter(|until| until.saturating_duration_since(Instant::now()) >= FAIR) {
        Some(until) => circuit.begin_until(Some(until)),
        None => circuit.begin(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_failures_in_a_row_open_a_circuit() {
        let circuits = Circuits::new(2);
        for _ in 0..2 {
            begin(&circuits.of("a"), None).unwrap().failure("it answered 503");
        }
        begin(&circuits.of("a"), None).unwrap().success();
        for _ in 0..3 {
            begin(&circuits.of("a"), None).unwrap().failure("it answered 503");
        }
        let error = begin(&circuits.of("a"), None).unwrap_err();
        assert!(error.message().starts_with("Service temporarily unavailable"), "{error}");
        assert!(error.message().contains("it answered 503"), "{error}");
        assert_eq!(circuits.peek("a").state(), BreakerState::Open);
        assert!(begin(&circuits.of("b"), None).is_ok());
    }

    #[test]
    fn a_part_of_a_service_fails_alone() {
        let circuits = Circuits::new(8);
        for _ in 0..3 {
            begin(&circuits.part("a", "small"), None).unwrap().failure("x");
        }
        assert!(begin(&circuits.part("a", "small"), None).is_err());
        assert!(begin(&circuits.part("a", "large"), None).is_ok());
        assert!(begin(&circuits.of("a"), None).is_ok());
        assert_eq!(circuits.peek("a").state(), BreakerState::Open, "the worst of them");
        assert_eq!(circuits.peek("aa").state(), BreakerState::Closed);
        assert!(circuits.part("a", &"x".repeat(10_000)).name().len() < 200);
    }

    #[test]
    fn the_circuits_that_were_not_used_are_forgotten() {
        let circuits = Circuits::new(2);
        for _ in 0..3 {
            begin(&circuits.of("a"), None).unwrap().failure("x");
        }
        circuits.of("b");
        assert!(begin(&circuits.of("a"), None).is_err());
        circuits.of("c");
        assert_eq!(circuits.peek("a").state(), BreakerState::Open);
        circuits.of("d");
        assert_eq!(circuits.peek("a").state(), BreakerState::Closed);
        assert_eq!(circuits.known().len(), 2);
    }
}
