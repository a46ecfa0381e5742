//! Policies around any door, each a `tower::Layer`.
//!
//! [`standard`] stacks the ones that every server needs, in the order in which a request meets them.

mod admission;
mod breaker;
mod deadline;
mod panic;
mod retry;
mod size;
mod tool_failure;
mod trace;

use std::time::Duration;

use tower::Layer;

pub use admission::{Admission, AdmissionLayer};
pub use breaker::{
    Breaker, BreakerLayer, BreakerMode, BreakerReport, BreakerSettings, BreakerState, Circuit, Pass,
};
pub use deadline::{Deadline, DeadlineLayer};
pub use panic::{PanicBoundary, PanicBoundaryLayer};
pub use retry::{Retry, RetryLayer, RetryPolicy, is_safe};
pub use size::{SizeLimit, SizeLimitLayer};
pub use tool_failure::{ToolFailureLayer, ToolFailures};
pub use trace::{Trace, TraceLayer};

use crate::door::Door;

/// The limits of [`standard`]. The defaults suit a server on one machine.
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

/// What [`standard`] makes of a door.
pub type Standard<S> = Trace<ToolFailures<SizeLimit<Deadline<Admission<PanicBoundary<S>>>>>>;

/// Every layer that a server needs, outermost first.
pub fn standard<S: Door>(door: S, limits: &Limits) -> Standard<S> {
    let door = PanicBoundaryLayer.layer(door); // a panic is that caller's error and nothing else
    let door = AdmissionLayer::new(limits.concurrent, limits.waiting).layer(door); // bounded concurrency
    let door = DeadlineLayer::new(limits.deadline).layer(door); // waiting for admission counts
    let door = SizeLimitLayer::new(limits.result_bytes).layer(door); // nothing oversized leaves
    let door = ToolFailureLayer.layer(door); // what failed inside a tool is for the model to read
    TraceLayer.layer(door) // every line below carries the correlation id
}
