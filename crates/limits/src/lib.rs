//! How much callers may do: rates, how many calls at once, sizes, and the budgets of runs.
//!
//! [`CallLimits`] is what the configuration says, made anew when that changes. [`LimitStore`] is what was counted, and outlives it. Each call
//! is asked about once, after it is known that it is allowed and where it goes, and carries its [`Pass`] until it is answered:
//!
//! ```
//! use std::sync::Arc;
//!
//! use tidegate_config::LimitSettings;
//! use tidegate_limits::{CallLimits, LimitStore, Target};
//! use tidegate_protocol::{Error, Json, Method, Params};
//! use tidegate_service::{Call, Context, Reply};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Error> {
//! let (limits, store) = (CallLimits::new(&LimitSettings::default()), Arc::new(LimitStore::new()));
//! let call = Call::new(Method::ToolsCall, Params::empty(), Context::local());
//! let target = Target { server: Some("github"), tool: Some("github_search"), is_part: false, is_counted: false, is_unlisted: false };
//!
//! let pass = limits.enter(&store, &call, target)?.pass().await?;
//! let reply = Reply::Complete(Json::empty_object()); // whatever answers the call
//! pass.answered(&reply)?;
//! # Ok(()) }
//! ```
//!
//! Whatever is refused is refused with a sentence that a model can act on, and without names of other tenants and users (`refusal.rs`).
//! Everything that is kept for somebody has a bound, and time is that of a clock that nobody sets (`clock.rs`).

mod call_limits;
mod clock;
mod counters;
mod gates;
mod group;
mod keyed;
mod pass;
mod refusal;
mod runs;
mod scope;
mod status;
mod store;
#[cfg(test)]
mod tests;

pub use call_limits::{CallLimits, Target};
pub use counters::{Counters, MemoryCounters, Taken};
pub use keyed::CounterKey;
pub use pass::{Entering, Pass, Queued};
pub use scope::Scope;
pub use status::{LimitLeft, QueueStatus};
pub use store::LimitStore;
