//! [`LimitStore`]: what was counted, who waits, and what runs have done.

use std::fmt;

use crate::counters::{Counters, MemoryCounters};
use crate::gates::Gates;
use crate::keyed::KeyMaker;
use crate::runs::Runs;
use crate::status::QueueStatus;

/// How many queues are shown.
const MOST_SHOWN: usize = 100;

/// What was counted, who waits, and what runs have done. It outlives configurations: a limit that stays as it was keeps its count.
pub struct LimitStore {
    pub(crate) keys: KeyMaker,
    pub(crate) counters: Box<dyn Counters>,
    pub(crate) gates: Gates,
    pub(crate) runs: Runs,
}

impl LimitStore {
    /// One that counts in this process.
    pub fn new() -> LimitStore {
        LimitStore::with_counters(MemoryCounters::new())
    }

    /// One that counts rates elsewhere.
    pub fn with_counters(counters: impl Counters) -> LimitStore {
        LimitStore {
            keys: KeyMaker::new(),
            counters: Box::new(counters),
            gates: Gates::new(),
            runs: Runs::new(),
        }
    }

    /// The queues that calls are in, those with the most waiting first: at most 100.
    pub fn queues(&self) -> Vec<QueueStatus> {
        self.gates.status(MOST_SHOWN)
    }
}

impl Default for LimitStore {
    fn default() -> LimitStore {
        LimitStore::new()
    }
}

impl fmt::Debug for LimitStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LimitStore").finish_non_exhaustive()
    }
}
