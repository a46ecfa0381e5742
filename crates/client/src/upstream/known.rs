//! What is known about a server: its era, the connection that goes with it, and how to find both.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Call;

use super::{Upstream, closed};
use crate::backoff::{Backoff, HEALTHY_AFTER, PATIENCE, not_yet};
use crate::dial::Dialed;
use crate::legacy::{Legacy, SessionSpec};
use crate::modern::{Modern, Via};
use crate::transport::Transport;

type Finding = Shared<BoxFuture<'static, Result<Negotiated, Error>>>;

/// What is known about the server's era.
#[derive(Default)]
pub(super) struct Era {
    pub(super) known: Option<(Negotiated, Instant)>,
    pub(super) finding: Option<Finding>,
    /// What it was the last time it was legacy, to be tried first.
    was: Option<Transport>,
    pub(super) backoff: Backoff,
    last_failure: Option<Error>,
    pub(super) closed: bool,
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
    pub(super) fn era(&self) -> MutexGuard<'_, Era> {
        self.era.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The server, if it is known and can be reached.
    pub(super) fn negotiated_already(&self) -> Option<Negotiated> {
        self.era().known.as_ref().map(|(known, _)| known).filter(|known| known.is_open()).cloned()
    }

    /// The server, found if it is not known. However many ask at once, it is looked for once.
    pub(crate) async fn known(self: &Arc<Self>, call: &Call) -> Result<Negotiated, Error> {
        let pause = {
            let mut era = self.era();
            match &era.known {
                Some((known, _)) if known.is_open() => return Ok(known.clone()),
                Some((known, since)) => {
                    let (lived, why) = (since.elapsed(), known.end());
                    if lived >= HEALTHY_AFTER {
                        era.backoff.reset();
                    } else {
                        era.backoff.failed(Instant::now());
                    }
                    era.last_failure = why.or(era.last_failure.take());
                    era.known = None;
                }
                None => {}
            }
            era.backoff.wait(Instant::now())
        };
        self.bear(pause).await?;
        let finding = {
            let mut era = self.era();
            if era.closed {
                return Err(closed().unexecuted());
            }
            match (&era.known, &era.finding) {
                (Some((known, _)), _) if known.is_open() => return Ok(known.clone()),
                (_, Some(finding)) => finding.clone(),
                _ => {
                    let finding = self.find(call, era.was.clone());
                    era.finding = Some(finding.clone());
                    finding
                }
            }
        };
        finding.await
    }

    async fn bear(&self, pause: Duration) -> Result<(), Error> {
        if pause == Duration::ZERO {
            return Ok(());
        }
        if pause <= PATIENCE {
            tokio::time::sleep(pause).await;
            return Ok(());
        }
        let last = self.era().last_failure.clone();
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
        let mut era = self.era();
        era.finding = None;
        match &result {
            Ok(known) => {
                era.was = match known {
                    Negotiated::Legacy(legacy) => Some(legacy.transport.clone()),
                    Negotiated::Modern(_) => None,
                };
                era.backoff.started();
                era.known = (!era.closed).then(|| (known.clone(), Instant::now()));
            }
            Err(error) => {
                if is_process {
                    era.backoff.failed(Instant::now());
                }
                era.last_failure = Some(error.clone());
            }
        }
        drop(era);
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
        let mut era = self.era();
        era.known = None;
        era.was = None;
    }
}
