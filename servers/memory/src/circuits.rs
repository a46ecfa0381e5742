//! Circuits of services outside ([`tidegate_web::Circuits`]), in the words of this server.

use std::time::Instant;

use serde_json::{Value, json};
use tidegate_service::layers::{BreakerState, Circuit, Pass};

use crate::error::{Code, Fault, Result};

/// Leave to call a service, or that it is unavailable. Who stops waiting at `until` had enough of it, if there was enough
/// time.
pub(crate) fn begin(circuit: &Circuit, until: Option<Instant>) -> Result<Pass> {
    tidegate_web::begin(circuit, until).map_err(|error| {
        // With what it failed was said to another caller, who may be another tenant's. It is in the log.
        let then = match error.retry_after().filter(|_| circuit.state() == BreakerState::Open) {
            Some(time) => format!("is tried again in {} s", time.as_secs_f64().ceil().max(1.0)),
            None => "is being tried again at this moment".to_owned(),
        };
        let (name, failures) = (circuit.name(), circuit.report().failures);
        let sentence = format!(
            "Service temporarily unavailable (circuit open): {name} failed {failures} times in a row. It {then}"
        );
        Fault::new(Code::Unavailable, sentence)
    })
}

/// A circuit as it is shown to callers: without what it failed with, which may be about another caller's request.
pub(crate) fn shown(circuit: &Circuit) -> Value {
    let report = circuit.report();
    json!({"state": report.state.as_str(), "failures": report.failures})
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_web::Circuits;

    #[test]
    fn an_open_circuit_is_a_fault_that_says_why() {
        let circuits = Circuits::new(2);
        for _ in 0..3 {
            begin(&circuits.of("a"), None).unwrap().failure("it answered 503");
        }
        let fault = begin(&circuits.of("a"), None).unwrap_err();
        assert_eq!(fault.code, Code::Unavailable);
        assert!(fault.message.starts_with("Service temporarily unavailable"), "{fault}");
        assert!(fault.message.contains("a failed 3 times in a row. It is tried again in "), "{fault}");
        assert!(!fault.message.contains("503"), "that was said to somebody else: {fault}");
        assert_eq!(shown(&circuits.peek("a")), json!({"state": "OPEN", "failures": 3}));
        assert_eq!(shown(&circuits.peek("b"))["state"], "CLOSED");
    }
}
