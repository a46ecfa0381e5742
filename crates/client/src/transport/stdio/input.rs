//! The way to the child: messages go straight into the pipe while nothing waits, else through a queue and a task.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use tidegate_protocol::lines::one_line;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::wire_trace;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::pipe::{Direct, Patient};

/// The input of a child. Sending never waits.
#[derive(Clone)]
pub(super) struct Input(Arc<Shared>);

struct Shared {
    name: Arc<str>,
    max_backlog: usize,
    state: Mutex<State>,
    /// Whether the next message may go straight into the pipe.
    ///
    /// One may each time the child has answered or the queue has been written: that makes a lone request as fast as
    /// can be, and lets those of a crowd gather and go out in one write.
    straight: AtomicBool,
    ready: Notify,
    broken: CancellationToken,
    /// How many bytes are in the pipe or were.
    written: AtomicU64,
}

struct State {
    /// How many bytes were taken so far, written or not.
    taken: u64,
    /// From which byte on nobody has read anything, once nobody can any more.
    unread: Option<u64>,
    /// What waits to be written.
    queue: Vec<u8>,
    /// How much the task is writing at the moment.
    writing: usize,
    /// `None` once the input is closed.
    direct: Option<Direct>,
    /// Why nothing more can be sent.
    closed: Option<Error>,
}

impl Input {
    pub(super) fn new(name: Arc<str>, direct: Direct, max_backlog: usize) -> Input {
        Input(Arc::new(Shared {
            name,
            max_backlog,
            state: Mutex::new(State {
                taken: 0,
                unread: None,
                queue: Vec::new(),
                writing: 0,
                direct: Some(direct),
                closed: None,
            }),
            straight: AtomicBool::new(true),
            ready: Notify::new(),
            broken: CancellationToken::new(),
            written: AtomicU64::new(0),
        }))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Sends one message as a line, or queues it, or fails at once. Before the first byte goes out, `at` is told which one
    /// that is.
    pub(super) fn send(&self, message: &[u8], at: impl FnOnce(u64)) -> Result<(), Error> {
        wire_trace::sent_to(&self.0.name, message);
        let mut state = self.state();
        if let Some(why) = &state.closed {
            return Err(why.clone().unexecuted());
        }
        let waiting = state.queue.len() + state.writing;
        at(state.taken);
        let mut written = 0;
        if waiting == 0 {
            if self.0.straight.swap(false, Ordering::Relaxed)
                && memchr::memchr2(b'\n', b'\r', message).is_none()
            {
                written = match state.direct.as_ref().map_or(Ok(0), |direct| direct.write_line(message)) {
                    Ok(written) => written,
                    Err(e) => return Err(self.break_off(&mut state, &e).unexecuted()),
                };
                self.0.written.fetch_add(written as u64, Ordering::Relaxed);
                if written > message.len() {
                    state.taken += written as u64;
                    return Ok(());
                }
            }
        } else if waiting + message.len() >= self.0.max_backlog {
            let what = format!(
                "the server process {:?} does not read its input: {waiting} bytes wait already",
                self.0.name
            );
            return Err(Error::new(Symbol::Unavailable, what).unexecuted());
        }
        let start = state.queue.len();
        state.queue.extend_from_slice(&message[written..]);
        one_line(&mut state.queue[start..]);
        state.queue.push(b'\n');
        state.taken += message.len() as u64 + 1;
        drop(state);
        self.0.ready.notify_one();
        Ok(())
    }

    /// The child has answered something.
    pub(super) fn answered(&self) {
        self.0.straight.store(true, Ordering::Relaxed);
    }

    /// Nothing more will be sent. What waits is still written, then the input ends. The first reason counts.
    pub(super) fn close(&self, why: impl FnOnce() -> Error) {
        let mut state = self.state();
        self.look_what_is_unread(&mut state);
        state.direct = None;
        state.closed.get_or_insert_with(why);
        drop(state);
        self.0.ready.notify_one();
    }

    pub(super) fn is_open(&self) -> bool {
        self.state().closed.is_none()
    }

    /// Waits until the child has closed its input.
    pub(super) async fn broken(&self) {
        self.0.broken.cancelled().await;
    }

    /// From which byte on nobody has read what was sent, or ever will. Nobody knows as long as somebody may still read.
    pub(super) fn unread(&self) -> Option<u64> {
        self.state().unread
    }

    fn look_what_is_unread(&self, state: &mut State) {
        let unread = state.direct.as_ref().and_then(Direct::unread);
        if let Some(unread) = unread {
            state.unread = self.0.written.load(Ordering::Relaxed).checked_sub(unread);
        }
    }

    fn break_off(&self, state: &mut State, e: &std::io::Error) -> Error {
        tracing::debug!(server = &*self.0.name, error = %e, "the input of the server process is closed");
        self.look_what_is_unread(state);
        state.queue = Vec::new();
        state.direct = None;
        self.0.broken.cancel();
        let what = || format!("the server process {:?} takes no more messages", self.0.name);
        state.closed.get_or_insert_with(|| Error::new(Symbol::Unavailable, what())).clone()
    }

    /// Writes what waits until the input is closed and everything is written, or until the child is gone.
    pub(super) async fn write_to(self, mut pipe: Patient) {
        let mut writing = Vec::new();
        loop {
            let closed = {
                let mut state = self.state();
                std::mem::swap(&mut state.queue, &mut writing);
                state.writing = writing.len();
                state.closed.is_some()
            };
            if writing.is_empty() {
                if closed {
                    return;
                }
                self.0.straight.store(true, Ordering::Relaxed);
                self.0.ready.notified().await;
                // Whoever else is about to send something may do so first.
                tokio::task::yield_now().await;
                continue;
            }
            if let Err(e) = pipe.write_all(&writing, &self.0.written).await {
                self.break_off(&mut self.state(), &e);
                return;
            }
            writing.clear();
            // One huge message should not pin its memory for as long as the child lives.
            writing.shrink_to(256 * 1024);
        }
    }
}
