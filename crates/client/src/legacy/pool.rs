//! [`SessionPool`]: all sessions with one legacy server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tidegate_protocol::{Error, Symbol};
use tokio_util::sync::CancellationToken;

use super::owner::{ClientIdentity, SessionOwner, SessionSpec};
use super::session::UpstreamSession;
use crate::backoff::{Backoff, HEALTHY_AFTER, PATIENCE, not_yet};
use crate::dial::Dialer;
use crate::settings::SessionSettings;
use crate::transport::Transport;

type Opening = Shared<BoxFuture<'static, Result<Arc<UpstreamSession>, Error>>>;

/// How often idle sessions are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// The sessions, by whose they are.
pub(crate) struct SessionPool {
    settings: SessionSettings,
    table: Mutex<Table>,
    /// Fires when the client is closed.
    over: CancellationToken,
}

#[derive(Default)]
struct Table {
    slots: HashMap<SessionOwner, Slot>,
    backoff: Backoff,
    last_failure: Option<Error>,
    sweeping: bool,
    closed: bool,
    bound: u64,
}

enum Slot {
    Opening(Opening),
    Open { session: Arc<UpstreamSession>, since: Instant },
}

impl SessionPool {
    pub(crate) fn new(settings: SessionSettings, over: CancellationToken) -> Arc<SessionPool> {
        Arc::new(SessionPool { settings, table: Mutex::default(), over })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The session for this spec; opened if there is none. However many ask at once, one handshake is made.
    pub(crate) async fn get(
        self: &Arc<Self>,
        dialer: &Arc<Dialer>,
        transport: &Transport,
        spec: &SessionSpec,
    ) -> Result<Arc<UpstreamSession>, Error> {
        let pause = {
            let mut table = self.table();
            let owner = table.owner_for(spec);
            table.remove_ended(&owner, transport);
            table.backoff.wait(Instant::now())
        };
        if pause > Duration::ZERO && self.find(spec).is_none() {
            self.wait_out(pause).await?;
        }
        let opening = match self.enter(dialer, transport, spec)? {
            Entered::Open(session) => return Ok(session),
            Entered::Opening(opening) => opening,
        };
        // What was never begun was not executed.
        opening.await.map_err(Error::unexecuted)
    }

    /// Waits for a short pause; a long one is an error.
    async fn wait_out(&self, pause: Duration) -> Result<(), Error> {
        if pause <= PATIENCE {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let last = self.table().last_failure.clone();
        Err(not_yet(pause, last.as_ref()))
    }

    /// The session that a call with this spec is made in, if it is open.
    pub(super) fn find(&self, spec: &SessionSpec) -> Option<Arc<UpstreamSession>> {
        let table = self.table();
        match table.slots.get(&table.owner_for(spec)) {
            Some(Slot::Open { session, .. }) if session.connection.is_open() => Some(session.clone()),
            _ => None,
        }
    }

    /// Whose the session is that a call with this spec is made in.
    pub(super) fn owner_for(&self, spec: &SessionSpec) -> SessionOwner {
        self.table().owner_for(spec)
    }

    /// Makes a user's session that of one client. Others of the same user get another.
    pub(super) fn bind(&self, session: &Arc<UpstreamSession>, client: &ClientIdentity) {
        let mut table = self.table();
        let (old, new) = (session.owner(), SessionOwner::Client(client.clone()));
        match table.slots.get(&old) {
            Some(Slot::Open { session: known, .. })
                if matches!(old, SessionOwner::User(_)) && Arc::ptr_eq(known, session) => {}
            _ => return,
        }
        if let Some(slot) = table.slots.remove(&old) {
            tracing::info!(
                server = %session.connection.router.name,
                "the server was told the roots of a client: the session is that client's from now on, and others get another"
            );
            session.connection.router.now_of(new.clone());
            table.slots.insert(new, slot);
            table.bound += 1;
        }
    }

    /// Counts how often a session has become one client's.
    pub(super) fn bound(&self) -> u64 {
        self.table().bound
    }

    /// Whether a server remembers something of somebody who may come back.
    pub(crate) fn keep_state(&self) -> bool {
        self.all().iter().any(|session| session.keeps_state(&self.settings))
    }

    /// Takes in a session that was opened while the server's era was looked for.
    pub(crate) fn adopt(self: &Arc<Self>, session: Arc<UpstreamSession>) {
        let mut table = self.table();
        if table.closed {
            return;
        }
        _ = session.sessions.set(Arc::downgrade(self));
        table.slots.insert(session.owner(), Slot::Open { session, since: Instant::now() });
        self.sweep_later(&mut table);
    }

    fn enter(
        self: &Arc<Self>,
        dialer: &Arc<Dialer>,
        transport: &Transport,
        spec: &SessionSpec,
    ) -> Result<Entered, Error> {
        let mut table = self.table();
        if table.closed {
            return Err(closed());
        }
        let owner = table.owner_for(spec);
        table.remove_ended(&owner, transport);
        match table.slots.get(&owner) {
            Some(Slot::Opening(opening)) => return Ok(Entered::Opening(opening.clone())),
            Some(Slot::Open { session, .. }) => {
                session.touch();
                return Ok(Entered::Open(session.clone()));
            }
            None => {}
        }
        self.make_room(&mut table)?;
        let (sessions, dialer, spec) = (self.clone(), dialer.clone(), spec.clone());
        let (owner, pool) = (spec.owner.clone(), self.clone());
        let (counts, transport) = (transport.is_pipe(), transport.clone());
        // A task of its own: a caller who gives up does not take the handshake away from the others.
        let task = tokio::spawn(async move {
            let opened = tokio::select! {
                opened = dialer.open_session(&transport, &spec) => opened,
                () = sessions.over.cancelled() => Err(closed()),
            };
            sessions.opened(&spec.owner, &opened, counts);
            opened
        });
        let name = owner.clone();
        let opening = async move {
            task.await.unwrap_or_else(|_| {
                let stopped = Err(Error::new(Symbol::Unavailable, "The handshake was stopped").unexecuted());
                pool.opened(&name, &stopped, counts);
                stopped
            })
        };
        let opening = opening.boxed().shared();
        table.slots.insert(owner, Slot::Opening(opening.clone()));
        Ok(Entered::Opening(opening))
    }

    /// A handshake has come to an end. `counts` says whether a failure makes the next caller wait.
    fn opened(
        self: &Arc<Self>,
        owner: &SessionOwner,
        opened: &Result<Arc<UpstreamSession>, Error>,
        counts: bool,
    ) {
        let mut table = self.table();
        match opened {
            Ok(session) if !table.closed => {
                table.backoff.started();
                _ = session.sessions.set(Arc::downgrade(self));
                table
                    .slots
                    .insert(owner.clone(), Slot::Open { session: session.clone(), since: Instant::now() });
                self.sweep_later(&mut table);
            }
            Ok(_) => _ = table.slots.remove(owner),
            Err(error) => {
                table.slots.remove(owner);
                if counts {
                    table.backoff.failed(Instant::now());
                }
                table.last_failure = Some(error.clone());
            }
        }
    }

    /// Ends the session that has been idle longest if there are too many.
    fn make_room(&self, table: &mut Table) -> Result<(), Error> {
        if table.slots.len() < self.settings.max {
            return Ok(());
        }
        let now = Instant::now();
        let idlest = table.slots.iter().filter_map(|(owner, slot)| match slot {
            // Those whose clients have left go first.
            Slot::Open { session, .. }
                if Arc::strong_count(session) == 1 && session.idle(now) > Duration::ZERO =>
            {
                Some(((!session.has_connected_clients(), session.idle(now)), owner.clone()))
            }
            _ => None,
        });
        match idlest.max_by_key(|(order, _)| *order) {
            Some((_, owner)) => {
                tracing::warn!(
                    "a session that somebody may have come back to was ended to make room: there may be {} (max_sessions)",
                    self.settings.max
                );
                table.slots.remove(&owner);
            }
            None => {
                let what = format!(
                    "All {} sessions with the server are in use. Try again in a moment",
                    self.settings.max
                );
                return Err(Error::new(Symbol::RateLimited, what).unexecuted());
            }
        }
        Ok(())
    }

    /// The session is over: the next call opens another.
    pub(crate) fn forget(&self, session: &Arc<UpstreamSession>) {
        let mut table = self.table();
        let owner = session.owner();
        if let Some(Slot::Open { session: known, .. }) = table.slots.get(&owner)
            && Arc::ptr_eq(known, session)
        {
            table.slots.remove(&owner);
        }
    }

    /// Every session that is open.
    pub(crate) fn all(&self) -> Vec<Arc<UpstreamSession>> {
        let table = self.table();
        let open = table.slots.values().filter_map(|slot| match slot {
            Slot::Open { session, .. } if session.connection.is_open() => Some(session.clone()),
            _ => None,
        });
        open.collect()
    }

    /// Whoever comes next need not wait, whatever has failed.
    pub(crate) fn forget_failures(&self) {
        self.table().backoff.reset();
    }

    /// Every session, and none is left; `None` while one is being opened.
    pub(crate) fn take(&self) -> Option<Vec<Arc<UpstreamSession>>> {
        let mut table = self.table();
        if table.slots.values().any(|slot| matches!(slot, Slot::Opening(_))) {
            return None;
        }
        let sessions = table.slots.drain().filter_map(|(_, slot)| match slot {
            Slot::Open { session, .. } => Some(session),
            Slot::Opening(_) => None,
        });
        Some(sessions.collect())
    }

    fn sweep_later(self: &Arc<Self>, table: &mut Table) {
        if std::mem::replace(&mut table.sweeping, true) {
            return;
        }
        let (sessions, over) = (Arc::downgrade(self), self.over.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = sweep(sessions) => {}
                () = over.cancelled() => {}
            }
        });
    }

    /// Ends every session.
    pub(crate) async fn close(&self) {
        let sessions = {
            let mut table = self.table();
            table.closed = true;
            std::mem::take(&mut table.slots)
        };
        let closing = sessions.into_values().map(|slot| async move {
            match slot {
                Slot::Open { session, .. } => session.connection.channel.close().await,
                Slot::Opening(opening) => {
                    if let Ok(session) = opening.await {
                        session.connection.channel.close().await;
                    }
                }
            }
        });
        futures_util::future::join_all(closing).await;
    }
}

impl Table {
    /// Whose the session is that a call with this spec is made in: a client that has told a server its roots has a session of
    /// its own.
    fn owner_for(&self, spec: &SessionSpec) -> SessionOwner {
        if self.bound > 0 && matches!(spec.owner, SessionOwner::User(_)) {
            let own = SessionOwner::Client(spec.client.clone());
            if matches!(self.slots.get(&own), Some(Slot::Open { session, .. }) if session.connection.is_open())
            {
                return own;
            }
        }
        spec.owner.clone()
    }

    /// Takes away a session that has ended, and notes whether it lived long enough to be of use.
    fn remove_ended(&mut self, owner: &SessionOwner, transport: &Transport) {
        let Some(Slot::Open { session, since }) = self.slots.get(owner) else { return };
        if session.connection.is_open() {
            return;
        }
        let (lived, why) = (since.elapsed(), session.connection.router.tickets.closed());
        if lived >= HEALTHY_AFTER {
            self.backoff.reset();
        } else if transport.is_pipe() {
            self.backoff.failed(Instant::now());
        }
        self.last_failure = why.or(self.last_failure.take());
        self.slots.remove(owner);
    }
}

/// Why there are no sessions any more.
fn closed() -> Error {
    Error::new(Symbol::Unavailable, "The client is closed").unexecuted()
}

enum Entered {
    Open(Arc<UpstreamSession>),
    Opening(Opening),
}

/// Ends sessions that nobody uses, until there are none.
async fn sweep(sessions: Weak<SessionPool>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(sessions) = sessions.upgrade() else { return };
        let now = Instant::now();
        let mut table = sessions.table();
        table.slots.retain(|_, slot| match slot {
            Slot::Open { session, .. } => {
                session.connection.is_open()
                    && (session.keeps_state(&sessions.settings)
                        || session.idle(now) < sessions.settings.idle
                        || Arc::strong_count(session) > 1)
            }
            Slot::Opening(_) => true,
        });
        if table.slots.is_empty() {
            table.sweeping = false;
            return;
        }
    }
}
