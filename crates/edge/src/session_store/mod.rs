//! What is remembered of legacy sessions for longer than a process lives: log level and subscriptions of those that go on,
//! and which ones have ended. In a directory, or nowhere, and then it is forgotten with the process.
//!
//! ```text
//! state/<expiry>-<digest>   level and subscriptions of one session, replaced as a whole
//! ended/<hour>              sessions that have ended, one in each line, in the hour in which their ids expire
//! ```
//!
//! Files are named by a digest of the id, never by the id. Several processes may share the directory: a session's file is
//! written by whoever serves it, lines are only appended, and a file of ended sessions goes when all of them would have expired.

mod ended;
mod files;

use std::collections::{BTreeSet, HashMap};
use std::hash::{BuildHasher, RandomState};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use bytestring::ByteString;
use tidegate_protocol::{Level, seal};
use tidegate_service::Principal;

use self::ended::EndedSessions;
use self::files::Files;

/// How long changes are collected before they are written: what a crash may lose.
const WRITE_AFTER: Duration = Duration::from_millis(250);

/// Names a session in the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct SessionKey {
    digest: [u8; 16],
    /// When its id expires, in milliseconds since 1970.
    expires_ms: u64,
}

impl SessionKey {
    pub(crate) fn new(id: &str, expires_ms: u64) -> SessionKey {
        let mut digest = [0; 16];
        digest.copy_from_slice(&seal::digest([id])[..16]);
        SessionKey { digest, expires_ms }
    }

    /// The hour since 1970 in which the id expires.
    fn hour(&self) -> u64 {
        self.expires_ms / 3_600_000
    }
}

/// What a session goes on with in another process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SessionMemory {
    pub(crate) level: Level,
    pub(crate) subscriptions: BTreeSet<ByteString>,
}

impl Default for SessionMemory {
    fn default() -> SessionMemory {
        // A client that never sets a level gets what is of interest, not everything.
        SessionMemory { level: Level::Info, subscriptions: BTreeSet::new() }
    }
}

/// The sessions of all endpoints of a site: ids differ, whichever they are of.
pub(crate) struct SessionStore {
    ended: Mutex<EndedSessions>,
    unwritten: Mutex<Unwritten>,
    /// Held while files are read and written, on threads where that may take its time.
    files: Option<Mutex<Files>>,
    scheduled: AtomicBool,
    /// Tells owners apart without keeping who they are.
    owners: RandomState,
}

#[derive(Default)]
struct Unwritten {
    changed: HashMap<SessionKey, (SessionMemory, Option<Owner>)>,
    ended: Vec<SessionKey>,
    /// Hours whose sessions are all taken to have ended.
    closed: Vec<u64>,
}

/// A poisoned lock is as good as any: nothing here is left half done.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl SessionStore {
    /// A store in `dir`, which is made when it is needed.
    pub(crate) fn new(dir: Option<PathBuf>) -> Arc<SessionStore> {
        Arc::new(SessionStore {
            ended: Mutex::default(),
            unwritten: Mutex::default(),
            files: dir.map(|dir| Mutex::new(Files::new(dir))),
            scheduled: AtomicBool::new(false),
            owners: RandomState::new(),
        })
    }

    /// Whether this process knows that a session has ended.
    pub(crate) fn is_ended(&self, key: &SessionKey) -> bool {
        locked(&self.ended).contains(key)
    }

    /// What a session goes on with; `None` if it has ended, or if nobody can tell.
    pub(crate) async fn load(self: &Arc<Self>, key: SessionKey) -> Option<SessionMemory> {
        if self.is_ended(&key) {
            return None;
        }
        if self.files.is_none() {
            return Some(SessionMemory::default());
        }
        let store = self.clone();
        tokio::task::spawn_blocking(move || store.read(&key)).await.ok().flatten()
    }

    fn read(&self, key: &SessionKey) -> Option<SessionMemory> {
        let Some(files) = &self.files else { return Some(SessionMemory::default()) };
        let mut files = locked(files);
        files.prepare(&self.ended);
        if !files.read_ended(key.hour(), &self.ended) || self.is_ended(key) {
            return None;
        }
        Some(files.read_memory(key))
    }

    /// A session of `principal` in the store.
    pub(crate) fn record(self: &Arc<Self>, key: SessionKey, principal: &Principal) -> SessionRecord {
        let owner = principal.subject.is_some().then(|| Owner(self.owners.hash_one(principal)));
        SessionRecord { store: self.clone(), key, owner }
    }

    /// Remembers a session's level and subscriptions. Never waits.
    fn save(self: &Arc<Self>, key: SessionKey, memory: SessionMemory, owner: Option<Owner>) {
        if self.files.is_none() || self.is_ended(&key) {
            return;
        }
        locked(&self.unwritten).changed.insert(key, (memory, owner));
        self.write_soon();
    }

    /// From here on the session has ended. Never waits; [`SessionStore::flush`] does.
    pub(crate) fn end(self: &Arc<Self>, key: SessionKey) {
        let closed = {
            let mut ended = locked(&self.ended);
            if !ended.insert(&key) {
                return;
            }
            ended.make_room()
        };
        if !closed.is_empty() {
            tracing::warn!(
                "So many legacy sessions have ended that not each can be remembered: sessions that were opened in the same \
                 hours as the oldest of them do not outlive a restart."
            );
        }
        if self.files.is_none() {
            return;
        }
        {
            let mut unwritten = locked(&self.unwritten);
            unwritten.changed.remove(&key);
            unwritten.ended.push(key);
            unwritten.closed.extend(closed);
        }
        self.write_soon();
    }

    /// Waits until everything so far is written.
    pub(crate) async fn flush(self: &Arc<Self>) {
        if self.files.is_some() {
            let store = self.clone();
            _ = tokio::task::spawn_blocking(move || store.write()).await;
        }
    }

    fn write_soon(self: &Arc<Self>) {
        if self.scheduled.swap(true, Ordering::Relaxed) {
            return;
        }
        let weak = Arc::downgrade(self);
        tokio::spawn(async move {
            tokio::time::sleep(WRITE_AFTER).await;
            let Some(store) = weak.upgrade() else { return };
            // First, so that what changes while it is written is written after that.
            store.scheduled.store(false, Ordering::Relaxed);
            store.flush().await;
        });
    }

    fn write(&self) {
        let Some(files) = &self.files else { return };
        let mut files = locked(files);
        files.prepare(&self.ended);
        let Unwritten { changed, ended, closed } = std::mem::take(&mut *locked(&self.unwritten));
        // Ended first: that is what must not be lost.
        files.close_hours(&closed);
        let unwritten = files.append_ended(ended);
        for (key, (memory, owner)) in &changed {
            files.write_memory(key, memory, *owner);
        }
        // Tried again with whatever is written next.
        let mut later = locked(&self.unwritten);
        let room = ended::MAX_ENDED.saturating_sub(later.ended.len());
        later.ended.extend(unwritten.into_iter().take(room));
    }
}

impl Drop for SessionStore {
    fn drop(&mut self) {
        let unwritten = locked(&self.unwritten);
        let nothing = unwritten.changed.is_empty() && unwritten.ended.is_empty();
        drop(unwritten);
        if !nothing {
            self.write();
        }
    }
}

/// One session in its store.
pub(crate) struct SessionRecord {
    pub(crate) store: Arc<SessionStore>,
    pub(crate) key: SessionKey,
    owner: Option<Owner>,
}

/// Whose session it is, if somebody was authenticated. Good for as long as the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Owner(u64);

impl SessionRecord {
    pub(crate) fn save(&self, memory: SessionMemory) {
        self.store.save(self.key, memory, self.owner);
    }
}
