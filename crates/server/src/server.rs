//! [`ServerDoor`]: a finished server, and the parts that its calls share.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};

use arc_swap::ArcSwap;
use pin_project_lite::pin_project;
use serde_json::{Map, Value};
use tidegate_protocol::seal::Sealer;
use tidegate_service::layers::{Bounded, Front, Limits, front};
use tidegate_service::{Call, Principal, Reply};

use crate::discover::Info;
use crate::dispatch::Framework;
use crate::handle::ServerHandle;
use crate::hub::Hub;
use crate::interact::Overflow;
use crate::registry::{Kinds, Registry};
use crate::settings::ServerSettings;
use crate::tasks::Store;
use crate::tool::ToolError;
use tidegate_service::layers::BreakerState;
use tidegate_service::stats::{CacheStats, Counters, Thresholds};

/// A finished server: a door, to be given to a transport. Clones are the same server.
#[derive(Clone)]
pub struct ServerDoor {
    inner: Front<Bounded<Framework>>,
    core: Arc<Core>,
}

impl ServerDoor {
    pub(crate) fn new(core: Arc<Core>, limits: &Limits) -> ServerDoor {
        ServerDoor { inner: front(Framework(core.clone()), limits, |door| door), core }
    }

    /// A handle, to look at the running server and to change it.
    pub fn handle(&self) -> ServerHandle {
        ServerHandle::new(self.core.clone())
    }

    /// The server without any layer around it, for those who stack their own.
    pub fn bare(&self) -> Framework {
        Framework(self.core.clone())
    }
}

impl std::fmt::Debug for ServerDoor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerDoor").field("info", &self.core.info).finish_non_exhaustive()
    }
}

impl tower::Service<Call> for ServerDoor {
    type Response = Reply;
    type Error = Infallible;
    type Future = Counted;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Counted {
        self.core.counters.requested();
        Counted { inner: self.inner.call(call), core: self.core.clone() }
    }
}

pin_project! {
    /// The future of [`ServerDoor`]: counts answers, whoever gave them. One that is dropped was cancelled, and counts
    /// as neither good nor bad.
    pub struct Counted {
        #[pin]
        inner: <Front<Bounded<Framework>> as tower::Service<Call>>::Future,
        core: Arc<Core>,
    }
}

impl Future for Counted {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, poll: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let reply = ready!(this.inner.poll(poll));
        this.core.counters.finished();
        Poll::Ready(reply)
    }
}

/// The parts that calls share.
pub(crate) struct Core {
    pub(crate) info: Info,
    pub(crate) extensions: Map<String, Value>,
    pub(crate) settings: ServerSettings,
    pub(crate) registry: ArcSwap<Registry>,
    /// Held while the next registry is made.
    pub(crate) changing: Mutex<()>,
    /// A key of this server, which is random unless the application has given it one.
    pub(crate) own_sealer: Arc<Sealer>,
    pub(crate) has_own_key: bool,
    /// Tells the numbers of this process from those that another has given to what it registered.
    pub(crate) instance: [u8; 8],
    pub(crate) overflow: Overflow,
    pub(crate) hub: Arc<Hub>,
    pub(crate) tasks: Store,
    pub(crate) counters: Counters,
    pub(crate) thresholds: Thresholds,
    pub(crate) breaker: Option<Box<dyn Fn() -> BreakerState + Send + Sync>>,
    pub(crate) cache_stats: Option<Box<dyn Fn() -> CacheStats + Send + Sync>>,
    pub(crate) admit: Option<Admit>,
    pub(crate) may_watch: Option<MayWatch>,
}

/// Refuses calls that are none of the caller's business.
pub(crate) type Admit = Box<dyn Fn(&Call) -> Result<(), ToolError> + Send + Sync>;
/// Says which resources somebody may subscribe to.
pub(crate) type MayWatch = Box<dyn Fn(&Principal, &str) -> bool + Send + Sync>;

impl Core {
    /// What seals for this call: the server's own key, or else that of whoever has made the server part of something larger.
    pub(crate) fn sealer(&self, call: &Call) -> Arc<Sealer> {
        let given = if self.has_own_key { None } else { call.context.extensions.get() };
        given.unwrap_or_else(|| self.own_sealer.clone())
    }

    /// Refuses a call that is none of the caller's business.
    pub(crate) fn admit(&self, call: &Call) -> Result<(), ToolError> {
        self.admit.as_ref().map_or(Ok(()), |admit| admit(call))
    }

    /// What is on offer.
    pub(crate) fn kinds(&self) -> Kinds {
        self.registry.load().kinds
    }
}
