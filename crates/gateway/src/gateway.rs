//! [`Gateway`]: the union of many servers, as a door.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tidegate_client::{AppError, Client, ClientBuilder, ErrorProfile};
use tidegate_config::{DisabledServer, ServerSettings, Settings, Source};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::seal::{Key, Sealer};
use tidegate_protocol::{Error, Json, Method, Revision, Symbol, meta};
use tidegate_service::layers::{Bounded, Front, Limits, front};
use tidegate_service::{BoxDoor, Call, Door, Reply, random};
use tower::{Layer, Service};

use crate::build::{Building, State};
use crate::emitted::Emitted;
use crate::listen::Subscribers;
use crate::status::ServerStatus;
use crate::view::Visibility;

/// Makes the client of a server: where credentials come from, and what built-in servers there are.
pub type Dial = Arc<dyn Fn(&ServerSettings) -> Result<ClientBuilder, AppError> + Send + Sync>;

/// Many servers behind one door. Clones are handles on the same.
#[derive(Clone)]
pub struct Gateway {
    inner: Arc<Inner>,
    /// What every call passes.
    front: Arc<Front<BoxDoor>>,
}

/// Puts something of the application between the front and what answers.
type Gate = Box<dyn FnOnce(BoxDoor) -> BoxDoor + Send>;

/// What all handles share.
pub(crate) struct Inner {
    /// What is on offer. Calls read it without a lock.
    pub(crate) state: ArcSwap<State>,
    /// Who changes it does so one after the other.
    pub(crate) building: Mutex<Building>,
    /// Reloads are prepared one after the other, while nobody else has to wait.
    pub(crate) reloading: Mutex<()>,
    /// The states before this one, for cursors.
    pub(crate) earlier: Mutex<VecDeque<Arc<State>>>,
    pub(crate) subscribers: Subscribers,
    pub(crate) emitted: Emitted,
    /// The front, for calls that hold other calls: each of those passes it, too.
    front: OnceLock<Weak<Front<BoxDoor>>>,
    /// Seals what clients bring back: cursors, handles of tasks.
    pub(crate) sealer: ArcSwap<Sealer>,
    pub(crate) dial: Dial,
    /// Who sees what, where that differs.
    pub(crate) visibility: Option<Arc<dyn Visibility>>,
    /// The entry of each modern result's `_meta` that says who answers.
    pub(crate) info: String,
    /// Which gateway this is, among gateways.
    pub(crate) id: Arc<str>,
}

/// Builds a [`Gateway`].
#[must_use = "a builder does nothing until it starts"]
pub struct GatewayBuilder {
    settings: Settings,
    dial: Dial,
    limits: Limits,
    gates: Vec<Gate>,
    visibility: Option<Arc<dyn Visibility>>,
}

impl Gateway {
    /// Starts with the defaults. It does not wait for the servers.
    pub fn start(settings: Settings) -> Result<Gateway, AppError> {
        Gateway::builder(settings).start()
    }

    /// Everything that can be said about a gateway before it starts.
    pub fn builder(settings: Settings) -> GatewayBuilder {
        let limits = Limits {
            // Each server has timeouts of its own; this is for what hangs in between.
            deadline: Duration::from_secs(24 * 3600),
            concurrent: 8 * 1024,
            waiting: 8 * 1024,
            result_bytes: 64 * 1024 * 1024,
        };
        GatewayBuilder { settings, dial: Arc::new(dial), limits, gates: Vec::new(), visibility: None }
    }

    /// Puts another configuration in force. Servers that did not change keep their connections; calls that are running
    /// end where they began. If a server cannot be used as it is configured, nothing changes.
    ///
    /// Files are read for it and servers of the program opened, which may take a while: that happens on a thread of its own,
    /// and holds up no call. Reloads are made one after the other, and go on if this is dropped.
    pub async fn reload(&self, settings: Settings) -> Result<(), AppError> {
        let inner = self.inner.clone();
        let applied = tokio::task::spawn_blocking(move || inner.apply(settings)).await;
        applied.unwrap_or_else(|_| Err(configuration_error("Applying the configuration was interrupted")))
    }

    /// How the servers are doing, in the order of the configuration.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.inner.state.load().mounts.iter().map(|mount| mount.status()).collect()
    }

    /// The servers of the configuration that are not used, and why.
    pub fn disabled(&self) -> Vec<DisabledServer> {
        self.inner.state.load().disabled.clone()
    }

    /// What had to be changed about names, and what else is worth knowing, in sentences.
    pub fn reports(&self) -> Vec<String> {
        self.inner.state.load().snapshot.reports.iter().map(|report| report.sentence.clone()).collect()
    }

    /// What is sealed with now. Clients bring back what they were given, so an edge in front seals with the same keys.
    pub fn sealer(&self) -> Arc<Sealer> {
        self.inner.sealer.load_full()
    }

    /// Waits until every server has been asked what it offers, but no longer than this.
    pub async fn settled(&self, patience: Duration) {
        let state = self.inner.state.load_full();
        let all = join_all(state.mounts.iter().map(|mount| mount.settled(patience)));
        let _ = tokio::time::timeout(patience, all).await;
    }

    /// Ends all subscriptions, so that the connections they hold can end. The first step of a shutdown.
    pub fn shut_down(&self) {
        self.inner.subscribers.close();
    }

    /// Ends everything: calls that are running may finish within the configured time, then servers are left and their
    /// processes stopped.
    pub async fn close(&self) {
        self.shut_down();
        let (mounts, leaving, drain) = {
            let mut building = self.inner.building();
            building.closed = true;
            let leaving = std::mem::take(&mut building.leaving);
            (self.inner.state.load().mounts.clone(), leaving, building.settings.drain)
        };
        tokio::join!(join_all(mounts.iter().map(|mount| mount.close(drain))), join_all(leaving));
    }
}

impl GatewayBuilder {
    /// Makes clients in another way.
    pub fn dial(
        mut self,
        dial: impl Fn(&ServerSettings) -> Result<ClientBuilder, AppError> + Send + Sync + 'static,
    ) -> Self {
        self.dial = Arc::new(dial);
        self
    }

    /// Puts a layer around whatever answers: it sees every call, list, subscription, batch, task and notification, with the
    /// principal in its context, and may refuse it. One that is added later is outside of those before. Pages and other HTTP
    /// requests do not come here: see [`http::front`](https://docs.rs/tidegate-edge).
    pub fn layer<L>(mut self, layer: L) -> Self
    where
        L: Layer<BoxDoor> + Send + 'static,
        L::Service: Door,
    {
        self.gates.push(Box::new(move |door| layer.layer(door).boxed()));
        self
    }

    /// Says who sees what: what is hidden from a caller is in none of its lists and unknown when it is named. Without this
    /// everybody sees everything.
    pub fn visibility(mut self, visibility: impl Visibility) -> Self {
        self.visibility = Some(Arc::new(visibility));
        self
    }

    /// How many calls may run and wait, how long they may take, and how large results may be.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Starts. It does not wait for the servers. Needs a tokio runtime.
    pub fn start(self) -> Result<Gateway, AppError> {
        let mut own = ObjectWriter::new();
        own.str("name", "tidegate").str("version", env!("CARGO_PKG_VERSION"));
        let inner = Arc::new(Inner {
            state: ArcSwap::from_pointee(State::empty(&self.settings)),
            building: Mutex::new(Building::new(&self.settings)),
            reloading: Mutex::default(),
            earlier: Mutex::default(),
            subscribers: Subscribers::default(),
            emitted: Emitted::default(),
            front: OnceLock::new(),
            sealer: ArcSwap::from_pointee(Sealer::new(Key::new(random()))),
            dial: self.dial,
            visibility: self.visibility,
            info: format!("{}:{}", Json::string(meta::SERVER_INFO), own.finish()),
            id: format!("{:032x}", u128::from_le_bytes(random())).into(),
        });
        inner.apply(self.settings)?;
        let union = {
            let inner = inner.clone();
            tower::service_fn(move |call| {
                let inner = inner.clone();
                async move { Ok(inner.answer(call).await) }
            })
        };
        let gates = |door: Bounded<_>| self.gates.into_iter().fold(door.boxed(), |door, gate| gate(door));
        let front = Arc::new(front(union, &self.limits, gates));
        let _ = inner.front.set(Arc::downgrade(&front));
        Ok(Gateway { inner, front })
    }
}

impl Inner {
    pub(crate) fn building(&self) -> MutexGuard<'_, Building> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn earlier(&self) -> MutexGuard<'_, VecDeque<Arc<State>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The whole way of a call, for those that are made of another one.
    pub(crate) fn front(&self) -> Result<Front<BoxDoor>, Error> {
        let front = self.front.get().and_then(Weak::upgrade);
        front
            .map(|front| (*front).clone())
            .ok_or_else(|| Error::new(Symbol::Unavailable, "The gateway is closed"))
    }
}

impl Drop for Inner {
    /// Nobody can call any more: the keepers go, and with them the connections.
    fn drop(&mut self) {
        for mount in &self.state.load().mounts {
            mount.over.cancel();
        }
    }
}

/// The usual way to make a client: whatever the settings say, without logins.
fn dial(settings: &ServerSettings) -> Result<ClientBuilder, AppError> {
    match &settings.source {
        Source::Target(target) => Ok(Client::builder(target.clone())?.options(settings.options.clone())),
        Source::Builtin(name) => Err(configuration_error(format!("No built-in server is named {name:?}"))),
    }
}

/// A configuration that cannot be put in force.
pub(crate) fn configuration_error(what: impl Into<Cow<'static, str>>) -> AppError {
    let error = Error::new(Symbol::InvalidParams, what);
    AppError::from_error(&error, &Method::Initialize, ErrorProfile::default(), Revision::INTERNAL)
}

impl Service<Call> for Gateway {
    type Response = Reply;
    type Error = Infallible;
    type Future = <Front<BoxDoor> as Service<Call>>::Future;

    fn poll_ready(&mut self, _: &mut Poller<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let errors = self.inner.state.load().errors;
        if call.context.errors != errors {
            call.context.errors = errors;
        }
        self.front.answer(call)
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.inner.state.load().mounts.iter()).finish()
    }
}
