//! Clients that never finish their headers are sent away.
//!
//! hyper can do that with a timer for each request, which costs as much as a good part of a small call. Here each
//! connection keeps a pulse, and one task looks at all of them now and then.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use tokio::task::AbortHandle;

/// What a connection is doing, in a few counters.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Bytes read so far.
    read: AtomicU64,
    /// Bytes that had been read when the last request was answered.
    answered_at: AtomicU64,
    /// Requests that are being answered.
    open: AtomicU32,
}

impl Pulse {
    pub(super) fn read(&self, bytes: usize) {
        self.read.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// A whole request has come.
    pub(super) fn begin(&self) {
        self.open.fetch_add(1, Ordering::Relaxed);
    }

    /// It is answered.
    pub(super) fn end(&self) {
        self.answered_at.store(self.read.load(Ordering::Relaxed), Ordering::Relaxed);
        self.open.fetch_sub(1, Ordering::Relaxed);
    }

    /// Where in the stream a request began that is not whole yet, if one did. The beginning counts as well: a client
    /// that connects and says nothing holds a place.
    fn waiting_since(&self) -> Option<u64> {
        let answered_at = self.answered_at.load(Ordering::Relaxed);
        let idle = answered_at > 0 && self.read.load(Ordering::Relaxed) == answered_at;
        (self.open.load(Ordering::Relaxed) == 0 && !idle).then_some(answered_at)
    }
}

/// Looks after the connections of one listener.
pub(super) struct Watch {
    connections: Arc<Mutex<Vec<Watched>>>,
}

struct Watched {
    pulse: Weak<Pulse>,
    task: AbortHandle,
    /// What the connection was waiting for at the last look.
    waiting: Option<u64>,
}

impl Watch {
    /// A connection that waits for the rest of one request for about `limit` is ended.
    pub(super) fn start(limit: Duration) -> Watch {
        let connections = Arc::new(Mutex::new(Vec::new()));
        let weak = Arc::downgrade(&connections);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(limit).await;
                let Some(connections) = weak.upgrade() else { break };
                look(&connections);
            }
        });
        Watch { connections }
    }

    pub(super) fn add(&self, pulse: &Arc<Pulse>, task: AbortHandle) {
        let watched = Watched { pulse: Arc::downgrade(pulse), task, waiting: None };
        self.connections.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(watched);
    }
}

/// Ends those that wait for the same request as at the last look, and forgets those that are gone.
fn look(connections: &Mutex<Vec<Watched>>) {
    connections.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).retain_mut(|watched| {
        let Some(pulse) = watched.pulse.upgrade() else { return false };
        let waiting = pulse.waiting_since();
        let stalled = waiting.is_some() && waiting == watched.waiting;
        watched.waiting = waiting;
        if stalled {
            tracing::info!("closing a connection that does not finish its request");
            watched.task.abort();
        }
        !stalled
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_unfinished_requests_count() {
        let pulse = Pulse::default();
        assert_eq!(pulse.waiting_since(), Some(0), "it has said nothing yet");
        pulse.read(10);
        assert_eq!(pulse.waiting_since(), Some(0), "half a header");
        pulse.begin();
        pulse.read(90);
        assert_eq!(pulse.waiting_since(), None, "being answered, however long the body or the answer takes");
        pulse.end();
        assert_eq!(pulse.waiting_since(), None, "kept alive, between requests");
        pulse.read(1);
        assert_eq!(pulse.waiting_since(), Some(100), "the next one has begun");
    }

    #[tokio::test(start_paused = true)]
    async fn stalled_connections_are_ended() {
        let watch = Watch::start(Duration::from_secs(30));
        let (silent, idle) = (Arc::new(Pulse::default()), Arc::new(Pulse::default()));
        idle.read(5);
        idle.begin();
        idle.end();
        let forever = || tokio::spawn(std::future::pending::<()>());
        let (silent_task, idle_task) = (forever(), forever());
        watch.add(&silent, silent_task.abort_handle());
        watch.add(&idle, idle_task.abort_handle());
        tokio::time::sleep(Duration::from_secs(100)).await;
        assert!(silent_task.is_finished() && !idle_task.is_finished());
        idle_task.abort();
    }
}
