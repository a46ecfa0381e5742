//! What is known about a server: its era, the connection that goes with it, and how to find both.

use std::sync::{Arc, MutexGuard};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Call;

use super::{Upstream, closed};
use crate::backoff::{Backoff, HEALTHY_AFTER, PATIENCE, not_yet};
use crate::dial::{Found, Reach, To};
use crate::legacy::{Legacy, Terms};
use crate::modern::{Link, Modern};

type Finding = Shared<BoxFuture<'static, Result<Known, Error>>>;

/// What is known about the server's era.
#[derive(Default)]
pub(super) struct Era {
    pub(super) known: Option<(Known, Instant)>,
    pub(super) finding: Option<Finding>,
    /// What it was the last time it was legacy, to be tried first.
    was: Option<Reach>,
    pub(super) backoff: Backoff,
    last_failure: Option<Error>,
    pub(super) closed: bool,
}

/// The server as it is spoken to.
#[derive(Clone)]
pub(crate) enum Known {
    Modern(Arc<Modern>),
    Legacy(Arc<Legacy>),
}

impl Known {
    fn is_open(&self) -> bool {
        match self {
            Known::Modern(modern) => modern.is_open(),
            // Sessions are opened and closed below.
            Known::Legacy(_) => true,
        }
    }

    /// Why the connection has ended, as far as that is known.
    fn end(&self) -> Option<Error> {
        match self {
            Known::Modern(modern) => match &modern.link {
                Link::Pipe(peer) => peer.desk.tickets.closed(),
                Link::Http(_) => None,
            },
            Known::Legacy(_) => None,
        }
    }
}

impl Upstream {
    pub(super) fn era(&self) -> MutexGuard<'_, Era> {
        self.era.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// The server, if it is known and can be reached.
    pub(super) fn known_already(&self) -> Option<Known> {
        self.era().known.as_ref().map(|(known, _)| known).filter(|known| known.is_open()).cloned()
    }

    /// The server, found if it is not known. However many ask at once, it is looked for once.
    pub(crate) async fn known(self: &Arc<Self>, call: &Call) -> Result<Known, Error> {
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
                    let finding = self.find(call, era.was);
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

    fn find(self: &Arc<Self>, call: &Call, was: Option<Reach>) -> Finding {
        let terms = Terms::of(&call.context, &self.dialer.options);
        let (upstream, dialer, cache) = (self.clone(), self.dialer.clone(), self.cache.clone());
        // A task of its own: a caller who gives up does not take the connection away from the others.
        let task = tokio::spawn(async move {
            let found = tokio::select! {
                found = dialer.find(&cache, &terms, was) => found,
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

    fn found(self: &Arc<Self>, found: Result<Found, Error>) -> Result<Known, Error> {
        let is_process = matches!(self.dialer.to, To::Command(_));
        let result = found.map(|found| match found {
            Found::Modern(modern) => Known::Modern(modern),
            Found::Legacy(reach, lane) => {
                self.lanes.adopt(lane);
                Known::Legacy(Arc::new(self.legacy(reach)))
            }
        });
        let mut era = self.era();
        era.finding = None;
        match &result {
            Ok(known) => {
                era.was = match known {
                    Known::Legacy(legacy) => Some(legacy.reach),
                    Known::Modern(_) => None,
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

    fn legacy(&self, reach: Reach) -> Legacy {
        Legacy {
            dialer: self.dialer.clone(),
            reach,
            lanes: self.lanes.clone(),
            parked: self.parked.clone(),
            tasks: self.tasks.clone(),
            cache: self.cache.clone(),
            own: self.own,
            changes: self.dialer.changes.clone(),
            options: self.dialer.options.clone(),
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
