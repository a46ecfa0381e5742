//! [`Lanes`]: all sessions with one legacy server.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tidegate_protocol::{Error, Symbol};
use tokio_util::sync::CancellationToken;

use super::lane::Lane;
use super::whose::{ClientIdentity, LaneKey, Terms};
use crate::backoff::{Backoff, HEALTHY_AFTER, PATIENCE, not_yet};
use crate::dial::{Dialer, Reach};
use crate::options::LaneOptions;

type Opening = Shared<BoxFuture<'static, Result<Arc<Lane>, Error>>>;

/// How often idle lanes are looked for.
const SWEEP: Duration = Duration::from_secs(5);

/// The sessions, by whose they are.
pub(crate) struct Lanes {
    options: LaneOptions,
    table: Mutex<Table>,
    /// Fires when the client is closed.
    over: CancellationToken,
}

#[derive(Default)]
struct Table {
    slots: HashMap<LaneKey, Slot>,
    backoff: Backoff,
    last_failure: Option<Error>,
    sweeping: bool,
    closed: bool,
    bound: u64,
}

enum Slot {
    Opening(Opening),
    Open { lane: Arc<Lane>, since: Instant },
}

impl Lanes {
    pub(crate) fn new(options: LaneOptions, over: CancellationToken) -> Arc<Lanes> {
        Arc::new(Lanes { options, table: Mutex::default(), over })
    }

    fn table(&self) -> MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The lane with these terms; opened if there is none. However many ask at once, one handshake is made.
    pub(crate) async fn get(
        self: &Arc<Self>,
        dialer: &Arc<Dialer>,
        reach: Reach,
        terms: &Terms,
    ) -> Result<Arc<Lane>, Error> {
        let pause = {
            let mut table = self.table();
            let key = table.key_for(terms);
            table.bury(&key, reach);
            table.backoff.wait(Instant::now())
        };
        if pause > Duration::ZERO && self.find(terms).is_none() {
            self.bear(pause).await?;
        }
        let opening = match self.enter(dialer, reach, terms)? {
            Entered::Open(lane) => return Ok(lane),
            Entered::Opening(opening) => opening,
        };
        // What was never begun was not executed.
        opening.await.map_err(Error::unexecuted)
    }

    /// Waits for a short pause; a long one is an error.
    async fn bear(&self, pause: Duration) -> Result<(), Error> {
        if pause <= PATIENCE {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let last = self.table().last_failure.clone();
        Err(not_yet(pause, last.as_ref()))
    }

    /// The lane that a call on these terms is made in, if it is open.
    pub(super) fn find(&self, terms: &Terms) -> Option<Arc<Lane>> {
        let table = self.table();
        match table.slots.get(&table.key_for(terms)) {
            Some(Slot::Open { lane, .. }) if lane.peer.is_open() => Some(lane.clone()),
            _ => None,
        }
    }

    /// Whose the lane is that a call on these terms is made in.
    pub(super) fn key_for(&self, terms: &Terms) -> LaneKey {
        self.table().key_for(terms)
    }

    /// Makes a user's session that of one client. Others of the same user get another.
    pub(super) fn bind(&self, lane: &Arc<Lane>, client: &ClientIdentity) {
        let mut table = self.table();
        let (old, new) = (lane.key(), LaneKey::Client(client.clone()));
        match table.slots.get(&old) {
            Some(Slot::Open { lane: known, .. })
                if matches!(old, LaneKey::User(_)) && Arc::ptr_eq(known, lane) => {}
            _ => return,
        }
        if let Some(slot) = table.slots.remove(&old) {
            tracing::info!(
                server = %lane.peer.desk.name,
                "the server was told the roots of a client: the session is that client's from now on, and others get another"
            );
            lane.peer.desk.now_of(new.clone());
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
        self.all().iter().any(|lane| lane.keeps_state(&self.options))
    }

    /// Takes in a lane that was opened while the server's era was looked for.
    pub(crate) fn adopt(self: &Arc<Self>, lane: Arc<Lane>) {
        let mut table = self.table();
        if table.closed {
            return;
        }
        _ = lane.lanes.set(Arc::downgrade(self));
        table.slots.insert(lane.key(), Slot::Open { lane, since: Instant::now() });
        self.sweep_later(&mut table);
    }

    fn enter(self: &Arc<Self>, dialer: &Arc<Dialer>, reach: Reach, terms: &Terms) -> Result<Entered, Error> {
        let mut table = self.table();
        if table.closed {
            return Err(closed());
        }
        let key = table.key_for(terms);
        table.bury(&key, reach);
        match table.slots.get(&key) {
            Some(Slot::Opening(opening)) => return Ok(Entered::Opening(opening.clone())),
            Some(Slot::Open { lane, .. }) => {
                lane.touch();
                return Ok(Entered::Open(lane.clone()));
            }
            None => {}
        }
        self.make_room(&mut table)?;
        let (lanes, dialer, terms) = (self.clone(), dialer.clone(), terms.clone());
        let (key, owner) = (terms.key.clone(), self.clone());
        let counts = reach == Reach::Stdio;
        // A task of its own: a caller who gives up does not take the handshake away from the others.
        let task = tokio::spawn(async move {
            let opened = tokio::select! {
                opened = dialer.lane(reach, &terms) => opened,
                () = lanes.over.cancelled() => Err(closed()),
            };
            lanes.opened(&terms.key, &opened, counts);
            opened
        });
        let name = key.clone();
        let opening = async move {
            task.await.unwrap_or_else(|_| {
                let stopped = Err(Error::new(Symbol::Unavailable, "The handshake was stopped").unexecuted());
                owner.opened(&name, &stopped, counts);
                stopped
            })
        };
        let opening = opening.boxed().shared();
        table.slots.insert(key, Slot::Opening(opening.clone()));
        Ok(Entered::Opening(opening))
    }

    /// A handshake has come to an end. `counts` says whether a failure makes the next caller wait.
    fn opened(self: &Arc<Self>, key: &LaneKey, opened: &Result<Arc<Lane>, Error>, counts: bool) {
        let mut table = self.table();
        match opened {
            Ok(lane) if !table.closed => {
                table.backoff.started();
                _ = lane.lanes.set(Arc::downgrade(self));
                table.slots.insert(key.clone(), Slot::Open { lane: lane.clone(), since: Instant::now() });
                self.sweep_later(&mut table);
            }
            Ok(_) => _ = table.slots.remove(key),
            Err(error) => {
                table.slots.remove(key);
                if counts {
                    table.backoff.failed(Instant::now());
                }
                table.last_failure = Some(error.clone());
            }
        }
    }

    /// Ends the lane that has been idle longest if there are too many.
    fn make_room(&self, table: &mut Table) -> Result<(), Error> {
        if table.slots.len() < self.options.max {
            return Ok(());
        }
        let now = Instant::now();
        let idlest = table.slots.iter().filter_map(|(key, slot)| match slot {
            // Those whose clients have left go first.
            Slot::Open { lane, .. } if Arc::strong_count(lane) == 1 && lane.idle(now) > Duration::ZERO => {
                Some(((!lane.has_connected_clients(), lane.idle(now)), key.clone()))
            }
            _ => None,
        });
        match idlest.max_by_key(|(order, _)| *order) {
            Some((_, key)) => {
                tracing::warn!(
                    "a session that somebody may have come back to was ended to make room: there may be {} (max_sessions)",
                    self.options.max
                );
                table.slots.remove(&key);
            }
            None => {
                let what = format!(
                    "All {} sessions with the server are in use. Try again in a moment",
                    self.options.max
                );
                return Err(Error::new(Symbol::RateLimited, what).unexecuted());
            }
        }
        Ok(())
    }

    /// The session is over: the next call opens another.
    pub(crate) fn forget(&self, lane: &Arc<Lane>) {
        let mut table = self.table();
        let key = lane.key();
        if let Some(Slot::Open { lane: known, .. }) = table.slots.get(&key)
            && Arc::ptr_eq(known, lane)
        {
            table.slots.remove(&key);
        }
    }

    /// Every lane that is open.
    pub(crate) fn all(&self) -> Vec<Arc<Lane>> {
        let table = self.table();
        let open = table.slots.values().filter_map(|slot| match slot {
            Slot::Open { lane, .. } if lane.peer.is_open() => Some(lane.clone()),
            _ => None,
        });
        open.collect()
    }

    /// Whoever comes next need not wait, whatever has failed.
    pub(crate) fn forget_failures(&self) {
        self.table().backoff.reset();
    }

    /// Every lane, and none is left; `None` while one is being opened.
    pub(crate) fn take(&self) -> Option<Vec<Arc<Lane>>> {
        let mut table = self.table();
        if table.slots.values().any(|slot| matches!(slot, Slot::Opening(_))) {
            return None;
        }
        let lanes = table.slots.drain().filter_map(|(_, slot)| match slot {
            Slot::Open { lane, .. } => Some(lane),
            Slot::Opening(_) => None,
        });
        Some(lanes.collect())
    }

    fn sweep_later(self: &Arc<Self>, table: &mut Table) {
        if std::mem::replace(&mut table.sweeping, true) {
            return;
        }
        let (lanes, over) = (Arc::downgrade(self), self.over.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = sweep(lanes) => {}
                () = over.cancelled() => {}
            }
        });
    }

    /// Ends every session.
    pub(crate) async fn close(&self) {
        let lanes = {
            let mut table = self.table();
            table.closed = true;
            std::mem::take(&mut table.slots)
        };
        let closing = lanes.into_values().map(|slot| async move {
            match slot {
                Slot::Open { lane, .. } => lane.peer.line.close().await,
                Slot::Opening(opening) => {
                    if let Ok(lane) = opening.await {
                        lane.peer.line.close().await;
                    }
                }
            }
        });
        futures_util::future::join_all(closing).await;
    }
}

impl Table {
    /// Whose the lane is that a call on these terms is made in: a client that has told a server its roots has a session of
    /// its own.
    fn key_for(&self, terms: &Terms) -> LaneKey {
        if self.bound > 0 && matches!(terms.key, LaneKey::User(_)) {
            let own = LaneKey::Client(terms.client.clone());
            if matches!(self.slots.get(&own), Some(Slot::Open { lane, .. }) if lane.peer.is_open()) {
                return own;
            }
        }
        terms.key.clone()
    }

    /// Takes away a lane that has ended, and notes whether it lived long enough to be of use.
    fn bury(&mut self, key: &LaneKey, reach: Reach) {
        let Some(Slot::Open { lane, since }) = self.slots.get(key) else { return };
        if lane.peer.is_open() {
            return;
        }
        let (lived, why) = (since.elapsed(), lane.peer.desk.tickets.closed());
        if lived >= HEALTHY_AFTER {
            self.backoff.reset();
        } else if reach == Reach::Stdio {
            self.backoff.failed(Instant::now());
        }
        self.last_failure = why.or(self.last_failure.take());
        self.slots.remove(key);
    }
}

/// Why there are no sessions any more.
fn closed() -> Error {
    Error::new(Symbol::Unavailable, "The client is closed").unexecuted()
}

enum Entered {
    Open(Arc<Lane>),
    Opening(Opening),
}

/// Ends lanes that nobody uses, until there are none.
async fn sweep(lanes: Weak<Lanes>) {
    loop {
        tokio::time::sleep(SWEEP).await;
        let Some(lanes) = lanes.upgrade() else { return };
        let now = Instant::now();
        let mut table = lanes.table();
        table.slots.retain(|_, slot| match slot {
            Slot::Open { lane, .. } => {
                lane.peer.is_open()
                    && (lane.keeps_state(&lanes.options)
                        || lane.idle(now) < lanes.options.idle
                        || Arc::strong_count(lane) > 1)
            }
            Slot::Opening(_) => true,
        });
        if table.slots.is_empty() {
            table.sweeping = false;
            return;
        }
    }
}
