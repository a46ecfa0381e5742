//! Circuits of services outside ([`tidegate_web::Circuits`]), in the words of this server.

use std::time::Instant;

use serde_json::{Value, json};
use tidegate_service::layers::{Circuit, Pass};

use crate::store::{Code, Fault, Result};

/// Leave to call a service, or that it is unavailable. Who stops waiting at `until` had enough of it, if there was enough
/// time.
pub(crate) fn begin(circuit: &Circuit, until: Option<Instant>) -> Result<Pass> {
    tidegate_web::begin(circuit, until)
        .map_err(|error| Fault::new(Code::Unavailable, error.message().to_owned()))
}

/// A circuit as it is shown to people.
pub(crate) fn shown(circuit: &Circuit) -> Value {
    let report = circuit.report();
    let mut shown = json!({"state": report.state.as_str(), "failures": report.failures});
    if let Some(why) = report.last_failure {
        shown["lastFailure"] = json!(&*why);
    }
    shown
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
        assert!(fault.message.contains("it answered 503"), "{fault}");
        assert_eq!(shown(&circuits.peek("a"))["state"], "OPEN");
        assert_eq!(shown(&circuits.peek("b"))["state"], "CLOSED");
    }
}
