//! [`ClientBuilder`]: what can be said about a connection before it is made.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate_protocol::seal::Sealer;
use tidegate_protocol::{ClientCapabilities, Error, Json, Level, Method, Object, Revision};
use tidegate_service::events::ServerPlace;
use tidegate_service::layers::{BreakerLayer, BreakerSettings, RetryLayer, RetryPolicy, ServerCallsLayer};
use tidegate_service::{Call, CallerId, Door, Notice, Principal};
use tokio_util::sync::CancellationToken;
use tower::Layer;

use super::{Client, ClientInner, OnClose, OnLog, Policed, Server};
use crate::app_error::AppError;
use crate::auth::Authorizer;
use crate::cache::ToolCache;
use crate::changes::{Audience, Changes, OnSessionLog};
use crate::dial::Dialer;
use crate::handlers::Handlers;
use crate::http::{HttpClient, HttpSettings};
use crate::ids::Ids;
use crate::legacy::own_sealer;
use crate::settings::ClientSettings;
use crate::target::Target;
use crate::transport::{ChannelSettings, InProcessDoor, OnStderr, StderrLog, Transport};
use crate::upstream::{Upstream, UpstreamDoor};

/// Builds a [`Client`].
#[must_use = "a builder does nothing until it connects"]
pub struct ClientBuilder {
    target: Target,
    settings: ClientSettings,
    handlers: Option<Handlers>,
    auth: Option<Arc<dyn Authorizer>>,
    log_level: Option<Level>,
    on_log: Option<OnLog>,
    on_session_log: Option<OnSessionLog>,
    on_change: Option<OnChange>,
    on_stderr: Option<OnStderr>,
    on_close: Option<OnClose>,
    sealer: Option<Sealer>,
}

/// Told of every change.
type OnChange = Arc<dyn Fn(&Notice) + Send + Sync>;

impl ClientBuilder {
    pub(super) fn new(target: Target) -> ClientBuilder {
        ClientBuilder {
            target,
            settings: ClientSettings::from_env(),
            handlers: None,
            auth: None,
            log_level: None,
            on_log: None,
            on_session_log: None,
            on_change: None,
            on_stderr: None,
            on_close: None,
            sealer: None,
        }
    }

    /// Other settings than the defaults.
    pub fn settings(mut self, settings: ClientSettings) -> Self {
        self.settings = settings;
        self
    }

    /// Changes some settings.
    pub fn configure(mut self, change: impl FnOnce(&mut ClientSettings)) -> Self {
        change(&mut self.settings);
        self
    }

    /// How long a call may take.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = timeout;
        self
    }

    /// Answers what the server asks. Without handlers the server is told that nobody can be asked; behind
    /// [`Client::door`] its questions are then the caller's.
    pub fn handlers(mut self, handlers: Handlers) -> Self {
        self.handlers = Some(handlers);
        self
    }

    /// Where the credentials of HTTP requests come from.
    pub fn authorizer(mut self, auth: Arc<dyn Authorizer>) -> Self {
        self.auth = Some(auth);
        self
    }

    /// Asks the server for log messages of this severity and above, and gives them to `handler`: the parameters of
    /// `notifications/message`.
    pub fn on_log(mut self, level: Level, handler: impl Fn(Json) + Send + Sync + 'static) -> Self {
        self.log_level = Some(level);
        self.on_log = Some(Arc::new(handler));
        self
    }

    /// Called with log messages that a legacy server sends outside of any call, and with who may hear them: the parameters of
    /// `notifications/message`. Returns whether somebody does; else they go where other log messages go.
    pub fn on_session_log(
        mut self,
        handler: impl Fn(&Audience, &Object) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.on_session_log = Some(Arc::new(handler));
        self
    }

    /// Called when the server tells that something has changed. A modern server tells only those who
    /// [subscribe](Client::subscribe).
    pub fn on_change(mut self, handler: impl Fn(&Notice) + Send + Sync + 'static) -> Self {
        self.on_change = Some(Arc::new(handler));
        self
    }

    /// Called with each line that the server's process writes to standard error. They go to the log too.
    pub fn on_stderr(mut self, handler: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.on_stderr = Some(Arc::new(handler));
        self
    }

    /// What else [`Client::close`] ends and waits for: whatever a service in this process is made of.
    pub fn on_close<F>(mut self, end: impl Fn() -> F + Send + Sync + 'static) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        self.on_close = Some(Arc::new(move || Box::pin(end())));
        self
    }

    /// What seals the names of tasks and of calls that wait for an answer, which callers of [`Client::door`] bring back. A
    /// service in this process finds it among the extensions of each call, and seals with it unless it has keys of its own.
    /// Default: a key of this client alone.
    pub fn sealer(mut self, sealer: Sealer) -> Self {
        self.sealer = Some(sealer);
        self
    }

    /// The client, without connecting yet: the first call does.
    pub fn lazy(self) -> Result<Client, AppError> {
        let profile = self.settings.profile;
        self.build()
            .map_err(|error| AppError::from_error(&error, &Method::Initialize, profile, Revision::INTERNAL))
    }

    /// Connects.
    pub async fn connect(self) -> Result<Client, AppError> {
        let client = self.lazy()?;
        match client.server().await {
            Ok(_) => Ok(client),
            Err(error) => {
                client.close().await;
                Err(error)
            }
        }
    }

    fn build(self) -> Result<Client, Error> {
        self.target.keep_secrets();
        let settings = Arc::new(self.settings);
        let name: Arc<str> = settings.name.clone().unwrap_or_else(|| self.target.name()).into();
        let cache = ToolCache::new(settings.cache_ttl);
        let breaker = settings.breaker.clone();
        let breaker = breaker.unwrap_or_else(|| BreakerSettings::consecutive(u32::MAX, Duration::ZERO));
        let breaker = BreakerLayer::new(name.to_string(), breaker);
        let circuit = breaker.circuit().clone();
        let changes = Arc::new(Changes::default());
        if let Some(on_log) = self.on_log.clone() {
            changes.log_to(Arc::new(move |params| on_log(params.to_json())));
        }
        if let Some(heard) = self.on_session_log {
            changes.session_logs_to(heard);
        }
        if let Some(on_change) = self.on_change {
            changes.watch(move |notice| on_change(notice));
        }
        let handlers = self.handlers.map(Arc::new);
        let capabilities = handlers.as_ref().map_or_else(ClientCapabilities::none, |h| h.capabilities());
        let retry = {
            let (cache, trusted) = (cache.clone(), settings.trust_annotations);
            // However often it is made again, a call ends when its time is over.
            let overall = settings.retry.overall.map_or(settings.timeout, |most| most.min(settings.timeout));
            RetryLayer::new(RetryPolicy { overall: Some(overall), ..settings.retry.clone() })
                .idempotent(move |call| trusted && is_idempotent(&cache, call))
        };
        let calls = ServerCallsLayer::new(name.clone(), place_of(&self.target));
        let transport = match self.target {
            Target::Local(door) => {
                let (bare, caller) = (door.clone(), CallerId::new());
                let sealer = Arc::new(ArcSwapOption::new(self.sealer.map(Arc::new)));
                let door = InProcessDoor {
                    inner: door,
                    settings: settings.clone(),
                    own: caller,
                    sealer: sealer.clone(),
                };
                let door: Policed<_> = retry.layer(breaker.layer(calls.layer(door)));
                return Ok(Client(Arc::new(ClientInner {
                    server: Server::Local { door, bare, sealer },
                    settings,
                    cache,
                    circuit,
                    handlers,
                    capabilities,
                    caller,
                    log_level: self.log_level,
                    on_log: self.on_log,
                    on_close: self.on_close,
                })));
            }
            Target::Command(command) => Transport::Stdio(command),
            Target::Streams(streams) => Transport::Streams(streams),
            Target::Url(remote) => {
                let http_settings = HttpSettings {
                    name: name.clone(),
                    connect_timeout: settings.connect_timeout,
                    max_body: settings.limits.max_bytes,
                    ..HttpSettings::default()
                };
                let http = HttpClient::new(&remote, self.auth, &http_settings)?;
                if remote.sse { Transport::HttpSse(http) } else { Transport::StreamableHttp(http) }
            }
        };
        let ids = Arc::new(Ids::new(settings.ids));
        let dialer = Dialer {
            channels: ChannelSettings {
                name: name.clone(),
                limits: settings.limits,
                on_stderr: self.on_stderr,
                stderr_log: StderrLog::new(name.clone()),
                processes: Arc::default(),
                broadcasts: Arc::default(),
            },
            name,
            transport,
            settings: settings.clone(),
            ids,
            changes,
            handlers: handlers.clone(),
            over: CancellationToken::new(),
            ambiguous: Arc::default(),
        };
        let caller = CallerId::new();
        let sealer = self.sealer.unwrap_or_else(own_sealer);
        let upstream = Upstream::new(Arc::new(dialer), cache.clone(), caller, sealer);
        let door = retry.layer(breaker.layer(calls.layer(UpstreamDoor(upstream.clone()))));
        assert_door(&door);
        Ok(Client(Arc::new(ClientInner {
            server: Server::Remote { upstream, door },
            settings,
            cache,
            circuit,
            handlers,
            capabilities,
            caller,
            log_level: self.log_level,
            on_log: self.on_log,
            on_close: self.on_close,
        })))
    }
}

fn assert_door<D: Door>(_: &D) {}

/// Where a server is, for whoever records calls to it.
fn place_of(target: &Target) -> ServerPlace {
    match target {
        Target::Local(_) => ServerPlace::Here,
        Target::Command(_) | Target::Streams(_) => ServerPlace::Pipe,
        Target::Url(remote) => ServerPlace::Http {
            host: remote.url.host_str().unwrap_or_default().into(),
            port: remote.url.port_or_known_default().unwrap_or_default(),
        },
    }
}

/// Whether a call may be made twice, as far as its tool says.
fn is_idempotent(cache: &ToolCache, call: &Call) -> bool {
    if call.method != Method::ToolsCall {
        return false;
    }
    let principal: &Principal = &call.context.principal;
    let Some(name) = call.params.str("name") else { return false };
    cache
        .stale(principal)
        .and_then(|table| table.get(&name).map(|tool| tool.is_idempotent()))
        .unwrap_or(false)
}
