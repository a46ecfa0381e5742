//! [`FairQueue`]: so many at once, so many waiting, turn by turn.
//!
//! The rules are in `line.rs`, a state machine without I/O; here are the lock around it and the futures of those who wait. A place is given
//! back when its [`Place`] is dropped, and whoever drops a [`Waiting`] has left the queue at once. A queue with room costs one short lock
//! and no allocation.

mod key;
mod line;
mod priority;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use tokio::time::{Instant, Sleep};

pub use key::FairKey;
pub use priority::Priority;

use line::{Joined, Line, Standing, Ticket};

/// Lets in so many at once, has so many wait, and is fair between their [`FairKey`]s. Clones are handles on the same.
#[derive(Debug, Clone)]
pub struct FairQueue(Arc<Mutex<Shared>>);

#[derive(Debug)]
struct Shared {
    line: Line,
    /// Whom to wake, by ticket.
    wakers: HashMap<u64, Waker>,
}

/// How full a queue is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Depth {
    /// How many have a place.
    pub running: usize,
    /// How many wait.
    pub waiting: usize,
    /// How many of these in each class: high, normal, low.
    pub waiting_by_priority: [usize; 3],
    /// How many may have a place.
    pub max_running: usize,
    /// How many may wait.
    pub max_waiting: usize,
}

/// What became of somebody who wants to come in.
#[derive(Debug)]
pub enum Entry {
    /// There was room.
    Entered(Place),
    /// In line.
    Waits(Waiting),
    /// As many are waiting as may.
    Full,
}

/// Why somebody who waited got no place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unserved {
    /// The wait was too long.
    Late,
    /// The queue was full, and others had fewer waiting in it.
    PushedOut,
}

impl FairQueue {
    /// `running` at once, at least one, and `waiting` more.
    pub fn new(running: usize, waiting: usize) -> FairQueue {
        let line = Line::new(running.max(1), waiting);
        FairQueue(Arc::new(Mutex::new(Shared { line, wakers: HashMap::new() })))
    }

    /// A place, if there is one.
    pub fn try_enter(&self) -> Option<Place> {
        self.lock().line.try_enter().then(|| Place(self.clone()))
    }

    /// A place, or a place in line until `deadline`.
    pub fn enter(&self, key: FairKey, priority: Priority, deadline: Option<Instant>) -> Entry {
        let mut shared = self.lock();
        let (ticket, pushed_out) = match shared.line.join(key, priority) {
            Joined::Running => return Entry::Entered(Place(self.clone())),
            Joined::Full => return Entry::Full,
            Joined::Waiting(ticket, pushed_out) => (ticket, pushed_out),
        };
        let waker = pushed_out.and_then(|number| shared.wakers.remove(&number));
        drop(shared);
        waker.into_iter().for_each(Waker::wake);
        Entry::Waits(Waiting { queue: self.clone(), ticket: Some(ticket), deadline, sleep: None })
    }

    /// How full it is.
    pub fn depth(&self) -> Depth {
        let shared = self.lock();
        let line = &shared.line;
        Depth {
            running: line.running(),
            waiting: line.waiting(),
            waiting_by_priority: Priority::ALL.map(|priority| line.waiting_in(priority)),
            max_running: line.max_running,
            max_waiting: line.max_waiting,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Whatever panicked elsewhere, the line is changed as a whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the line, and wakes whoever has a place because of it.
    fn hand_over(&self, change: impl FnOnce(&mut Line) -> Option<u64>) {
        let mut shared = self.lock();
        let waker = change(&mut shared.line).and_then(|number| shared.wakers.remove(&number));
        drop(shared);
        waker.into_iter().for_each(Waker::wake);
    }
}

/// A place, given back when dropped.
#[derive(Debug)]
#[must_use = "the place is given back when this is dropped"]
pub struct Place(FairQueue);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.hand_over(Line::release);
    }
}

/// Somebody in line, until it is polled to its end or dropped.
#[derive(Debug)]
#[must_use = "whoever drops this has left the queue"]
pub struct Waiting {
    queue: FairQueue,
    /// `None` when it has ended.
    ticket: Option<Ticket>,
    deadline: Option<Instant>,
    /// Made when it is first polled, in whichever runtime that is.
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Future for Waiting {
    type Output = Result<Place, Unserved>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.get_mut();
        let Some(ticket) = this.ticket else { return Poll::Ready(Err(Unserved::Late)) };
        let mut shared = this.queue.lock();
        match shared.line.standing(ticket) {
            Standing::Granted => {
                drop(shared);
                this.ticket = None;
                return Poll::Ready(Ok(Place(this.queue.clone())));
            }
            Standing::PushedOut => {
                this.ticket = None;
                return Poll::Ready(Err(Unserved::PushedOut));
            }
            Standing::Waiting => {
                let waker = shared.wakers.entry(ticket.number).or_insert_with(|| cx.waker().clone());
                waker.clone_from(cx.waker());
            }
        }
        drop(shared);
        let Some(deadline) = this.deadline else { return Poll::Pending };
        let sleep = this.sleep.get_or_insert_with(|| Box::pin(tokio::time::sleep_until(deadline)));
        if sleep.as_mut().poll(cx).is_pending() {
            return Poll::Pending;
        }
        this.leave();
        Poll::Ready(Err(Unserved::Late))
    }
}

impl Waiting {
    fn leave(&mut self) {
        let Some(ticket) = self.ticket.take() else { return };
        let mut shared = self.queue.lock();
        let mine = shared.wakers.remove(&ticket.number);
        drop(shared);
        drop(mine);
        self.queue.hand_over(|line| line.give_up(ticket));
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.leave();
    }
}
