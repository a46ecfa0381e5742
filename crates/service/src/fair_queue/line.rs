//! [`Line`]: who runs, who waits and whose turn is next, without clocks, tasks and locks.
//!
//! - So many run at once. Whoever leaves hands the place over, so nobody waits while there is room.
//! - Within a class, keys take turns: each hand-over goes to the key whose last one is longest ago, and there to whoever has waited
//!   longest. A key that comes new is behind those that are waiting, and before their second turn.
//! - Classes are strict, except that one that was passed over [`PATIENCE`] times is served next.
//! - So many wait. A full queue takes a newcomer whose key has fewer waiting than another, and pushes out the newest of the key that has
//!   the most: nobody keeps others out by filling the queue.
//!
//! Every step takes logarithmic time.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use super::Priority;
use super::key::FairKey;

/// How many hand-overs a class that waits is passed over before it is served.
pub(super) const PATIENCE: u32 = 3;

const CLASSES: usize = Priority::ALL.len();

/// Somebody who waits, or who has been given a place and does not know it yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ticket {
    pub(super) number: u64,
    key: FairKey,
    priority: Priority,
}

/// What became of somebody who wants to come in.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Joined {
    /// There was room.
    Running,
    /// In line. Whoever is named here was pushed out for it.
    Waiting(Ticket, Option<u64>),
    /// There is no room to wait.
    Full,
}

/// What has happened to a ticket.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Waiting,
    Granted,
    PushedOut,
}

/// The waiters of one key.
#[derive(Debug, Default)]
struct Waiters {
    /// By class, in the order in which they came.
    lines: [BTreeSet<u64>; CLASSES],
    /// Where the key stands in the ring of each class in which it has somebody.
    turns: [u64; CLASSES],
}

impl Waiters {
    fn len(&self) -> usize {
        self.lines.iter().map(BTreeSet::len).sum()
    }
}

/// Who waits in one class.
#[derive(Debug, Default)]
struct Class {
    /// The keys that have somebody here, by turn.
    ring: BTreeMap<u64, FairKey>,
    waiting: usize,
    /// How many hand-overs went to a class before this one while somebody waited here.
    passed_over: u32,
}

/// The queue as a plain value.
#[derive(Debug)]
pub(super) struct Line {
    pub(super) max_running: usize,
    pub(super) max_waiting: usize,
    running: usize,
    classes: [Class; CLASSES],
    keys: HashMap<FairKey, Waiters>,
    /// The same keys by how many wait for each.
    sizes: BTreeSet<(usize, FairKey)>,
    /// Who was given a place, and has not come for it yet.
    granted: HashSet<u64>,
    /// Who lost its place in the queue, and has not heard of it yet.
    pushed_out: HashSet<u64>,
    next_ticket: u64,
    next_turn: u64,
}

impl Line {
    pub(super) fn new(max_running: usize, max_waiting: usize) -> Line {
        Line {
            max_running,
            max_waiting,
            running: 0,
            classes: Default::default(),
            keys: HashMap::new(),
            sizes: BTreeSet::new(),
            granted: HashSet::new(),
            pushed_out: HashSet::new(),
            next_ticket: 0,
            next_turn: 0,
        }
    }

    /// Takes a place, if there is one.
    pub(super) fn try_enter(&mut self) -> bool {
        let is_room = self.running < self.max_running;
        self.running += usize::from(is_room);
        is_room
    }

    /// Takes a place, or gets in line.
    pub(super) fn join(&mut self, key: FairKey, priority: Priority) -> Joined {
        if self.try_enter() {
            return Joined::Running;
        }
        let mut pushed_out = None;
        if self.waiting() >= self.max_waiting {
            let own = self.keys.get(&key).map_or(0, Waiters::len);
            match self.sizes.last() {
                Some((most, other)) if *most > own + 1 => pushed_out = self.push_out(*other),
                _ => return Joined::Full,
            }
        }
        let ticket = Ticket { number: self.next_ticket, key, priority };
        self.next_ticket += 1;
        self.add(ticket);
        Joined::Waiting(ticket, pushed_out)
    }

    /// What has happened to a ticket. One that was granted a place or pushed out is told so once.
    pub(super) fn standing(&mut self, ticket: Ticket) -> Standing {
        if self.granted.remove(&ticket.number) {
            Standing::Granted
        } else if self.pushed_out.remove(&ticket.number) {
            Standing::PushedOut
        } else {
            Standing::Waiting
        }
    }

    /// Leaves the line, or gives back a place that was never used. Who has the place now, if somebody does.
    pub(super) fn give_up(&mut self, ticket: Ticket) -> Option<u64> {
        match self.standing(ticket) {
            Standing::Granted => return self.release(),
            Standing::PushedOut => {}
            Standing::Waiting => self.remove(ticket),
        }
        None
    }

    /// Gives a place back. Who has it now, if somebody was waiting.
    pub(super) fn release(&mut self) -> Option<u64> {
        let Some(next) = self.next() else {
            self.running = self.running.saturating_sub(1);
            return None;
        };
        self.remove(next);
        // The key has had its turn: it goes to the end of the ring.
        let class = next.priority.class();
        if let Some(waiters) = self.keys.get_mut(&next.key)
            && !waiters.lines[class].is_empty()
        {
            let turn = self.next_turn;
            self.next_turn += 1;
            let before = std::mem::replace(&mut waiters.turns[class], turn);
            self.classes[class].ring.remove(&before);
            self.classes[class].ring.insert(turn, next.key);
        }
        self.granted.insert(next.number);
        Some(next.number)
    }

    pub(super) fn running(&self) -> usize {
        self.running
    }

    pub(super) fn waiting(&self) -> usize {
        self.classes.iter().map(|class| class.waiting).sum()
    }

    pub(super) fn waiting_in(&self, priority: Priority) -> usize {
        self.classes[priority.class()].waiting
    }

    /// Whose turn it is, and a note of whom that passes over.
    fn next(&mut self) -> Option<Ticket> {
        let waits = |class: &&Priority| self.classes[class.class()].waiting > 0;
        let first = Priority::ALL.into_iter().find(|class| waits(&class))?;
        let due = Priority::ALL
            .into_iter()
            .filter(|class| waits(&class) && self.classes[class.class()].passed_over >= PATIENCE)
            // Of several, the one that was passed over most, and of these the first.
            .max_by_key(|class| (self.classes[class.class()].passed_over, std::cmp::Reverse(class.class())));
        let priority = due.unwrap_or(first);
        self.classes[priority.class()].passed_over = 0;
        for later in &mut self.classes[priority.class() + 1..] {
            later.passed_over = if later.waiting > 0 { later.passed_over + 1 } else { 0 };
        }
        let (_, key) = self.classes[priority.class()].ring.first_key_value()?;
        let number = *self.keys.get(key)?.lines[priority.class()].first()?;
        Some(Ticket { number, key: *key, priority })
    }

    fn add(&mut self, ticket: Ticket) {
        let class = ticket.priority.class();
        let waiters = self.keys.entry(ticket.key).or_default();
        self.sizes.remove(&(waiters.len(), ticket.key));
        if waiters.lines[class].is_empty() {
            waiters.turns[class] = self.next_turn;
            self.classes[class].ring.insert(self.next_turn, ticket.key);
            self.next_turn += 1;
        }
        waiters.lines[class].insert(ticket.number);
        self.sizes.insert((waiters.len(), ticket.key));
        self.classes[class].waiting += 1;
    }

    fn remove(&mut self, ticket: Ticket) {
        let class = ticket.priority.class();
        let Some(waiters) = self.keys.get_mut(&ticket.key) else { return };
        let before = waiters.len();
        if !waiters.lines[class].remove(&ticket.number) {
            return;
        }
        self.classes[class].waiting -= 1;
        if self.classes[class].waiting == 0 {
            self.classes[class].passed_over = 0;
        }
        if waiters.lines[class].is_empty() {
            self.classes[class].ring.remove(&waiters.turns[class]);
        }
        self.sizes.remove(&(before, ticket.key));
        match waiters.len() {
            0 => drop(self.keys.remove(&ticket.key)),
            left => drop(self.sizes.insert((left, ticket.key))),
        }
    }

    /// Takes the newest waiter of a key out of its least urgent class.
    fn push_out(&mut self, key: FairKey) -> Option<u64> {
        let waiters = self.keys.get(&key)?;
        let newest = |class: &Priority| waiters.lines[class.class()].last().copied();
        let (priority, number) =
            Priority::ALL.into_iter().rev().find_map(|class| Some((class, newest(&class)?)))?;
        self.remove(Ticket { number, key, priority });
        self.pushed_out.insert(number);
        Some(number)
    }

    /// Whether nothing is left of anybody.
    #[cfg(test)]
    pub(super) fn is_untouched(&self) -> bool {
        self.running == 0
            && self.waiting() == 0
            && self.keys.is_empty()
            && self.sizes.is_empty()
            && self.granted.is_empty()
            && self.pushed_out.is_empty()
            && self.classes.iter().all(|class| class.ring.is_empty() && class.passed_over == 0)
    }
}
