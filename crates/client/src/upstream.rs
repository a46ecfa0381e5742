//! [`Upstream`]: one server behind the door, whichever era it speaks.

mod end;
mod known;
mod notify;
mod old_callers;
mod probe;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll};

use tidegate_protocol::seal::Sealer;
use tidegate_protocol::{Error, Method, Symbol};
use tidegate_service::events::{self, EraChanged, Event};
use tidegate_service::{Call, CallerId, Reply};
use tokio_util::sync::CancellationToken;

use crate::allowance::{Allowance, with_setting};
use crate::cache::ToolCache;
use crate::dial::Dialer;
use crate::facts::ServerFacts;
use crate::legacy::{Lanes, Listening, Parked, Tasks, Terms};
use crate::modern::{Modern, Trouble};
use crate::rounds;
use crate::upstream_error::passed_task;

use known::Era;
pub(crate) use known::Known;
use old_callers::spoken_here;

/// One server.
pub(crate) struct Upstream {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) cache: Arc<ToolCache>,
    lanes: Arc<Lanes>,
    pub(crate) parked: Arc<Parked>,
    tasks: Arc<Tasks>,
    listening: Listening,
    era: Mutex<Era>,
    /// Whose calls are the client's own, with times of their own.
    own: CallerId,
    /// How many calls are under way.
    in_flight: AtomicUsize,
    /// How many subscriptions with a modern server are open.
    pub(crate) feeds: Arc<AtomicUsize>,
    /// Fires when the client is closed.
    pub(crate) over: CancellationToken,
}

impl Upstream {
    pub(crate) fn new(
        dialer: Arc<Dialer>,
        cache: Arc<ToolCache>,
        own: CallerId,
        sealer: Sealer,
    ) -> Arc<Upstream> {
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
            parked: Arc::new(Parked::new(options.park.clone(), sealer.clone())),
            tasks: Tasks::new(options.tasks.clone(), sealer),
            listening: Listening::default(),
            era: Mutex::default(),
            own,
            in_flight: AtomicUsize::new(0),
            feeds: Arc::default(),
            over,
            dialer,
            cache,
        })
    }

    /// How long a call may take.
    pub(crate) fn allowance(&self, call: &Call) -> Allowance {
        Allowance::of(&self.dialer.options, self.own, call)
    }

    /// What the server says about itself.
    pub(crate) async fn facts(self: &Arc<Self>, call: &Call) -> Result<ServerFacts, Error> {
        let _busy = self.busy();
        match self.known(call).await? {
            Known::Modern(modern) => Ok(modern.facts.clone()),
            Known::Legacy(legacy) => legacy.facts(&Terms::of(&call.context, &self.dialer.options)).await,
        }
    }

    /// Answers a call. With handlers, questions are answered on the way.
    pub(crate) async fn call(self: &Arc<Self>, call: &Call) -> Reply {
        if let Err(error) = call.context.check_hops() {
            return Reply::Error(error);
        }
        let _busy = self.busy();
        // Pinned here, because it is large and would otherwise be moved into the selection.
        let mut answered = std::pin::pin!(async {
            match &self.dialer.handlers {
                Some(handlers) if call.method.may_ask() => {
                    let (upstream, options) = (self.clone(), &self.dialer.options);
                    let done = rounds::until_done(call.clone(), handlers, options, move |call| {
                        let upstream = upstream.clone();
                        Box::pin(async move { upstream.once(call).await })
                    });
                    Box::pin(done).await
                }
                _ => self.once(call).await,
            }
        });
        tokio::select! {
            biased;
            reply = answered.as_mut() => reply.unwrap_or_else(Reply::Error),
            () = call.context.cancel.cancelled() => {
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
                    let finding = Box::pin(self.known(call));
                    match tokio::time::timeout_at(allowance.ends(None).into(), finding).await {
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
            self.looks_again(&wrong);
        }
        Err(Error::internal())
    }

    /// The server is not what it was.
    fn looks_again(&self, error: &Error) {
        events::emit(&Event::EraChanged(EraChanged { server: &self.dialer.name, error }));
        self.forget();
    }

    async fn modern(
        self: &Arc<Self>,
        modern: &Arc<Modern>,
        call: &Call,
        allowance: Allowance,
    ) -> Result<Reply, Trouble> {
        match call.method {
            Method::Listen => Box::pin(crate::subscribe::listen(self, modern, call, allowance)).await,
            Method::Discover => match Box::pin(self.for_old_caller(modern, call, allowance)).await? {
                Reply::Complete(result) => Ok(Reply::Complete(spoken_here(result))),
                reply => Ok(reply),
            },
            _ if self.is_old_caller(call) => Box::pin(self.for_old_caller(modern, call, allowance)).await,
            _ => modern.call(call, allowance).await,
        }
    }

    /// Sends a notification to every legacy session.
    pub(crate) fn tell_legacy(&self, method: &str) {
        for lane in self.lanes.all() {
            lane.peer.line.tell_soon(crate::wire::notification(method, None));
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
        Box::pin(async move {
            Ok(match upstream.call(&call).await {
                Reply::Error(error) => {
                    let tool = call.params.str("name");
                    Reply::Error(with_setting(error, &upstream.dialer.options, tool.as_deref()))
                }
                Reply::Complete(task) if call.method == Method::TasksGet => {
                    let profile = upstream.dialer.options.profile;
                    Reply::Complete(passed_task(profile, call.context.revision, task))
                }
                reply => reply,
            })
        })
    }
}
