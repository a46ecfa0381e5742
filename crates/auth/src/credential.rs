//! [`Credential`]: one that was verified, for as long as anything was let in with it.

use std::fmt;
use std::sync::atomic::{AtomicU8, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;
use tokio::sync::futures::OwnedNotified;

use crate::issuers::Issuer;
use crate::keys::KeyUse;
use crate::verified::Verified;

/// A verified credential. The cache, running calls and open streams share it, so that all of them hear when it ends.
pub(crate) struct Credential {
    pub(crate) verified: Verified,
    pub(crate) source: Source,
    /// Whether it has the scopes that everything needs.
    pub(crate) has_scopes: bool,
    /// What was good when it was verified; see [`Generations`](crate::authenticator::Generations).
    pub(crate) generation: u64,
    end: AtomicU8,
    /// Only made when somebody waits: most credentials never have a stream.
    notify: OnceLock<Arc<Notify>>,
    /// The connections whose requests it lets in, each of which waits with what it is doing.
    connections: Mutex<Vec<Weak<AtomicWaker>>>,
}

/// Who said that it is good.
#[derive(Clone)]
pub(crate) enum Source {
    Key(Arc<KeyUse>),
    Token(Arc<Issuer>),
}

/// How much of what a credential has opened ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum End {
    /// Nothing.
    No = 0,
    /// Its time is over: streams that belong to no request end, calls under way finish.
    Expired = 1,
    /// Somebody ended it: everything ends.
    Revoked = 2,
}

impl Credential {
    pub(crate) fn new(verified: Verified, source: Source, has_scopes: bool, generation: u64) -> Credential {
        let (end, notify) = (AtomicU8::new(End::No as u8), OnceLock::new());
        Credential { verified, source, has_scopes, generation, end, notify, connections: Mutex::default() }
    }

    /// Whether it may be used without asking anybody.
    pub(crate) fn is_fresh(&self, now_ms: u64) -> bool {
        let is_before = |end: Option<u64>| end.is_none_or(|end| now_ms < end);
        is_before(self.verified.expires_ms) && is_before(self.verified.recheck_ms) && self.end() == End::No
    }

    pub(crate) fn end(&self) -> End {
        match self.end.load(Ordering::SeqCst) {
            0 => End::No,
            1 => End::Expired,
            _ => End::Revoked,
        }
    }

    /// Ends what was opened with it.
    pub(crate) fn finish(&self, how: End) {
        self.end.fetch_max(how as u8, Ordering::SeqCst);
        // Either this sees who waits, or they see the above.
        fence(Ordering::SeqCst);
        if let Some(notify) = self.notify.get() {
            notify.notify_waiters();
        }
        let connections = lock(&self.connections).clone();
        connections.iter().filter_map(Weak::upgrade).for_each(|connection| connection.wake());
    }

    /// Wakes whoever has registered with `connection` when it ends, for as long as that lives. A request that waits registers, which costs
    /// less than to be told by [`finished`](Credential::finished), and looks at [`end`](Credential::end) afterwards.
    pub(crate) fn watch(&self, connection: &Arc<AtomicWaker>) {
        let mut connections = lock(&self.connections);
        if connections.len() == connections.capacity() {
            connections.retain(|one| one.strong_count() > 0);
        }
        connections.push(Arc::downgrade(connection));
    }

    /// Ready when [`finish`](Credential::finish) is called from now on. Look at [`end`](Credential::end) after this was made.
    pub(crate) fn finished(&self) -> OwnedNotified {
        let notified = self.notify.get_or_init(Arc::default).clone().notified_owned();
        fence(Ordering::SeqCst);
        notified
    }
}

impl fmt::Debug for Credential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let principal = &self.verified.identity.principal;
        f.debug_struct("Credential")
            .field("principal", principal)
            .field("end", &self.end())
            .finish_non_exhaustive()
    }
}

const SHARDS: usize = 16;

/// Every credential that anything is open with, also those that the cache had no room for. Written when one is verified, not when
/// it is used.
#[derive(Default)]
pub(crate) struct Credentials([Mutex<Vec<Weak<Credential>>>; SHARDS]);

impl Credentials {
    pub(crate) fn add(&self, credential: &Arc<Credential>) {
        let mut shard = lock(&self.0[(Arc::as_ptr(credential) as usize >> 6) % SHARDS]);
        // Those that are gone make room before more is made.
        if shard.len() == shard.capacity() {
            shard.retain(|one| one.strong_count() > 0);
            let more = shard.len() + 16;
            shard.reserve(more);
        }
        shard.push(Arc::downgrade(credential));
    }

    /// Ends those that something is true of.
    pub(crate) fn finish(&self, how: End, is_over: impl Fn(&Credential) -> bool) {
        for shard in &self.0 {
            // Nobody is woken while the lock is held.
            let ended: Vec<_> =
                lock(shard).iter().filter_map(Weak::upgrade).filter(|one| is_over(one)).collect();
            ended.iter().for_each(|one| one.finish(how));
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
