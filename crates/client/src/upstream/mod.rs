//! [`Upstream`]: one server behind the door, whichever era it speaks.
//!
//! Here are its calls, notifications and probes; how it is found, laid to rest and closed is in `lifecycle`.

mod lifecycle;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex};
use std::task::{Context as Poller, Poll};

use tidegate_protocol::seal::Sealer;
use tidegate_protocol::{Error, Method, Symbol};
use tidegate_service::events::{self, EraChanged, Event};
use tidegate_service::{Call, CallerId, Reply, Stage, noted};
use tokio_util::sync::CancellationToken;

use crate::cache::ToolCache;
use crate::dial::Dialer;
use crate::legacy::{Listening, ParkedCalls, SessionPool, SessionSpec, Tasks};
use crate::modern::{ExchangeError, Modern, is_legacy_caller};
use crate::rounds;
use crate::server_info::ServerInfo;
use crate::time_budget::{TimeBudget, with_setting};
use crate::upstream_error::passed_task;

pub(crate) use lifecycle::Negotiated;
use lifecycle::Negotiation;

/// One server.
pub(crate) struct Upstream {
    pub(crate) dialer: Arc<Dialer>,
    pub(crate) cache: Arc<ToolCache>,
    sessions: Arc<SessionPool>,
    pub(crate) parked: Arc<ParkedCalls>,
    tasks: Arc<Tasks>,
    listening: Listening,
    negotiation: Mutex<Negotiation>,
    /// Whose calls are the client's own, with times of their own.
    own: CallerId,
    /// How many calls are under way.
    in_flight: AtomicUsize,
    /// How many subscriptions with a modern server are open.
    pub(crate) subscriptions: Arc<AtomicUsize>,
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
        let settings = dialer.settings.clone();
        let invalidated = Arc::downgrade(&cache);
        dialer.changes.watch(move |notice| {
            if let (tidegate_service::Notice::ToolsChanged, Some(cache)) = (notice, invalidated.upgrade()) {
                cache.invalidate();
            }
        });
        let over = dialer.over.clone();
        Arc::new(Upstream {
            sessions: SessionPool::new(settings.sessions.clone(), over.clone()),
            parked: Arc::new(ParkedCalls::new(settings.park.clone(), sealer.clone())),
            tasks: Tasks::new(settings.tasks.clone(), sealer),
            listening: Listening::default(),
            negotiation: Mutex::default(),
            own,
            in_flight: AtomicUsize::new(0),
            subscriptions: Arc::default(),
            over,
            dialer,
            cache,
        })
    }

    /// How long a call may take.
    pub(crate) fn budget(&self, call: &Call) -> TimeBudget {
        TimeBudget::of(&self.dialer.settings, self.own, call)
    }

    /// What the server says about itself.
    pub(crate) async fn server_info(self: &Arc<Self>, call: &Call) -> Result<ServerInfo, Error> {
        let _busy = self.busy();
        match self.negotiated(call).await? {
            Negotiated::Modern(modern) => Ok(modern.server_info.clone()),
            Negotiated::Legacy(legacy) => {
                legacy.server_info(&SessionSpec::of(&call.context, &self.dialer.settings)).await
            }
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
                    let (upstream, settings) = (self.clone(), &self.dialer.settings);
                    let done = rounds::until_done(call.clone(), handlers, settings, move |call| {
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
        let budget = self.budget(call);
        for again in [true, false] {
            let known = match self.negotiated_already() {
                Some(known) => known,
                // Boxed like everything rare here, so that the common path stays small.
                None => {
                    let finding = Box::pin(noted(Stage::Connection, self.negotiated(call)));
                    match tokio::time::timeout_at(budget.ends(None).into(), finding).await {
                        Ok(known) => known?,
                        Err(_) => return Err(budget.over().unexecuted()),
                    }
                }
            };
            let wrong = match known {
                Negotiated::Modern(modern) => match self.modern(&modern, call, budget).await {
                    Ok(reply) => return Ok(reply),
                    Err(ExchangeError::Error(error)) => return Err(error),
                    Err(ExchangeError::WrongEra(error)) => error,
                },
                Negotiated::Legacy(legacy) => match Box::pin(legacy.call(call, budget)).await {
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
        budget: TimeBudget,
    ) -> Result<Reply, ExchangeError> {
        match call.method {
            Method::Listen => Box::pin(crate::subscribe::listen(self, modern, call, budget)).await,
            Method::Discover => Box::pin(modern.discover_for(call, self.own, budget)).await,
            _ if is_legacy_caller(call, self.own) => Box::pin(modern.call_for_legacy(call, budget)).await,
            _ => modern.call(call, budget).await,
        }
    }

    /// Passes a notification of a caller on.
    pub(crate) async fn notify(self: &Arc<Self>, call: &Call) -> Result<(), Error> {
        if call.method == Method::RootsChanged {
            // There are no roots to keep in mind but those of a session, and nothing is told to a modern server.
            if let Some(Negotiated::Legacy(legacy)) = self.negotiated_already() {
                legacy.roots_changed(&call.context);
            }
            return Ok(());
        }
        let _busy = self.busy();
        let budget = self.budget(call);
        let telling = async {
            match self.negotiated(call).await? {
                Negotiated::Modern(modern) => modern.notify(call).await,
                Negotiated::Legacy(legacy) => legacy.notify(call, &budget).await,
            }
        };
        tokio::select! {
            told = tokio::time::timeout_at(budget.ends(None).into(), telling) => {
                told.unwrap_or_else(|_| Err(budget.over()))
            }
            () = call.context.cancel.cancelled() => Ok(()),
            () = self.over.cancelled() => Err(closed()),
        }
    }

    /// Asks the server whether it is there, and connects for that if need be. `call` is a `ping`.
    ///
    /// It keeps to the pauses between the starts of a program as calls do: in a long one it fails at once.
    pub(crate) async fn probe(self: &Arc<Self>, call: &Call, budget: TimeBudget) -> Result<(), Error> {
        let _busy = self.busy();
        let asked = tokio::select! {
            asked = tokio::time::timeout_at(budget.ends(None).into(), self.ask(call, budget)) => asked,
            () = self.over.cancelled() => return Err(closed()),
        };
        asked.unwrap_or_else(|_| Err(budget.over()))
    }

    async fn ask(self: &Arc<Self>, call: &Call, budget: TimeBudget) -> Result<(), Error> {
        for again in [true, false] {
            let is_new = self.negotiated_already().is_none();
            let known = self.negotiated(call).await?;
            if is_new {
                // To be connected to is an answer. Those who waited for that together need not ask as well.
                return Ok(());
            }
            let wrong = match known {
                Negotiated::Modern(modern) => match modern.call(call, budget).await {
                    Ok(Reply::Error(error)) | Err(ExchangeError::Error(error)) => return Err(error),
                    Ok(_) => return Ok(()),
                    Err(ExchangeError::WrongEra(error)) => error,
                },
                Negotiated::Legacy(legacy) => match legacy.probe(call, &budget).await {
                    Err(error) if is_other_era(&error) => error,
                    answered => return answered,
                },
            };
            if !again {
                return Err(wrong);
            }
            self.looks_again(&wrong);
        }
        Err(Error::internal())
    }

    /// Sends a notification to every legacy session.
    pub(crate) fn tell_legacy(&self, method: &str) {
        for session in self.sessions.all() {
            session.connection.channel.tell_soon(tidegate_protocol::write::notification(method, None));
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
                    Reply::Error(with_setting(error, &upstream.dialer.settings, tool.as_deref()))
                }
                Reply::Complete(task) if call.method == Method::TasksGet => {
                    let profile = upstream.dialer.settings.profile;
                    Reply::Complete(passed_task(profile, call.context.revision, task))
                }
                reply => reply,
            })
        })
    }
}
