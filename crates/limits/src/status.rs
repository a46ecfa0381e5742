//! [`QueueStatus`]: how full a queue is, and [`LimitLeft`]: how much is left of a limit, for whoever runs the gateway.

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

/// How much is left of the limits for one kind of subject, to whoever has used most of them. It names nobody.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LimitLeft {
    /// For whom or what they are.
    pub scope: Scope,
    /// The part of a rate that is left in the emptiest bucket, from 0 to 1; `None` if there is no rate.
    pub rate: Option<f64>,
    /// The part of the places that is free where most are taken, from 0 to 1; `None` if places are not limited.
    pub places: Option<f64>,
}
