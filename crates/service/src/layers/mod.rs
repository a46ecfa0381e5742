//! Policies around any door, each a `tower::Layer`.
//!
//! [`front`] stacks the ones that are in front of everything, in the order in which a call meets them.

mod admission;
mod breaker;
mod deadline;
mod events;
mod panic;
mod retry;
mod server_calls;
mod size;
mod tool_failure;

use std::time::Duration;

use tower::Layer;

pub use admission::{Admission, AdmissionLayer, PriorityOf};
pub use breaker::{
    Breaker, BreakerLayer, BreakerMode, BreakerReport, BreakerSettings, BreakerState, Circuit, Pass,
};
pub use deadline::{Deadline, DeadlineLayer};
pub use events::{Events, EventsFuture, EventsLayer};
pub use panic::{PanicBoundary, PanicBoundaryLayer};
pub use retry::{Retry, RetryLayer, RetryPolicy, is_safe};
pub use server_calls::{ServerCalls, ServerCallsFuture, ServerCallsLayer};
pub use size::{SizeLimit, SizeLimitLayer};
pub use tool_failure::{ToolFailureLayer, ToolFailures};

use crate::door::Door;

/// The limits of [`front`]. The defaults suit a server on one machine.
#[derive(Debug, Clone)]
pub struct Limits {
    /// How long a call may take when its caller set no deadline. Default 60 s.
    pub deadline: Duration,
    /// How many calls run at once. Default 1024.
    pub concurrent: usize,
    /// How many more may wait for their turn; beyond that, calls are refused at once. Default 4096.
    pub waiting: usize,
    /// How large a result may be. Default 16 MiB.
    pub result_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            deadline: Duration::from_secs(60),
            concurrent: 1024,
            waiting: 4096,
            result_bytes: 16 * 1024 * 1024,
        }
    }
}

/// What [`front`] makes of a door.
pub type Front<S> = Events<ToolFailures<S>>;

/// What [`front`] puts directly around whatever answers.
pub type Bounded<S> = SizeLimit<Deadline<Admission<PanicBoundary<S>>>>;

/// The front: the one chain of layers that every call passes, outermost first. ARCHITECTURE.md draws it.
///
/// `gate` puts layers of the application in between: who may do what, and how much of it. They are told who calls, can refuse,
/// and their refusals become what the caller can read. Without any it is `|door| door`.
pub fn front<S: Door, G: Door>(door: S, limits: &Limits, gate: impl FnOnce(Bounded<S>) -> G) -> Front<G> {
    front_with(door, limits, &AdmissionLayer::new(limits.concurrent, limits.waiting), gate)
}

/// [`front`] with an admission of the application's own: one with priorities, or one whose depth somebody looks at.
pub fn front_with<S: Door, G: Door>(
    door: S,
    limits: &Limits,
    admission: &AdmissionLayer,
    gate: impl FnOnce(Bounded<S>) -> G,
) -> Front<G> {
    let door = PanicBoundaryLayer.layer(door); // a panic is that caller's error and nothing else
    let door = admission.layer(door); // bounded concurrency, fair between tenants
    let door = DeadlineLayer::new(limits.deadline).layer(door); // every call ends; waiting for admission counts
    let door = SizeLimitLayer::new(limits.result_bytes).layer(door); // nothing oversized leaves
    let door = gate(door); // may they, and how much of it?
    let door = ToolFailureLayer.layer(door); // what failed inside a tool is for the model to read
    EventsLayer.layer(door) // one record for each call; every log line below carries its id
}
