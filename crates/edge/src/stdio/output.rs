//! The one writer: messages are appended to a buffer, and a task writes whatever has gathered.

use std::sync::Arc;
use std::sync::Mutex;

use tidegate_protocol::lines::one_line;
use tidegate_service::usage::NetworkTransport::Pipe;
use tokio::io::{AsyncWrite, AsyncWriteExt};
use tokio::sync::Notify;

use crate::legacy::MessageSink;
use crate::traffic;

/// The output of a connection. Sending never waits; many messages go out in one write.
#[derive(Clone)]
pub(super) struct Output(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    ready: Notify,
    broken: Notify,
    max_backlog: usize,
}

#[derive(Default)]
struct State {
    buffer: Vec<u8>,
    closed: bool,
    broken: bool,
}

impl Output {
    pub(super) fn new(max_backlog: usize) -> Output {
        Output(Arc::new(Shared {
            state: Mutex::default(),
            ready: Notify::new(),
            broken: Notify::new(),
            max_backlog,
        }))
    }

    fn state(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Queues one message as a line.
    pub(super) fn line(&self, message: &[u8]) {
        traffic::sent(Pipe, message);
        {
            let mut state = self.state();
            if state.broken {
                return;
            }
            if state.buffer.len() + message.len() > self.0.max_backlog {
                // The other side has stopped reading; holding more would only move the failure.
                tracing::warn!(limit = self.0.max_backlog, "closing a connection whose client does not read");
                self.break_off(&mut state);
                return;
            }
            let start = state.buffer.len();
            state.buffer.extend_from_slice(message);
            one_line(&mut state.buffer[start..]);
            state.buffer.push(b'\n');
        }
        self.0.ready.notify_one();
    }

    fn break_off(&self, state: &mut State) {
        state.broken = true;
        state.buffer = Vec::new();
        self.0.broken.notify_one();
    }

    /// Nothing more will be sent.
    pub(super) fn close(&self) {
        self.state().closed = true;
        self.0.ready.notify_one();
    }

    /// Waits until the output is of no more use.
    pub(super) async fn broken(&self) {
        self.0.broken.notified().await;
    }

    /// Writes until closed and empty, or until the other side is gone.
    pub(super) async fn write_to(self, mut out: impl AsyncWrite + Unpin) {
        let mut writing = Vec::new();
        loop {
            let closed = {
                let mut state = self.state();
                std::mem::swap(&mut state.buffer, &mut writing);
                state.closed || state.broken
            };
            if writing.is_empty() {
                if closed {
                    return;
                }
                self.0.ready.notified().await;
                continue;
            }
            let written = match out.write_all(&writing).await {
                Ok(()) => out.flush().await,
                Err(e) => Err(e),
            };
            if let Err(e) = written {
                tracing::debug!(error = %e, "the output is closed");
                self.break_off(&mut self.state());
                return;
            }
            writing.clear();
            // One huge response should not pin its memory for the rest of the connection.
            writing.shrink_to(256 * 1024);
        }
    }
}

impl MessageSink for Output {
    fn send(&self, message: Vec<u8>) {
        self.line(&message);
    }
}
