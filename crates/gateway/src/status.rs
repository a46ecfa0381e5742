//! [`ServerStatus`]: how a server behind the gateway is doing.

use std::time::Instant;

use tidegate_client::InUse;
use tidegate_service::layers::BreakerState;

/// How a server is doing.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Health {
    /// It is being connected to for the first time.
    Starting,
    /// It answers.
    Ready,
    /// It was stopped because nobody used it; the next call starts it.
    Resting,
    /// It does not answer. What it last offered stays listed.
    Down {
        /// What is wrong, in a sentence for whoever runs the gateway.
        why: String,
        /// The same for callers: without paths, addresses and what programs wrote.
        told: String,
    },
}

impl Health {
    /// One word.
    pub fn as_str(&self) -> &'static str {
        match self {
            Health::Starting => "starting",
            Health::Ready => "ready",
            Health::Resting => "resting",
            Health::Down { .. } => "down",
        }
    }
}

/// How a server behind the gateway is doing.
#[derive(Debug, Clone)]
pub struct ServerStatus {
    /// Its name in the configuration.
    pub name: String,
    /// Whether it answers.
    pub health: Health,
    /// Since when.
    pub since: Instant,
    /// The revision that is spoken with it, once that is known.
    pub revision: Option<tidegate_protocol::Revision>,
    /// The state of its circuit breaker.
    pub breaker: BreakerState,
    /// How many calls are running.
    pub in_flight: usize,
    /// How many tools, prompts, resources and resource templates it lists.
    pub listed: [usize; 4],
    /// How many of its tools are offered, which the configuration decides.
    pub tools: usize,
    /// What is open towards it.
    pub in_use: InUse,
}

/// The target of the log lines that say how servers are doing, as sentences that need none of their fields.
pub const LIFECYCLE: &str = "tidegate::lifecycle";

/// A number of tools, in words.
pub(crate) fn tools(count: usize) -> String {
    if count == 1 { "1 tool".to_owned() } else { format!("{count} tools") }
}
