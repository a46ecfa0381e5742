//! [`Gateway`]: the union of many servers, as a door.

use std::borrow::Cow;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, OnceLock};
use std::task::{Context as Poller, Poll};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::future::join_all;
use tidegate_client::{AppError, Client, ClientBuilder, ErrorProfile, Target};
use tidegate_config::{DisabledServer, ServerSettings, Settings, Source};
use tidegate_limits::{LimitLeft, QueueStatus};
use tidegate_policy::{Object, ObjectKind};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::seal::{Key, Sealer};
use tidegate_protocol::{Error, Json, Method, Revision, Symbol, meta};
use tidegate_service::fair_queue::Depth;
use tidegate_service::layers::{AdmissionLayer, Bounded, Front, Limits, PriorityOf, front_with};
use tidegate_service::{BoxDoor, Call, Context, Decision, Door, Identity, Reply, random};
use tower::{Layer, Service};

use crate::allowed;
use crate::build::{Building, State, tell_policy};
use crate::checked::{Check, Checked};
use crate::link_owners::LinkOwners;
use crate::listen::Subscribers;
use crate::router::Router;
use crate::status::ServerStatus;
use crate::view::{Views, Visibility};

/// Makes the client of a server: where credentials come from, and what built-in servers there are.
pub type Dial = Arc<dyn Fn(&ServerSettings) -> Result<ClientBuilder, AppError> + Send + Sync>;

/// Many servers behind one door. Clones are handles on the same.
#[derive(Clone)]
pub struct Gateway {
    pub(crate) router: Arc<Router>,
    /// What every call passes.
    front: Arc<Front<BoxDoor>>,
    /// Where calls of all callers wait.
    admission: AdmissionLayer,
}

/// Puts something of the application between the front and what answers.
type Gate = Box<dyn FnOnce(BoxDoor) -> BoxDoor + Send>;

/// Builds a [`Gateway`].
#[must_use = "a builder does nothing until it starts"]
pub struct GatewayBuilder {
    settings: Settings,
    mounted: Vec<ServerSettings>,
    dial: Dial,
    /// Others than the settings say.
    limits: Option<Limits>,
    checks: Vec<Check>,
    gates: Vec<Gate>,
    visibility: Option<Arc<dyn Visibility>>,
}

impl Gateway {
    /// Starts with the defaults. It does not wait for the servers.
    pub fn start(settings: Settings) -> Result<Gateway, AppError> {
        Gateway::builder().settings(settings).start()
    }

    /// Everything that can be said about a gateway before it starts.
    ///
    /// ```
    /// use tidegate_gateway::Gateway;
    /// use tidegate_protocol::{Method, Params};
    /// use tidegate_server::{Cx, Server, Tool};
    /// use tidegate_service::{Call, Context, Door, Reply};
    ///
    /// # #[tokio::main(flavor = "current_thread")] async fn main() {
    /// let greet = Tool::new("greet").handler(|_: (), _: Cx| async { "Hello!" });
    /// let server = Server::new("greeter", "1.0").tool(greet).build();
    /// let gateway = Gateway::builder().mount("here", server).start().unwrap();
    ///
    /// let call = Call::new(Method::ToolsList, Params::empty(), Context::local());
    /// let Ok(Reply::Complete(tools)) = gateway.answer(call).await else { panic!() };
    /// assert!(tools.as_str().contains("\"here_greet\""));
    /// gateway.close().await;
    /// # }
    /// ```
    pub fn builder() -> GatewayBuilder {
        GatewayBuilder {
            settings: Settings::default(),
            mounted: Vec::new(),
            dial: Arc::new(dial),
            limits: None,
            checks: Vec::new(),
            gates: Vec::new(),
            visibility: None,
        }
    }

    /// Puts another configuration in force. Servers that did not change, and those that the program mounted itself, keep their connections; calls that are running
    /// end where they began. If a server cannot be used as it is configured, nothing changes.
    ///
    /// Files are read for it and servers of the program opened, which may take a while: that happens on a thread of its own,
    /// and holds up no call. Reloads are made one after the other, and go on if this is dropped.
    pub async fn reload(&self, settings: Settings) -> Result<(), AppError> {
        let router = self.router.clone();
        let applied = tokio::task::spawn_blocking(move || router.apply(settings)).await;
        applied.unwrap_or_else(|_| Err(configuration_error("Applying the configuration was interrupted")))
    }

    /// How the servers are doing, in the order of the configuration.
    pub fn status(&self) -> Vec<ServerStatus> {
        self.router.state.load().mounts.iter().map(|mount| mount.status()).collect()
    }

    /// Whether a tool of this name is offered to anybody.
    pub fn offers_tool(&self, name: &str) -> bool {
        self.router.state.load().snapshot.tools.get(name).is_some()
    }

    /// The servers of the configuration that are not used, and why.
    pub fn disabled(&self) -> Vec<DisabledServer> {
        self.router.state.load().disabled.clone()
    }

    /// How many calls run and wait in all.
    pub fn depth(&self) -> Depth {
        self.admission.depth()
    }

    /// Where calls wait because of a limit of the configuration, the busiest first. It names tenants and users: it is for whoever
    /// runs the gateway.
    pub fn queues(&self) -> Vec<QueueStatus> {
        self.router.limit_store.queues()
    }

    /// How much is left to those who have used most of the limits of the configuration. It names nobody.
    pub fn limits_left(&self) -> Vec<LimitLeft> {
        match &self.router.state.load().limits {
            Some(limits) => limits.left(&self.router.limit_store),
            None => Vec::new(),
        }
    }

    /// How many subscriptions of callers are open.
    pub fn subscriptions(&self) -> usize {
        self.router.subscribers.len()
    }

    /// What had to be changed about names, and what else is worth knowing, in sentences.
    pub fn reports(&self) -> Vec<String> {
        self.router.state.load().snapshot.reports.iter().map(|report| report.sentence.clone()).collect()
    }

    /// What is sealed with now. Clients bring back what they were given, so an edge in front seals with the same keys.
    pub fn sealer(&self) -> Arc<Sealer> {
        self.router.sealer.load_full()
    }

    /// Whether whoever makes `call` could make it through the gateway. It is a call of a tool of `server`, or for one of its resources, by
    /// the names that the server has for them: for servers that do something in the name of their callers without coming back here.
    pub fn allows(&self, server: &str, call: &Call) -> Result<(), Error> {
        allowed::check(&self.router, server, call)
    }

    /// Whether the policy lets somebody see the page at a path beside the endpoints.
    pub fn allows_page(&self, identity: &Identity, path: &str) -> bool {
        self.decide_about_page(identity, path, "").is_none_or(|decision| !decision.refuses())
    }

    /// Whether a rule of the policy lets somebody see the page at a path, whatever is allowed where no rule says anything, and also while
    /// the policy is only tried out.
    pub fn rule_allows_page(&self, identity: &Identity, path: &str) -> bool {
        let decision = self.decide_about_page(identity, path, Object::OPERATORS);
        decision.is_some_and(|decision| decision.is_allowed && decision.is_of_rule())
    }

    /// What the policy says about a page; `None` if there is none.
    fn decide_about_page(&self, identity: &Identity, path: &str, server: &str) -> Option<Decision> {
        let state = self.router.state.load();
        let policy = state.policy.as_ref()?;
        let mut context = Context::local();
        context.identify(identity.clone());
        let caller = state.caller(policy, &context);
        let page = Object { kind: ObjectKind::Page, name: path, server };
        Some(Decision::clone(policy.decide(&caller, &page, None)))
    }

    /// Waits until every server has been asked what it offers, but no longer than this.
    pub async fn settled(&self, patience: Duration) {
        let state = self.router.state.load_full();
        let all = join_all(state.mounts.iter().map(|mount| mount.settled(patience)));
        let _ = tokio::time::timeout(patience, all).await;
    }

    /// Ends all subscriptions, so that the connections they hold can end. The first step of a shutdown.
    pub fn shut_down(&self) {
        self.router.subscribers.close();
    }

    /// Ends everything: calls that are running may finish within the configured time, then servers are left and their
    /// processes stopped.
    pub async fn close(&self) {
        self.shut_down();
        let (mounts, leaving, drain) = {
            let mut building = self.router.building();
            building.closed = true;
            let leaving = std::mem::take(&mut building.leaving);
            (self.router.state.load().mounts.clone(), leaving, building.settings.drain)
        };
        tokio::join!(join_all(mounts.iter().map(|mount| mount.close(drain))), join_all(leaving));
    }
}

impl GatewayBuilder {
    /// What a configuration says: its servers, and everything else.
    pub fn settings(mut self, settings: Settings) -> Self {
        self.settings = settings;
        self
    }

    /// Mounts something of this program that answers calls, such as a server of the framework: its tools are called
    /// `<name>_<tool>`. It stays when the configuration changes.
    pub fn mount(self, name: impl Into<String>, server: impl Door) -> Self {
        self.connect(name, Target::from_door(server))
    }

    /// The same for something to connect to: a command, an address, a server written with another framework.
    pub fn connect(mut self, name: impl Into<String>, target: impl Into<Target>) -> Self {
        self.mounted.push(ServerSettings::new(name, Source::Target(target.into())));
        self
    }

    /// Makes clients in another way.
    pub fn dial(
        mut self,
        dial: impl Fn(&ServerSettings) -> Result<ClientBuilder, AppError> + Send + Sync + 'static,
    ) -> Self {
        self.dial = Arc::new(dial);
        self
    }

    /// Lets `check` look at every call, also at those that are made of another one: may they? What it refuses is answered with its
    /// error. It is the cheap kind of [`layer`](GatewayBuilder::layer), for what can be decided at once.
    pub fn check(mut self, check: impl Fn(&Call) -> Result<(), Error> + Send + Sync + 'static) -> Self {
        self.checks.push(Arc::new(check));
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

    /// How many calls may run and wait, how long they may take, and how large results may be. Default: what the settings say
    /// when it starts ([`CallSettings`](tidegate_config::CallSettings)).
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = Some(limits);
        self
    }

    /// Starts. It does not wait for the servers. Needs a tokio runtime.
    pub fn start(self) -> Result<Gateway, AppError> {
        let calls = &self.settings.calls;
        let limits = self.limits.unwrap_or(Limits {
            deadline: calls.call_timeout,
            concurrent: calls.max_calls,
            waiting: calls.max_calls,
            result_bytes: calls.max_result,
        });
        let mut own = ObjectWriter::new();
        own.str("name", "tidegate").str("version", env!("CARGO_PKG_VERSION"));
        let router = Arc::new(Router {
            state: ArcSwap::from_pointee(State::empty(&self.settings)),
            building: Mutex::new(Building::new(&self.settings)),
            reloading: Mutex::default(),
            earlier: Mutex::default(),
            subscribers: Subscribers::default(),
            link_owners: LinkOwners::default(),
            front: OnceLock::new(),
            sealer: ArcSwap::from_pointee(Sealer::new(Key::new(random()))),
            dial: self.dial,
            mounted: self.mounted,
            checks: self.checks.into(),
            views: Views(self.visibility),
            limit_store: Arc::default(),
            info: format!("{}:{}", Json::string(meta::SERVER_INFO), own.finish()),
            id: format!("{:032x}", u128::from_le_bytes(random())).into(),
        });
        router.apply(self.settings)?;
        if let Some(policy) = &router.state.load().policy {
            tell_policy(None, Some(policy));
        }
        let union = {
            let router = router.clone();
            tower::service_fn(move |call| {
                let router = router.clone();
                async move { Ok(router.answer(call).await) }
            })
        };
        let gates = |door: Bounded<_>| {
            let door = Checked::new(door, router.checks.clone()).boxed();
            self.gates.into_iter().fold(door, |door, gate| gate(door))
        };
        let by_priority: PriorityOf = {
            let router = Arc::downgrade(&router);
            Arc::new(move |call| {
                let limits = router.upgrade().and_then(|router| router.state.load().limits.clone());
                limits.map(|limits| limits.priority(call)).unwrap_or_default()
            })
        };
        let admission = AdmissionLayer::new(limits.concurrent, limits.waiting).by_priority(Some(by_priority));
        let front = Arc::new(front_with(union, &limits, &admission, gates));
        let _ = router.front.set(Arc::downgrade(&front));
        Ok(Gateway { router, front, admission })
    }
}

/// The usual way to make a client: whatever the settings say, without logins.
fn dial(settings: &ServerSettings) -> Result<ClientBuilder, AppError> {
    match &settings.source {
        Source::Target(target) => Ok(Client::builder(target.clone())?.settings(settings.options.clone())),
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
        let errors = self.router.state.load().errors;
        if call.context.errors != errors {
            call.context.errors = errors;
        }
        self.front.answer(call)
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.router.state.load().mounts.iter()).finish()
    }
}
