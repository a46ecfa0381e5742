//! [`Gates`]: a queue for each tenant, user, tool and so on that is limited in how many calls run at once.

use std::borrow::Cow;
use std::collections::HashMap;

use tidegate_config::Concurrency;
use tidegate_service::fair_queue::{Entry, FairKey, FairQueue, Priority};
use tokio::time::Instant;

use crate::keyed::{CounterKey, KeyedMap};
use crate::scope::Scope;
use crate::status::QueueStatus;

/// How many queues there are at once.
const MOST_GATES: usize = 65_536;

/// A place that a call needs.
#[derive(Debug, Clone)]
pub(crate) struct Slot<'a> {
    pub(crate) key: CounterKey,
    pub(crate) scope: Scope,
    pub(crate) limit: Concurrency,
    /// Whether the limit is for some calls only.
    pub(crate) is_rule: bool,
    pub(crate) name: Cow<'a, str>,
}

impl Slot<'_> {
    pub(crate) fn into_owned(self) -> Slot<'static> {
        Slot { name: Cow::Owned(self.name.into_owned()), ..self }
    }
}

/// The queues.
#[derive(Debug)]
pub(crate) struct Gates(KeyedMap<Gate>);

#[derive(Debug)]
struct Gate {
    queue: FairQueue,
    scope: Scope,
    name: Box<str>,
    /// The number of the limit that it is for.
    limit: u64,
}

impl Gates {
    pub(crate) fn new() -> Gates {
        Gates(KeyedMap::new(MOST_GATES))
    }

    /// Takes a place, or gets in line for one. Only then it is asked who it is that waits, and how urgent that is.
    pub(crate) fn enter(
        &self,
        slot: &Slot<'_>,
        turn: impl FnOnce() -> (FairKey, Priority),
        deadline: Option<Instant>,
    ) -> Entry {
        let idle = |gate: &Gate| {
            let depth = gate.queue.depth();
            depth.running == 0 && depth.waiting == 0
        };
        let make = || Gate {
            queue: FairQueue::new(slot.limit.running, slot.limit.waiting),
            scope: slot.scope,
            name: slot.name.as_ref().into(),
            limit: slot.key.limit,
        };
        // Whoever enters does so while the map is locked, so nothing that is idle there can be in use.
        self.0.with(slot.key, idle, make, |gate| match gate.queue.try_enter() {
            Some(place) => Entry::Entered(place),
            None => {
                let latest = Instant::now() + slot.limit.wait;
                let deadline = deadline.map_or(latest, |deadline| deadline.min(latest));
                let (fair, priority) = turn();
                gate.queue.enter(fair, priority, Some(deadline))
            }
        })
    }

    /// The part of the places of the fullest queue that is free, from 0 to 1, by the number of the limit, for those that somebody is in.
    pub(crate) fn fullest(&self) -> HashMap<u64, f64> {
        let mut fullest = HashMap::new();
        self.0.for_each(|gate| {
            let depth = gate.queue.depth();
            let free =
                depth.max_running.saturating_sub(depth.running) as f64 / depth.max_running.max(1) as f64;
            let least = fullest.entry(gate.limit).or_insert(1.0);
            *least = free.min(*least);
        });
        fullest
    }

    /// The queues that somebody is in, the busiest first, at most so many.
    pub(crate) fn status(&self, most: usize) -> Vec<QueueStatus> {
        let mut busy = Vec::new();
        let by_depth = |queue: &QueueStatus| std::cmp::Reverse((queue.waiting, queue.running));
        self.0.for_each(|gate| {
            let depth = gate.queue.depth();
            if depth.running == 0 && depth.waiting == 0 {
                return;
            }
            busy.push(QueueStatus {
                scope: gate.scope,
                key: gate.name.to_string(),
                running: depth.running,
                waiting: depth.waiting,
                waiting_by_priority: depth.waiting_by_priority,
                max_running: depth.max_running,
                max_waiting: depth.max_waiting,
            });
            if busy.len() >= 2 * most {
                busy.sort_by_key(by_depth);
                busy.truncate(most);
            }
        });
        busy.sort_by_key(by_depth);
        busy.truncate(most);
        busy
    }

    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }
}
