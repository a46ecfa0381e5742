//! The legacy sessions of an endpoint: bounded, bound to their principal, ended when idle.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tidegate_protocol::{Error, Symbol};
use tidegate_service::Principal;
use tidegate_service::budget::Spare;
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::events::{EventLog, Streams};
use crate::legacy::Peer;

/// One legacy client and its streams.
pub(super) struct Session {
    pub(super) peer: Arc<Peer>,
    pub(super) streams: Streams,
    /// What feeds the standalone stream, once there was one: a later one takes its place.
    feed: Mutex<Option<AbortHandle>>,
    /// Whether nobody read a stream when this was last looked at.
    unread: AtomicBool,
    /// Seconds since the store was made at which the session was last used.
    last_used: AtomicU64,
}

/// All sessions of an endpoint.
pub(super) struct Sessions {
    all: Mutex<HashMap<Box<str>, Arc<Session>>>,
    max: usize,
    idle: Duration,
    start: Instant,
    sweeping: AtomicBool,
}

impl Sessions {
    pub(super) fn new(max: usize, idle: Duration) -> Sessions {
        Sessions {
            all: Mutex::new(HashMap::new()),
            max,
            idle,
            start: Instant::now(),
            sweeping: AtomicBool::new(false),
        }
    }

    fn all(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<Session>>> {
        self.all.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_secs()
    }

    /// Opens a session and returns its id.
    pub(super) fn open(
        self: &Arc<Self>,
        peer: Peer,
        kept_streams: usize,
        kept_bytes: usize,
    ) -> Result<String, Error> {
        self.sweep_regularly();
        let id = new_id();
        let session = Session {
            peer: Arc::new(peer),
            streams: Streams::new(kept_streams, kept_bytes),
            feed: Mutex::default(),
            unread: AtomicBool::new(false),
            last_used: AtomicU64::new(self.now()),
        };
        let mut all = self.all();
        if all.len() >= self.max {
            self.sweep(&mut all);
        }
        if all.len() >= self.max {
            let what = format!("Too many sessions: the limit of {} is reached. Try again later", self.max);
            return Err(Error::new(Symbol::Unavailable, what));
        }
        all.insert(id.as_str().into(), Arc::new(session));
        Ok(id)
    }

    /// The session with this id, if it is this principal's. Others are told the same as for no session at all.
    pub(super) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.all().get(id).cloned()?;
        if session.peer.principal != *principal {
            return None;
        }
        session.last_used.store(self.now(), Ordering::Relaxed);
        Some(session)
    }

    /// Ends a session: everything that runs for it stops.
    pub(super) fn close(&self, id: &str, principal: &Principal) -> bool {
        let mut all = self.all();
        if all.get(id).is_none_or(|s| s.peer.principal != *principal) {
            return false;
        }
        if let Some(session) = all.remove(id) {
            session.end();
        }
        true
    }

    /// Ends the sessions that nobody uses.
    fn sweep(&self, all: &mut HashMap<Box<str>, Arc<Session>>) {
        let now = self.now();
        let idle = self.idle.as_secs().max(1);
        all.retain(|_, session| {
            if session.peer.in_flight() > 0 || session.streams.has_reader() {
                session.last_used.store(now, Ordering::Relaxed);
            }
            let keep = now.saturating_sub(session.last_used.load(Ordering::Relaxed)) < idle;
            if !keep {
                session.end();
            }
            keep
        });
    }

    /// Starts the task that sweeps, once, from inside the runtime that serves.
    fn sweep_regularly(self: &Arc<Self>) {
        if self.sweeping.swap(true, Ordering::Relaxed) {
            return;
        }
        let weak = Arc::downgrade(self);
        let period = (self.idle / 4).clamp(Duration::from_millis(250), Duration::from_secs(60));
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(sessions) = weak.upgrade() else { break };
                let mut all = sessions.all();
                sessions.sweep(&mut all);
                all.values().for_each(|session| session.look());
            }
        });
    }
}

impl Spare for Sessions {
    fn let_go(&self) {
        for session in self.all().values() {
            session.streams.let_go();
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // What runs for a session must not outlive the endpoint.
        for session in self.all().values() {
            session.end();
        }
    }
}

impl Session {
    /// A client that left its stream and does not come back between two looks is not listened for any longer.
    fn look(&self) {
        let unread = !self.streams.has_reader();
        if self.unread.swap(unread, Ordering::Relaxed) && unread {
            self.peer.hear_no_more();
        }
    }

    fn end(&self) {
        self.peer.end();
        self.streams.end();
    }

    /// Feeds the standalone stream in place of what fed it before.
    pub(super) fn feed(&self, start: impl FnOnce() -> JoinHandle<()>) -> JoinHandle<()> {
        let mut current = self.feed.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if let Some(before) = current.take() {
            before.abort();
        }
        let feed = start();
        *current = Some(feed.abort_handle());
        feed
    }

    /// A log for the messages of one request, kept for resumption while it runs.
    pub(super) fn open_stream(&self) -> Arc<EventLog> {
        self.streams.open()
    }
}

/// 128 random bits, because whoever knows the id has the session.
pub(super) fn new_id() -> String {
    format!("{:032x}", u128::from_le_bytes(tidegate_service::random()))
}
