//! The legacy sessions of an endpoint: bounded, bound to their principal, ended when idle.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tidegate_protocol::Error;
use tidegate_service::Principal;
use tidegate_service::budget::{Budget, Spare};
use tokio::task::{AbortHandle, JoinHandle};
use tokio::time::Instant;

use super::events::{EventLog, Streams};
use super::places::{Place, Places};
use super::session_id::SessionIds;
use super::settings::Settings;
use crate::legacy::ClientSession;
use crate::session_store::{SessionKey, SessionStore};

/// One legacy client and its streams.
pub(super) struct Session {
    pub(super) client: Arc<ClientSession>,
    pub(super) streams: Streams,
    /// Whether it was opened in an earlier process.
    pub(super) is_revived: bool,
    /// What feeds the standalone stream, once there was one: a later one takes its place.
    feed: Mutex<Option<AbortHandle>>,
    /// Whether nobody read a stream when this was last looked at.
    unread: AtomicBool,
    /// Seconds since the store was made at which the session was last used.
    last_used: AtomicU64,
}

/// All sessions of an endpoint.
pub(super) struct Sessions {
    all: Mutex<ById>,
    pub(super) ids: SessionIds,
    /// What is remembered for longer than this process lives, of all endpoints of a site.
    pub(super) store: Arc<SessionStore>,
    /// Room for the sessions of all endpoints of a site.
    places: Arc<Places>,
    idle: Duration,
    kept_streams: usize,
    kept_bytes: usize,
    start: Instant,
    sweeping: AtomicBool,
}

impl Sessions {
    pub(super) fn new(settings: &Settings, places: Arc<Places>, store: Arc<SessionStore>) -> Arc<Sessions> {
        let sessions = Arc::new(Sessions {
            all: Mutex::default(),
            ids: SessionIds::new(settings),
            store,
            places: places.clone(),
            idle: settings.session_idle,
            kept_streams: settings.kept_streams,
            kept_bytes: settings.kept_bytes,
            start: Instant::now(),
            sweeping: AtomicBool::new(false),
        });
        places.add_holder(&sessions);
        sessions
    }

    fn all(&self) -> MutexGuard<'_, ById> {
        self.all.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    pub(super) fn len(&self) -> usize {
        self.all().len()
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_secs()
    }

    /// Opens a session and returns its id.
    pub(super) fn open(self: &Arc<Self>, client: ClientSession) -> Result<String, Error> {
        let place = self.places.take(&client.principal)?;
        let (id, key) = self.ids.issue(&client.hello, &client.principal);
        let session = self.session(client, key, false);
        self.all().insert(id.as_str().into(), Open { session, _place: place });
        Ok(id)
    }

    /// Opens a session of an earlier process, unless it has been opened meanwhile. `None` if it has ended.
    pub(super) fn open_anew(
        self: &Arc<Self>,
        id: &str,
        key: SessionKey,
        client: ClientSession,
    ) -> Result<Option<Arc<Session>>, Error> {
        if let Some(open) = self.all().get(id) {
            return Ok(Some(open.session.clone()));
        }
        let place = self.places.take(&client.principal)?;
        let session = self.session(client, Some(key), true);
        let mut all = self.all();
        if let Some(open) = all.get(id) {
            return Ok(Some(open.session.clone()));
        }
        // Whoever ends a session says so before it is no longer in the map.
        if self.store.is_ended(&key) {
            return Ok(None);
        }
        all.insert(id.into(), Open { session: session.clone(), _place: place });
        tracing::debug!("opened a session of an earlier process anew");
        Ok(Some(session))
    }

    fn session(
        self: &Arc<Self>,
        client: ClientSession,
        key: Option<SessionKey>,
        is_revived: bool,
    ) -> Arc<Session> {
        self.sweep_regularly();
        let share = Budget::of_process().share_of(&client.principal);
        let record = key.map(|key| self.store.record(key, &client.principal));
        Arc::new(Session {
            client: Arc::new(client.remembered(record).opened()),
            streams: Streams::new(self.kept_streams, self.kept_bytes, share),
            is_revived,
            feed: Mutex::default(),
            unread: AtomicBool::new(false),
            last_used: AtomicU64::new(self.now()),
        })
    }

    /// The session with this id, if it is this principal's. Others are told the same as for no session at all.
    pub(super) fn find(&self, id: &str, principal: &Principal) -> Option<Arc<Session>> {
        let session = self.all().get(id)?.session.clone();
        if session.client.principal != *principal {
            return None;
        }
        session.last_used.store(self.now(), Ordering::Relaxed);
        Some(session)
    }

    /// Ends a session: everything that runs for it stops. One of an earlier process is ended without being opened. That it has
    /// ended is written down before this returns.
    pub(super) async fn close(&self, id: &str, principal: &Principal) -> bool {
        if !self.close_open(id, principal) {
            let Some((_, key)) = self.ids.open(id, principal) else { return false };
            if self.store.load(key).await.is_none() {
                return false;
            }
            self.store.end(key);
            // It may have been opened meanwhile.
            self.close_open(id, principal);
        }
        self.store.flush().await;
        true
    }

    fn close_open(&self, id: &str, principal: &Principal) -> bool {
        let mut all = self.all();
        let Some(open) = all.get(id).filter(|open| open.session.client.principal == *principal) else {
            return false;
        };
        open.session.end_for_good();
        all.remove(id);
        true
    }

    /// Ends all sessions of a principal that this process has, for good.
    pub(super) fn end_of(&self, principal: &Principal) {
        self.all().retain(|_, Open { session, .. }| {
            let is_other = session.client.principal != *principal;
            if !is_other {
                session.end_for_good();
            }
            is_other
        });
    }

    /// Ends what runs for all sessions. Those with sealed ids can be opened anew where the endpoint is served again.
    pub(super) fn end_all(&self) {
        for (_, open) in self.all().drain() {
            open.session.end();
        }
    }

    /// Ends the sessions that nobody uses.
    pub(super) fn sweep(&self) {
        let now = self.now();
        let idle = self.idle.as_secs().max(1);
        self.all().retain(|_, Open { session, .. }| {
            if session.client.in_flight() > 0 || session.streams.has_reader() {
                session.last_used.store(now, Ordering::Relaxed);
            }
            let keep = now.saturating_sub(session.last_used.load(Ordering::Relaxed)) < idle;
            if !keep {
                session.end_for_good();
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
                sessions.sweep();
                sessions.all().values().for_each(|open| open.session.look());
            }
        });
    }
}

impl Spare for Sessions {
    fn let_go(&self) {
        for open in self.all().values() {
            open.session.streams.let_go();
        }
    }

    fn let_go_of(&self, principal: &Principal) {
        for open in self.all().values().filter(|open| open.session.client.principal == *principal) {
            open.session.streams.let_go();
        }
    }
}

impl Drop for Sessions {
    fn drop(&mut self) {
        // What runs for a session must not outlive the endpoint; the session itself may.
        self.end_all();
    }
}

impl Session {
    /// A client that left its stream and does not come back between two looks is not listened for any longer.
    fn look(&self) {
        let unread = !self.streams.has_reader();
        if self.unread.swap(unread, Ordering::Relaxed) && unread {
            self.client.stop_listening();
        }
    }

    /// Everything that runs for it stops.
    fn end(&self) {
        self.client.end();
        self.streams.end();
    }

    /// The same, and nobody can open it anew.
    fn end_for_good(&self) {
        if let Some(record) = self.client.record() {
            record.store.end(record.key);
        }
        self.end();
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

/// A session and its place, which it gives back when it is in the map no longer.
struct Open {
    session: Arc<Session>,
    _place: Place,
}

type ById = HashMap<Box<str>, Open, BuildHasherDefault<IdHasher>>;

/// Hashes ids by 16 of their characters, which are random in each that was ever given out: whoever asks for an id has no say in
/// which ones are in the map.
#[derive(Default)]
struct IdHasher(u64);

impl Hasher for IdHasher {
    fn write(&mut self, id: &[u8]) {
        if let Some((first, rest)) = id.get(8..24).and_then(|random| random.split_first_chunk())
            && let Ok(second) = rest.try_into()
        {
            let both = u64::from_le_bytes(*first) ^ u64::from_le_bytes(second).rotate_left(29);
            let mixed = both.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            self.0 = mixed ^ mixed >> 32;
        }
    }

    /// The end of a text, which says nothing.
    fn write_u8(&mut self, _: u8) {}

    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::super::session_id::random_id;
    use super::IdHasher;

    #[test]
    fn ids_are_spread() {
        let hasher = BuildHasherDefault::<IdHasher>::default();
        let hashes: Vec<u64> = (0..4096).map(|_| hasher.hash_one(random_id())).collect();
        // A map looks at the lowest bits and at the topmost seven.
        for part in [|hash: &u64| hash & 0xfff, |hash: &u64| hash >> 57] {
            let spread = hashes.iter().map(part).collect::<HashSet<u64>>().len();
            assert!(spread > 2000 || spread == 128, "{spread}");
        }
        assert_eq!(hasher.hash_one("short"), 0);
    }
}
