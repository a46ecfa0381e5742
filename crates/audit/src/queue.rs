//! [`Queue`]: what happened and is not chained yet. Whoever puts something in never waits for anything but others who do the same.
//!
//! Two buffers take turns: one is filled while the other is written. The thread that empties them is woken for the first record
//! after a while of nothing and then gathers for a moment, so that a record costs no system call.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::kind::Kind;

/// For how long records are gathered.
const GATHER: Duration = Duration::from_millis(10);

/// Which part of what may wait is enough to begin nothing more.
pub(crate) const CROWDED: usize = 4;

/// A buffer that was larger than this is given back.
const KEPT: usize = 1 << 20;

/// What is before each record in the buffer: its length, its kind, its time.
const HEADER: usize = 4 + 1 + 8;

/// What waits to be chained.
#[derive(Debug)]
pub(crate) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    /// How many bytes may wait, those included that are being written.
    limit: usize,
    /// How many do.
    waiting: AtomicUsize,
    is_full: AtomicBool,
}

#[derive(Debug, Default)]
struct State {
    filling: Vec<u8>,
    /// How many bytes were taken and are being written.
    taken: usize,
    /// How many records there was no room for.
    dropped: u64,
    /// Whether the thread that empties it sleeps until somebody wakes it.
    is_asleep: bool,
    /// Whether there is something to do besides what is in here.
    is_poked: bool,
    /// It is over; until then everything should be written.
    close_by: Option<Instant>,
}

/// What was taken.
#[derive(Debug)]
pub(crate) struct Taken {
    /// How many records are missing after it.
    pub(crate) dropped: u64,
    /// It is over, and this is the last of it.
    pub(crate) close_by: Option<Instant>,
}

impl Queue {
    pub(crate) fn new(limit: usize) -> Queue {
        Queue {
            state: Mutex::default(),
            wake: Condvar::new(),
            limit,
            waiting: AtomicUsize::new(0),
            is_full: AtomicBool::new(false),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a record in, or counts it if there is no room.
    pub(crate) fn push(&self, ms: u64, kind: Kind, members: &[u8]) {
        let length = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let mut state = self.lock();
        let before = state.filling.len();
        let after = before + HEADER + members.len();
        if after + state.taken > self.limit || length == u32::MAX || state.close_by.is_some() {
            state.dropped += 1;
            self.is_full.store(true, Ordering::Relaxed);
        } else {
            let filling = &mut state.filling;
            filling.extend_from_slice(&length.to_le_bytes());
            filling.push(kind as u8);
            filling.extend_from_slice(&ms.to_le_bytes());
            filling.extend_from_slice(members);
            self.waiting.store(after + state.taken, Ordering::Relaxed);
        }
        let half = self.limit / 2;
        if state.is_asleep || (before < half && after >= half) {
            state.is_asleep = false;
            drop(state);
            self.wake.notify_one();
        }
    }

    /// Counts a record that is left out on purpose.
    pub(crate) fn leave_out(&self) {
        self.lock().dropped += 1;
    }

    /// Whether so much waits that nothing more should begin: what has begun needs the rest.
    pub(crate) fn is_crowded(&self) -> bool {
        self.is_full.load(Ordering::Relaxed) || self.waiting.load(Ordering::Relaxed) > self.limit / CROWDED
    }

    /// Waits for records and takes all of them. `buffer` is what was taken before, and is written by now.
    pub(crate) fn take(&self, buffer: &mut Vec<u8>) -> Taken {
        buffer.clear();
        if buffer.capacity() > KEPT {
            *buffer = Vec::new();
        }
        let mut state = self.lock();
        state.taken = 0;
        self.waiting.store(state.filling.len(), Ordering::Relaxed);
        while state.filling.is_empty() && state.dropped == 0 && !state.is_poked && state.close_by.is_none() {
            state.is_asleep = true;
            state = self.wake.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.is_asleep = false;
        let half = self.limit / 2;
        let gathers =
            |state: &mut State| state.filling.len() < half && !state.is_poked && state.close_by.is_none();
        let waited = self.wake.wait_timeout_while(state, GATHER, gathers);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        state.is_poked = false;
        std::mem::swap(&mut state.filling, buffer);
        state.taken = buffer.len();
        self.waiting.store(state.taken, Ordering::Relaxed);
        self.is_full.store(false, Ordering::Relaxed);
        Taken { dropped: std::mem::take(&mut state.dropped), close_by: state.close_by }
    }

    /// Has the thread that empties it look after everything.
    pub(crate) fn poke(&self) {
        self.lock().is_poked = true;
        self.wake.notify_one();
    }

    /// Takes nothing any more. What is in it should be written by then.
    pub(crate) fn close(&self, by: Instant) {
        self.lock().close_by.get_or_insert(by);
        self.wake.notify_one();
    }

    /// Whether there was no room for something, and there still is none.
    #[cfg(test)]
    pub(crate) fn is_full(&self) -> bool {
        self.is_full.load(Ordering::Relaxed)
    }
}

/// The records in a buffer: time, kind and members.
pub(crate) fn entries(buffer: &[u8]) -> impl Iterator<Item = (u64, Kind, &[u8])> {
    let mut rest = buffer;
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk::<4>()?;
        let (kind, after) = after.split_first()?;
        let (ms, after) = after.split_first_chunk::<8>()?;
        let (members, after) = after.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        rest = after;
        Some((u64::from_le_bytes(*ms), Kind::of(*kind)?, members))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_in_comes_out_and_what_has_no_room_is_counted() {
        let queue = Queue::new(100);
        queue.push(1, Kind::Call, b",\"a\":1");
        queue.push(2, Kind::Stop, b"");
        queue.push(3, Kind::Call, &[b' '; 80]);
        assert!(queue.is_full());
        let mut buffer = Vec::new();
        let taken = queue.take(&mut buffer);
        assert_eq!((taken.dropped, taken.close_by), (1, None));
        let all: Vec<_> = entries(&buffer).collect();
        assert_eq!(all, [(1, Kind::Call, &b",\"a\":1"[..]), (2, Kind::Stop, b"")]);
        assert!(!queue.is_full());
        // What is being written counts.
        queue.push(4, Kind::Call, &[b' '; 60]);
        assert!(queue.is_full());
        assert_eq!(queue.take(&mut buffer).dropped, 1);
        assert!(buffer.is_empty());
        queue.close(Instant::now());
        assert!(queue.take(&mut buffer).close_by.is_some());
        queue.push(5, Kind::Call, b"");
        assert_eq!(queue.take(&mut buffer).dropped, 1, "nothing gets in when it is over");
    }

    #[test]
    fn every_kind_has_its_number() {
        for number in 0..=u8::MAX {
            assert!(Kind::of(number).is_none_or(|kind| kind as u8 == number));
        }
        assert_eq!(Kind::of(Kind::Stop as u8), Some(Kind::Stop));
    }
}
