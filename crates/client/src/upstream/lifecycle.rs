//! The life of the connection to a server: how its era and the connection that goes with it are found, and how both end, for a
//! while or for good.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared, join_all};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Call;

use super::{Upstream, closed};
use crate::backoff::{Backoff, HEALTHY_AFTER, PATIENCE, not_yet};
use crate::client::InUse;
use crate::dial::Dialed;
use crate::legacy::{Legacy, SessionSpec};
use crate::modern::{Modern, Via};
use crate::transport::Transport;

type Finding = Shared<BoxFuture<'static, Result<Negotiated, Error>>>;

/// What is known about the server's negotiation.
#[derive(Default)]
pub(super) struct Negotiation {
    current: Option<(Negotiated, Instant)>,
    finding: Option<Finding>,
    /// What it was the last time it was legacy, to be tried first.
    was: Option<Transport>,
    backoff: Backoff,
    last_failure: Option<Error>,
    closed: bool,
}

/// The server as it is spoken to.
#[derive(Clone)]
pub(crate) enum Negotiated {
    Modern(Arc<Modern>),
    Legacy(Arc<Legacy>),
}

impl Negotiated {
    fn is_open(&self) -> bool {
        match self {
            Negotiated::Modern(modern) => modern.is_open(),
            // Sessions are opened and closed below.
            Negotiated::Legacy(_) => true,
        }
    }

    /// Why the connection has ended, as far as that is known.
    fn end(&self) -> Option<Error> {
        match self {
            Negotiated::Modern(modern) => match &modern.via {
                Via::Connection(connection) => connection.router.tickets.closed(),
                Via::Http(_) => None,
            },
            Negotiated::Legacy(_) => None,
        }
    }
}

impl Upstream {
    fn negotiation(&self) -> MutexGuard<'_, Negotiation> {
        self.negotiation.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The server, if it is known and can be reached.
    pub(super) fn negotiated_already(&self) -> Option<Negotiated> {
        self.negotiation().current.as_ref().map(|(known, _)| known).filter(|known| known.is_open()).cloned()
    }

    /// The server, found if it is not known. However many ask at once, it is looked for once.
    pub(crate) async fn negotiated(self: &Arc<Self>, call: &Call) -> Result<Negotiated, Error> {
        let pause = {
            let mut negotiation = self.negotiation();
            match &negotiation.current {
                Some((known, _)) if known.is_open() => return Ok(known.clone()),
                Some((known, since)) => {
                    let (lived, why) = (since.elapsed(), known.end());
                    if lived >= HEALTHY_AFTER {
                        negotiation.backoff.reset();
                    } else {
                        negotiation.backoff.failed(Instant::now());
                    }
                    negotiation.last_failure = why.or(negotiation.last_failure.take());
                    negotiation.current = None;
                }
                None => {}
            }
            negotiation.backoff.wait(Instant::now())
        };
        self.wait_out(pause).await?;
        let finding = {
            let mut negotiation = self.negotiation();
            if negotiation.closed {
                return Err(closed().unexecuted());
            }
            match (&negotiation.current, &negotiation.finding) {
                (Some((known, _)), _) if known.is_open() => return Ok(known.clone()),
                (_, Some(finding)) => finding.clone(),
                _ => {
                    let finding = self.find(call, negotiation.was.clone());
                    negotiation.finding = Some(finding.clone());
                    finding
                }
            }
        };
        finding.await
    }

    /// Waits for a short pause; a long one is an error.
    async fn wait_out(&self, pause: Duration) -> Result<(), Error> {
        if pause == Duration::ZERO {
            return Ok(());
        }
        if pause <= PATIENCE {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let last = self.negotiation().last_failure.clone();
        Err(not_yet(pause, last.as_ref()))
    }

    fn find(self: &Arc<Self>, call: &Call, was: Option<Transport>) -> Finding {
        let spec = SessionSpec::of(&call.context, &self.dialer.settings);
        let (upstream, dialer, cache) = (self.clone(), self.dialer.clone(), self.cache.clone());
        // A task of its own: a caller who gives up does not take the connection away from the others.
        let task = tokio::spawn(async move {
            let found = tokio::select! {
                found = dialer.find(&cache, &spec, was) => found,
                () = upstream.over.cancelled() => Err(closed()),
            };
            upstream.found(found)
        });
        let upstream = self.clone();
        let finding = async move {
            let stopped = || Error::new(Symbol::Unavailable, "Connecting was interrupted");
            task.await.unwrap_or_else(|_| upstream.found(Err(stopped())))
        };
        finding.boxed().shared()
    }

    fn found(self: &Arc<Self>, found: Result<Dialed, Error>) -> Result<Negotiated, Error> {
        let is_process = self.dialer.transport.is_process();
        let result = found.map(|found| match found {
            Dialed::Modern(modern) => Negotiated::Modern(modern),
            Dialed::Legacy(transport, session) => {
                self.sessions.adopt(session);
                Negotiated::Legacy(Arc::new(self.legacy(transport)))
            }
        });
        let mut negotiation = self.negotiation();
        negotiation.finding = None;
        match &result {
            Ok(known) => {
                negotiation.was = match known {
                    Negotiated::Legacy(legacy) => Some(legacy.transport.clone()),
                    Negotiated::Modern(_) => None,
                };
                negotiation.backoff.started();
                negotiation.current = (!negotiation.closed).then(|| (known.clone(), Instant::now()));
            }
            Err(error) => {
                if is_process {
                    negotiation.backoff.failed(Instant::now());
                }
                negotiation.last_failure = Some(error.clone());
            }
        }
        drop(negotiation);
        // What was never begun was not executed.
        result.map_err(Error::unexecuted)
    }

    fn legacy(&self, transport: Transport) -> Legacy {
        Legacy {
            dialer: self.dialer.clone(),
            transport,
            sessions: self.sessions.clone(),
            parked: self.parked.clone(),
            tasks: self.tasks.clone(),
            cache: self.cache.clone(),
            own: self.own,
            changes: self.dialer.changes.clone(),
            settings: self.dialer.settings.clone(),
            listening: self.listening.clone(),
        }
    }

    /// What was known about the server proved wrong.
    pub(super) fn forget(&self) {
        let mut negotiation = self.negotiation();
        negotiation.current = None;
        negotiation.was = None;
    }

    /// Somebody has set something right: the next start waits for no pause.
    pub(crate) fn forget_failures(&self) {
        self.negotiation().backoff.reset();
        self.sessions.forget_failures();
    }

    /// Notes that a call has begun. It has to come before anybody looks whether the server is known: whoever lays it to
    /// rest looks here while that is locked.
    pub(super) fn busy(&self) -> Busy<'_> {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        Busy(&self.in_flight)
    }

    /// How many calls are under way.
    pub(crate) fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Acquire)
    }

    /// What is open towards the server.
    pub(crate) fn in_use(&self) -> InUse {
        InUse {
            sessions: self.sessions.all().len(),
            processes: self.dialer.channels.processes.load(Ordering::Acquire),
            parked_calls: self.parked.waiting(),
            subscriptions: self.subscriptions.load(Ordering::Acquire) + self.listening.len(),
        }
    }

    /// Whether there is a process or a session.
    pub(crate) fn is_running(&self) -> bool {
        let process = match &self.negotiation().current {
            Some((Negotiated::Modern(modern), _)) => {
                matches!(modern.via, Via::Connection(_)) && modern.is_open()
            }
            _ => false,
        };
        process || !self.sessions.all().is_empty()
    }

    /// Whether a legacy server remembers something of somebody who may come back: a client that is connected, or has called
    /// within the time that sessions are kept.
    pub(crate) fn keeps_state(&self) -> bool {
        self.sessions.keep_state()
    }

    /// Ends sessions and processes that nobody uses; the next call opens others. Returns false, and ends nothing, while
    /// anything is under way.
    pub(crate) async fn rest(&self) -> bool {
        let (process, sessions) = {
            let mut negotiation = self.negotiation();
            let wanted = self.dialer.changes.is_wanted() || self.subscriptions.load(Ordering::Acquire) > 0;
            let waits = self.parked.len() > 0 || self.tasks.live() > 0;
            if negotiation.finding.is_some() || wanted || waits || self.in_flight() > 0 {
                return false;
            }
            let Some(sessions) = self.sessions.take() else { return false };
            let process = match &negotiation.current {
                Some((Negotiated::Modern(modern), _)) => match &modern.via {
                    Via::Connection(connection) => Some(connection.clone()),
                    Via::Http(_) => None,
                },
                _ => None,
            };
            if process.is_some() {
                negotiation.current = None;
            }
            (process, sessions)
        };
        let connections = sessions.into_iter().map(|session| session.connection.clone()).chain(process);
        join_all(connections.map(|connection| async move { connection.channel.close().await })).await;
        self.dialer.transport.rest();
        true
    }

    /// Ends everything: sessions, processes, parked calls.
    pub(crate) async fn close(&self) {
        let known = {
            let mut negotiation = self.negotiation();
            negotiation.closed = true;
            negotiation.current.take()
        };
        self.over.cancel();
        self.dialer.changes.close();
        self.parked.close();
        self.tasks.close();
        if let Some((Negotiated::Modern(modern), _)) = known
            && let Via::Connection(connection) = &modern.via
        {
            connection.channel.close().await;
        }
        self.sessions.close().await;
        self.dialer.transport.close();
    }
}

/// Something under way that a server must not be laid to rest under.
pub(crate) struct Busy<'a>(&'a AtomicUsize);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Release);
    }
}
