//! [`Backlog`]: what one place has not written yet, bounded, with a thread of its own. A place that is slow or gone loses records, and
//! nobody waits for it: neither calls nor the other places.
//!
//! It loses them in one piece. Once something did not fit, nothing is taken until half of the backlog is empty; then a record
//! says which ones are missing, and it goes on from there.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::batch::Batch;
use crate::queue::{CROWDED, Queue};

/// How long to wait before something that failed is tried again: at first, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How often it is looked whether there is room, at the end.
const LOOK: Duration = Duration::from_millis(5);

/// How often a place is asked to look after itself while it is used.
const TICK: Duration = Duration::from_secs(1);

/// A place that records go to.
pub(crate) trait Output: Send {
    /// Writes records. `done` says how many of the batch were written before, and then how many are: what is tried again
    /// after an error begins there.
    fn deliver(&mut self, batch: &Batch, done: &mut usize) -> io::Result<()>;

    /// Looks after itself: about once a second while records come, and a second after the last.
    fn tick(&mut self) {}

    /// It is over.
    fn close(&mut self) {}
}

/// What one place has not written yet.
#[derive(Debug)]
pub(crate) struct Backlog {
    /// The place, in a word.
    pub(crate) name: &'static str,
    /// The same for people, with where it is.
    shown: String,
    limit: usize,
    state: Mutex<State>,
    wake: Condvar,
    queue: Arc<Queue>,
    /// How many places can take no more.
    full: Arc<AtomicUsize>,
}

#[derive(Debug, Default)]
struct State {
    batches: VecDeque<Arc<Batch>>,
    bytes: usize,
    /// The first record that was lost, as long as records are.
    lost_from: Option<u64>,
    /// How many were lost since that was last told.
    lost: u64,
    is_full: bool,
    close_by: Option<Instant>,
}

/// What to do next.
enum Next {
    Deliver(Arc<Batch>),
    Tick,
    End,
}

impl Backlog {
    pub(crate) fn new(
        name: &'static str,
        shown: String,
        limit: usize,
        queue: Arc<Queue>,
        full: Arc<AtomicUsize>,
    ) -> Backlog {
        Backlog { name, shown, limit, state: Mutex::default(), wake: Condvar::new(), queue, full }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes records, or loses them. Never waits.
    pub(crate) fn offer(&self, batch: &Arc<Batch>) {
        let mut state = self.lock();
        if state.lost_from.is_some() || state.bytes + batch.bytes.len() > self.limit {
            let is_news = state.lost_from.is_none();
            state.lost_from.get_or_insert(batch.first);
            state.lost += batch.records.len() as u64;
            self.set_full(&mut state, true);
            drop(state);
            if is_news {
                let place = &self.shown;
                tracing::warn!(
                    place,
                    "Records of the audit trail are lost for {place}: too many are waiting"
                );
            }
            return;
        }
        state.bytes += batch.bytes.len();
        state.batches.push_back(batch.clone());
        if state.bytes > self.limit / CROWDED {
            self.set_full(&mut state, true);
        }
        drop(state);
        self.wake.notify_one();
    }

    /// The first record that was lost, if some were and there is room again. From now on, records are taken.
    pub(crate) fn resume(&self) -> Option<u64> {
        let mut state = self.lock();
        if state.bytes > self.limit / 2 {
            return None;
        }
        let from = state.lost_from.take()?;
        self.set_full(&mut state, false);
        let (lost, place) = (std::mem::take(&mut state.lost), &self.shown);
        drop(state);
        tracing::warn!(
            place,
            lost,
            "{lost} records of the audit trail were lost for {place}, from {from} on"
        );
        Some(from)
    }

    /// If records were lost: waits until there is room again, at most until then.
    pub(crate) fn wait_for_room(&self, by: Instant) {
        let is_full = |state: &State| state.lost_from.is_some() && state.bytes > self.limit / 2;
        while is_full(&self.lock()) && Instant::now() < by {
            std::thread::sleep(LOOK);
        }
    }

    #[cfg(test)]
    pub(crate) fn is_losing(&self) -> bool {
        self.lock().lost_from.is_some()
    }

    /// There is nothing more to come. What there is should be written by then.
    pub(crate) fn close(&self, by: Instant) {
        self.lock().close_by = Some(by);
        self.wake.notify_one();
    }

    fn set_full(&self, state: &mut State, is_full: bool) {
        match (state.is_full, is_full) {
            (false, true) => self.full.fetch_add(1, Ordering::Relaxed),
            (true, false) => self.full.fetch_sub(1, Ordering::Relaxed),
            _ => return,
        };
        state.is_full = is_full;
    }

    /// Writes what comes until it is over. This is the thread of the place.
    pub(crate) fn run(&self, output: &mut dyn Output) {
        let (mut done, mut pause, mut is_failing) = (0, FIRST_PAUSE, false);
        let mut ticked: Option<Instant> = None;
        loop {
            if ticked.is_some_and(|at| at.elapsed() >= TICK) {
                output.tick();
                ticked = None;
            }
            match self.next(ticked) {
                Next::Tick => {}
                Next::End => break,
                Next::Deliver(batch) => match output.deliver(&batch, &mut done) {
                    Ok(()) => {
                        if is_failing {
                            let place = &self.shown;
                            tracing::info!(place, "The audit trail is written to {place} again");
                        }
                        self.delivered();
                        (done, pause, is_failing) = (0, FIRST_PAUSE, false);
                        ticked.get_or_insert_with(Instant::now);
                    }
                    Err(error) => {
                        if !is_failing {
                            self.tell_failed(&error);
                        }
                        is_failing = true;
                        if !self.pause(pause) {
                            break;
                        }
                        pause = (pause * 2).min(LONGEST_PAUSE);
                    }
                },
            }
        }
        self.tell_left();
        output.close();
    }

    /// Waits for what to do next.
    fn next(&self, ticked: Option<Instant>) -> Next {
        let mut state = self.lock();
        loop {
            if let Some(batch) = state.batches.front() {
                return Next::Deliver(batch.clone());
            }
            if state.close_by.is_some() {
                return Next::End;
            }
            match ticked {
                None => state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner),
                Some(at) => {
                    let Some(left) = TICK.checked_sub(at.elapsed()).filter(|left| !left.is_zero()) else {
                        return Next::Tick;
                    };
                    let waited = self.wake.wait_timeout(state, left);
                    state = waited.unwrap_or_else(PoisonError::into_inner).0;
                }
            }
        }
    }

    /// The first batch is written.
    fn delivered(&self) {
        let mut state = self.lock();
        if let Some(batch) = state.batches.pop_front() {
            state.bytes -= batch.bytes.len();
        }
        let has_room = state.bytes <= self.limit / CROWDED / 2;
        let resumes = has_room && state.lost_from.is_some();
        if has_room && !resumes {
            self.set_full(&mut state, false);
        }
        drop(state);
        if resumes {
            self.queue.poke();
        }
    }

    /// Waits before the next attempt. Whether there is time for one.
    fn pause(&self, pause: Duration) -> bool {
        let until = Instant::now() + pause;
        let mut state = self.lock();
        loop {
            let now = Instant::now();
            if state.close_by.is_some_and(|by| now >= by) {
                return false;
            }
            // At the end there is no time for long pauses.
            let until = state.close_by.map_or(until, |by| until.min(by).min(now + FIRST_PAUSE));
            let Some(left) = until.checked_duration_since(now).filter(|left| !left.is_zero()) else {
                return true;
            };
            let is_closing = state.close_by.is_some();
            let waited = self.wake.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
            if is_closing {
                return state.close_by.is_none_or(|by| Instant::now() < by);
            }
        }
    }

    fn tell_failed(&self, error: &io::Error) {
        let (place, limit) = (&self.shown, self.limit);
        tracing::warn!(
            place,
            "The audit trail cannot be written to {place}: {error}. Up to {limit} bytes of records wait until it can"
        );
    }

    /// What could not be written before the end.
    fn tell_left(&self) {
        let (left, place) = {
            let state = self.lock();
            let waiting: usize = state.batches.iter().map(|batch| batch.records.len()).sum();
            (waiting as u64 + state.lost, &self.shown)
        };
        if left > 0 {
            tracing::warn!(
                place,
                lost = left,
                "{left} records of the audit trail could not be written to {place}"
            );
        }
    }
}
