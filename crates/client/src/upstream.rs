//! [`Upstream`]: one server behind the door, whichever era it speaks.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context as Poller, Poll};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::{BoxFuture, Shared};
use tidegate_protocol::{Error, Json, Method, Object, Revision, Symbol};
use tidegate_service::{Call, CallerId, HOP_LIMIT, Reply};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::allowance::Allowance;
use crate::backoff::Backoff;
use crate::cache::ToolCache;
use crate::dial::{Dialer, Found, Reach};
use crate::facts::ServerFacts;
use crate::legacy::{Lanes, Legacy, Parked};
use crate::modern::{Modern, Trouble};
use crate::rounds;

type Finding = Shared<BoxFuture<'static, Result<Known, Error>>>;

/// A process that ends sooner than this after its start has not really started.
const HEALTHY_AFTER: Duration = Duration::from_secs(5);
/// The longest that a caller is made to wait for a pause to be over; a longer one fails at once.
const PATIENCE: Duration = Duration::from_secs(1);

/// One server.
pub(crate) struct Upstream {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) cache: Arc<ToolCache>,
    lanes: Arc<Lanes>,
    pub(crate) parked: Arc<Parked>,
    turns: Arc<Semaphore>,
    listening: Arc<AtomicBool>,
    era: Mutex<Era>,
    /// Whose calls are the client's own, with times of their own.
    own: CallerId,
    /// Fires when the client is closed.
    pub(crate) over: CancellationToken,
}

/// What is known about the server's era.
#[derive(Default)]
struct Era {
    known: Option<(Known, Instant)>,
    finding: Option<Finding>,
    /// What it was the last time it was legacy, to be tried first.
    was: Option<Reach>,
    backoff: Backoff,
    last_failure: Option<Error>,
    closed: bool,
}

/// The server as it is spoken to.
#[derive(Clone)]
pub(crate) enum Known {
    Modern(Arc<Modern>),
    Legacy(Arc<Legacy>),
}

impl Upstream {
    pub(crate) fn new(dialer: Arc<Dialer>, cache: Arc<ToolCache>, own: CallerId) -> Arc<Upstream> {
        let options = dialer.options.clone();
        let invalidated = Arc::downgrade(&cache);
        dialer.changes.watch(move |notice| {
            if let (tidegate_service::Notice::ToolsChanged, Some(cache)) = (notice, invalidated.upgrade()) {
                cache.invalidate();
            }
        });
        let over = dialer.over.clone();
        Arc::new(Upstream {
            lanes: Lanes::new(options.lanes.clone(), over.clone()),
            parked: Arc::new(Parked::new(options.park.clone(), over.clone())),
            turns: Arc::new(Semaphore::new(1)),
            listening: Arc::default(),
            era: Mutex::default(),
            own,
            over,
            dialer,
            cache,
        })
    }

    fn era(&self) -> MutexGuard<'_, Era> {
        self.era.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// How long a call may take.
    pub(crate) fn allowance(&self, call: &Call) -> Allowance {
        let options = &self.dialer.options;
        let now = Instant::now();
        let special = match call.method {
            Method::ToolsCall if !options.tool_timeouts.is_empty() => {
                call.params.str("name").and_then(|name| options.tool_timeouts.get(&*name).copied())
            }
            _ => None,
        };
        let mut stretch = special.unwrap_or(options.timeout);
        let mut at_most = now + options.max_timeout;
        if let Some(deadline) = call.context.deadline {
            // The client's own user knows how long to wait; anybody else is heard as far as the options go.
            if call.context.caller == Some(self.own) {
                stretch = deadline.saturating_duration_since(now);
                at_most = deadline;
            }
            at_most = at_most.min(deadline);
        }
        Allowance::new(now, stretch, options.extend_on_progress, Some(at_most))
    }

    /// The server, if it is known and can be reached.
    fn known_already(&self) -> Option<Known> {
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
                    if lived < HEALTHY_AFTER {
                        era.backoff.failed(Instant::now());
                    } else {
                        era.backoff.succeeded();
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
        let why = last.as_ref().map_or("it ended right after its start", |e| e.message());
        let what = format!("The server is not started again for another {:.1} s: {why}", pause.as_secs_f32());
        Err(Error::new(Symbol::Unavailable, what).unexecuted().with_retry_after(pause))
    }

    fn find(self: &Arc<Self>, call: &Call, was: Option<Reach>) -> Finding {
        let terms = Legacy::terms(&self.dialer.options, call);
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
            let stopped = || Error::new(Symbol::Unavailable, "Connecting was stopped");
            task.await.unwrap_or_else(|_| upstream.found(Err(stopped())))
        };
        finding.boxed().shared()
    }

    fn found(self: &Arc<Self>, found: Result<Found, Error>) -> Result<Known, Error> {
        let is_process = matches!(self.dialer.to, crate::dial::To::Command(_));
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
                // Whether it really works shows when it ends.
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
            changes: self.dialer.changes.clone(),
            options: self.dialer.options.clone(),
            turns: self.turns.clone(),
            listening: self.listening.clone(),
        }
    }

    /// What was known about the server proved wrong.
    fn forget(&self) {
        let mut era = self.era();
        era.known = None;
        era.was = None;
    }

    /// What the server says about itself.
    pub(crate) async fn facts(self: &Arc<Self>, call: &Call) -> Result<ServerFacts, Error> {
        match self.known(call).await? {
            Known::Modern(modern) => Ok(modern.facts.clone()),
            Known::Legacy(legacy) => legacy.facts(&Legacy::terms(&self.dialer.options, call)).await,
        }
    }

    /// Answers a call. With handlers, questions are answered on the way.
    pub(crate) async fn call(self: &Arc<Self>, call: Call) -> Reply {
        if call.context.hops > HOP_LIMIT {
            let what =
                format!("The call went through more than {HOP_LIMIT} gateways: they are connected in a loop");
            return Reply::Error(Error::new(Symbol::LoopDetected, what));
        }
        let cancel = call.context.cancel.clone();
        let answered = async {
            match &self.dialer.handlers {
                Some(handlers) if call.method.may_ask() => {
                    let max = self.dialer.options.max_rounds;
                    let upstream = self.clone();
                    rounds::until_done(call, handlers, max, move |call| {
                        let upstream = upstream.clone();
                        Box::pin(async move { upstream.once(call).await })
                    })
                    .await
                }
                _ => self.once(&call).await,
            }
        };
        tokio::select! {
            biased;
            reply = answered => reply.unwrap_or_else(Reply::Error),
            () = cancel.cancelled() => {
                Reply::Error(Error::new(Symbol::Cancelled, "The call was cancelled"))
            }
            () = self.over.cancelled() => Reply::Error(closed()),
        }
    }

    /// Answers one round of a call. A server that turns out to be of the other era is found anew, once.
    async fn once(self: &Arc<Self>, call: &Call) -> Result<Reply, Error> {
        let allowance = self.allowance(call);
        for again in [true, false] {
            let known = match self.known_already() {
                Some(known) => known,
                // Boxed like everything rare here, so that the common path stays small.
                None => {
                    match tokio::time::timeout_at(allowance.ends(None).into(), Box::pin(self.known(call)))
                        .await
                    {
                        Ok(known) => known?,
                        Err(_) => return Err(allowance.over().unexecuted()),
                    }
                }
            };
            let wrong = match known {
                Known::Modern(modern) => match self.modern(&modern, call, allowance).await {
                    Ok(reply) => return Ok(reply),
                    Err(Trouble::Error(error)) => return Err(error),
                    Err(Trouble::WrongEra(error)) => error,
                },
                Known::Legacy(legacy) => match Box::pin(legacy.call(call, allowance)).await {
                    Err(error) if is_other_era(&error) => error,
                    other => return other,
                },
            };
            if !again {
                return Err(wrong);
            }
            tracing::info!(server = %self.dialer.name, error = %wrong, "the server seems to speak another era now; looking again");
            self.forget();
        }
        Err(Error::internal())
    }

    async fn modern(
        self: &Arc<Self>,
        modern: &Arc<Modern>,
        call: &Call,
        allowance: Allowance,
    ) -> Result<Reply, Trouble> {
        match call.method {
            Method::Listen => Box::pin(crate::subscribe::listen(self, modern, call, allowance)).await,
            _ => match modern.call(call, allowance).await? {
                Reply::Complete(result) if call.method == Method::Discover => {
                    Ok(Reply::Complete(spoken_here(result)))
                }
                reply => Ok(reply),
            },
        }
    }

    /// Ends everything: sessions, processes, parked calls.
    pub(crate) async fn close(&self) {
        let known = {
            let mut era = self.era();
            era.closed = true;
            era.known.take()
        };
        self.over.cancel();
        self.dialer.changes.close();
        self.parked.close();
        if let Some((Known::Modern(modern), _)) = known
            && let crate::modern::Link::Pipe(peer) = &modern.link
        {
            peer.line.close().await;
        }
        self.lanes.close().await;
        if let crate::dial::To::Http { http, .. } = &self.dialer.to {
            http.close();
        }
    }

    /// Sends a notification to every legacy session.
    pub(crate) fn tell_legacy(&self, method: &str) {
        for lane in self.lanes.all() {
            lane.peer.line.tell_soon(crate::wire::notification(method, None));
        }
    }
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
                crate::modern::Link::Pipe(peer) => peer.desk.tickets.closed(),
                crate::modern::Link::Http(_) => None,
            },
            Known::Legacy(_) => None,
        }
    }
}

/// Why there are no calls any more.
pub(crate) fn closed() -> Error {
    Error::new(Symbol::Unavailable, "The client is closed")
}

/// Whether a legacy server that refused a handshake may have become a modern one.
fn is_other_era(error: &Error) -> bool {
    matches!(error.symbol(), Symbol::UnsupportedVersion | Symbol::HeaderMismatch)
}

/// A discovery that promises what Tidegate speaks: all revisions, whatever the server behind it speaks.
fn spoken_here(discovered: Json) -> Json {
    let Some(object) = Object::of(&discovered) else { return discovered };
    let all: Vec<_> = Revision::ALL.iter().rev().map(|r| r.as_str()).collect();
    match Json::of(&all) {
        Ok(all) => object.with("supportedVersions", &all),
        Err(_) => discovered,
    }
}

/// An [`Upstream`] as a service.
#[derive(Clone)]
pub(crate) struct UpstreamDoor(pub(crate) Arc<Upstream>);

impl tower::Service<Call> for UpstreamDoor {
    type Response = Reply;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Reply, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        let upstream = self.0.clone();
        Box::pin(async move { Ok(upstream.call(call).await) })
    }
}
