//! [`QueueStatus`]: how full a queue is, for whoever runs the gateway.

use crate::scope::Scope;

/// How full a queue is. It names tenants and users: it is for whoever runs the gateway, and not for callers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatus {
    /// For whom or what calls wait.
    pub scope: Scope,
    /// Which tenant, user, endpoint, tool or server. Where there were too many of them, the first of those who share a queue.
    pub key: String,
    /// How many calls run.
    pub running: usize,
    /// How many wait.
    pub waiting: usize,
    /// How many of these in each class: high, normal, low.
    pub waiting_by_priority: [usize; 3],
    /// How many may run.
    pub max_running: usize,
    /// How many may wait.
    pub max_waiting: usize,
}
