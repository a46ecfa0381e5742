//! [`Dialer`]: reaches a server, and finds out which era it speaks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Json, Method, Object, Params, Revision, Symbol};
use tidegate_service::events::{self, Event, ServerConnected};
use tidegate_service::{Call, Context};
use tokio_util::sync::CancellationToken;

use crate::cache::ToolCache;
use crate::changes::Changes;
use crate::connection::{Connection, MessageRouter};
use crate::handlers::Handlers;
use crate::http::HttpClient;
use crate::ids::Ids;
use crate::legacy::{SessionOwner, SessionSpec, UpstreamSession};
use crate::modern::{ExchangeError, Modern, Via};
use crate::require::require;
use crate::server_info::ServerInfo;
use crate::settings::{ClientSettings, EraChoice};
use crate::time_budget::TimeBudget;
use crate::transport::{ChannelSettings, Transport};
use crate::upstream_error::{is_modern_error, upstream_error};

/// Reaches one server.
pub(crate) struct Dialer {
    pub(crate) name: Arc<str>,
    pub(crate) transport: Transport,
    pub(crate) settings: Arc<ClientSettings>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) handlers: Option<Arc<Handlers>>,
    /// Fires when the client is closed.
    pub(crate) over: CancellationToken,
    pub(crate) channels: ChannelSettings,
    /// Whether a legacy server has asked something that could have been for several clients.
    pub(crate) ambiguous: Arc<AtomicBool>,
}

/// What a server turned out to be.
#[derive(Clone)]
pub(crate) enum Dialed {
    Modern(Arc<Modern>),
    /// A legacy one, with the session that was opened on the way.
    Legacy(Transport, Arc<UpstreamSession>),
}

impl Dialer {
    /// Opens a connection for a session.
    async fn connect(&self, transport: &Transport, spec: &SessionSpec) -> Result<Arc<Connection>, Error> {
        let router = MessageRouter::new(
            self.name.clone(),
            self.changes.clone(),
            self.handlers.clone(),
            (spec.owner.clone(), spec.capabilities(&self.settings)),
            self.ambiguous.clone(),
            self.settings.max_in_flight,
        );
        // With the credentials of whoever the session is for, unless it is everybody's.
        let transport = match spec.owner {
            SessionOwner::Everybody => transport.clone(),
            _ => transport.for_caller(&spec.client.principal),
        };
        let within = TimeBudget::new(Instant::now(), self.settings.init_timeout, false, None)
            .granted_by("start_timeout");
        let opening = transport.open(&self.channels, router.clone());
        let channel = tokio::time::timeout_at(within.ends(None).into(), opening).await;
        let channel = channel.map_err(|_| within.over().unexecuted())??;
        router.attach(&channel);
        Ok(Arc::new(Connection { router, channel, transport: transport.name(), ids: self.ids.clone() }))
    }

    /// Opens a session with a legacy server.
    pub(crate) async fn open_session(
        &self,
        transport: &Transport,
        spec: &SessionSpec,
    ) -> Result<Arc<UpstreamSession>, Error> {
        let connection = self.connect(transport, spec).await?;
        match UpstreamSession::open(connection.clone(), spec, &self.settings).await {
            Err(error) if transport.is_process() => Err(reason(&connection, error).await),
            opened => opened,
        }
    }

    /// Finds out which era the server speaks. `known` is what it turned out to be the last time.
    pub(crate) async fn find(
        self: &Arc<Self>,
        cache: &Arc<ToolCache>,
        spec: &SessionSpec,
        known: Option<Transport>,
    ) -> Result<Dialed, Error> {
        let usual = &self.transport;
        let legacy_only = self.settings.era == EraChoice::Legacy || matches!(usual, Transport::HttpSse(_));
        let was_known = known.is_some();
        if let Some(transport) = known.or_else(|| legacy_only.then(|| usual.clone())) {
            match self.open_session(&transport, spec).await {
                Ok(session) => return Ok(Dialed::Legacy(transport, session)),
                // It has said no, so perhaps it has become another.
                Err(error) if was_known && !legacy_only && says_no(&error) => {}
                Err(error) if legacy_only && says_no(&error) => return self.fallback_or(error, spec).await,
                Err(error) => return Err(error),
            }
        }
        match usual {
            Transport::StreamableHttp(http) | Transport::HttpSse(http) => {
                self.find_remote(http, cache, spec).await
            }
            Transport::Stdio(_) | Transport::Streams(_) => {
                self.find_process(self.connect(usual, spec).await?, cache, spec).await
            }
        }
    }

    fn modern(self: &Arc<Self>, via: Via, server_info: ServerInfo, cache: &Arc<ToolCache>) -> Arc<Modern> {
        Arc::new(Modern { via, server_info, dialer: self.clone(), cache: cache.clone() })
    }

    /// 2026-07-28 stdio, Backward Compatibility: a discovery or a modern error means modern; any other error, or
    /// silence, means legacy.
    async fn find_process(
        self: &Arc<Self>,
        connection: Arc<Connection>,
        cache: &Arc<ToolCache>,
        spec: &SessionSpec,
    ) -> Result<Dialed, Error> {
        let probe = self.modern(Via::Connection(connection.clone()), unknown(self.transport.name()), cache);
        let budget = TimeBudget::new(Instant::now(), self.settings.init_timeout, false, None)
            .granted_by("start_timeout");
        let mut answer = std::pin::pin!(self.discover(&probe, spec, budget));
        let patience = if self.settings.era == EraChoice::Modern {
            self.settings.init_timeout
        } else {
            self.settings.probe_timeout
        };
        let discovered = match tokio::time::timeout(patience, answer.as_mut()).await {
            Ok(discovered) => discovered,
            Err(_) if self.settings.era == EraChoice::Modern => return Err(budget.over()),
            Err(_) => {
                // Silence may be that of a legacy server, or of one that is still starting: both are asked, and what it
                // says decides. One that speaks both eras stays with the handshake once it has shaken hands.
                let mut session =
                    std::pin::pin!(UpstreamSession::open(connection.clone(), spec, &self.settings));
                tokio::select! {
                    session = session.as_mut() => match session {
                        Ok(session) => return Ok(self.legacy(session)),
                        Err(refused) => match answer.await {
                            Discovered::Legacy(_) => return Err(refused),
                            discovered => discovered,
                        },
                    },
                    discovered = answer.as_mut() => match discovered {
                        Discovered::Legacy(_) => return Ok(self.legacy(session.await?)),
                        Discovered::Modern(server_info) => match tokio::time::timeout(patience, session).await {
                            Ok(Ok(session)) => return Ok(self.legacy(session)),
                            Ok(Err(_)) | Err(_) => Discovered::Modern(server_info),
                        },
                        discovered => discovered,
                    },
                }
            }
        };
        match discovered {
            Discovered::Modern(server_info) => {
                if spec.owner.is_shared() {
                    // There are no sessions: it is for all users.
                    connection.router.now_of(SessionOwner::Everybody);
                }
                Ok(Dialed::Modern(self.modern(Via::Connection(connection), *server_info, cache)))
            }
            Discovered::Failed(error) => Err(error),
            Discovered::Legacy(error) if self.settings.era == EraChoice::Modern => Err(error),
            Discovered::Gone(error) if self.settings.era == EraChoice::Modern => Err(error),
            Discovered::Legacy(refusal) => {
                match UpstreamSession::open(connection, spec, &self.settings).await {
                    Ok(session) => Ok(self.legacy(session)),
                    Err(error) => Err(clearer(refusal, error)),
                }
            }
            // It ended before it had read anything: another one would end in the same way.
            Discovered::Gone(error) if error.is_unexecuted() => Err(reason(&connection, error).await),
            // Some legacy servers end at the first request that they do not know.
            Discovered::Gone(_) => Ok(self.legacy(self.open_session(&self.transport, spec).await?)),
        }
    }

    /// 2026-07-28 streamable-http, Backward Compatibility: only a refusal without a modern error means legacy.
    async fn find_remote(
        self: &Arc<Self>,
        http: &HttpClient,
        cache: &Arc<ToolCache>,
        spec: &SessionSpec,
    ) -> Result<Dialed, Error> {
        let probe = self.modern(Via::Http(http.clone()), unknown(self.transport.name()), cache);
        let budget = TimeBudget::new(Instant::now(), self.settings.init_timeout, false, None)
            .granted_by("start_timeout");
        let refusal = match self.discover(&probe, spec, budget).await {
            Discovered::Modern(server_info) => {
                return Ok(Dialed::Modern(self.modern(Via::Http(http.clone()), *server_info, cache)));
            }
            Discovered::Failed(error) | Discovered::Gone(error) => return Err(error),
            Discovered::Legacy(error) => error,
        };
        if self.settings.era == EraChoice::Modern {
            return Err(refusal);
        }
        match self.open_session(&self.transport, spec).await {
            Ok(session) => Ok(self.legacy(session)),
            Err(error) if says_no(&error) => self.fallback_or(clearer(refusal, error), spec).await,
            Err(error) => Err(error),
        }
    }

    /// A legacy server that is reached in the usual way.
    fn legacy(&self, session: Arc<UpstreamSession>) -> Dialed {
        Dialed::Legacy(self.transport.clone(), session)
    }

    /// The older transport, for servers that know no other; else the error that led here.
    async fn fallback_or(self: &Arc<Self>, error: Error, spec: &SessionSpec) -> Result<Dialed, Error> {
        let Some(transport) = self.transport.fallback() else { return Err(error) };
        match self.open_session(&transport, spec).await {
            Ok(session) => Ok(Dialed::Legacy(transport, session)),
            Err(_) => Err(error),
        }
    }

    async fn discover(&self, probe: &Arc<Modern>, spec: &SessionSpec, budget: TimeBudget) -> Discovered {
        let mut context = Context::local();
        context.capabilities = spec.capabilities(&self.settings);
        context.client_info = Some(spec.info(&self.settings));
        let call = Call::new(Method::Discover, Params::empty(), context);
        let mut probe = probe.clone();
        // A server that refuses the version is asked once more: in the newest of those that it lists, even if it is the same.
        for again in [true, false] {
            let transport = self.transport.name();
            match probe.exchange(&call, budget).await {
                Ok(Ok(result)) => {
                    return match read_discovery(&result, transport, &self.name) {
                        Discovered::Modern(server_info) => {
                            match require(&server_info, &self.settings.require) {
                                Ok(()) => Discovered::Modern(server_info),
                                Err(error) => Discovered::Failed(error),
                            }
                        }
                        discovered => discovered,
                    };
                }
                Ok(Err(error)) if is_modern_error(&error) => match retry_version(&error) {
                    Some(revision) if again && revision.is_modern() => probe = probe.speaking(revision),
                    Some(revision) if !revision.is_modern() => {
                        return Discovered::Legacy(upstream_error(&Method::Discover, None, &error));
                    }
                    _ => return Discovered::Failed(upstream_error(&Method::Discover, None, &error)),
                },
                Ok(Err(error)) => return Discovered::Legacy(upstream_error(&Method::Discover, None, &error)),
                Err(ExchangeError::WrongEra(error)) => return Discovered::Legacy(error),
                Err(ExchangeError::Error(error))
                    if self.transport.is_pipe() && error.symbol() == Symbol::Unavailable =>
                {
                    return Discovered::Gone(error);
                }
                Err(ExchangeError::Error(error)) => return Discovered::Failed(error),
            }
        }
        Discovered::Failed(Error::internal())
    }
}

/// What `server/discover` led to.
enum Discovered {
    Modern(Box<ServerInfo>),
    /// The server does not know the question.
    Legacy(Error),
    /// The server's process has ended.
    Gone(Error),
    /// Nothing can be said.
    Failed(Error),
}

fn read_discovery(result: &Json, transport: &'static str, server: &str) -> Discovered {
    let what = format!("{server} gave an invalid answer to server/discover");
    let strange = || Discovered::Legacy(Error::new(Symbol::Unavailable, what.clone()));
    let Some(object) = Object::of(result) else { return strange() };
    let Some(Ok(versions)) = object.json("supportedVersions").map(|v| v.to::<Vec<String>>()) else {
        return strange();
    };
    let modern = versions.iter().filter_map(|v| v.parse::<Revision>().ok()).filter(|r| r.is_modern()).max();
    match modern {
        Some(revision) => {
            let server_info = ServerInfo::discovered(&object, revision, transport);
            let (name, version) =
                (server_info.name().unwrap_or_default(), server_info.version().unwrap_or_default());
            let connected = ServerConnected { server, revision, name: &name, version: &version };
            events::emit(&Event::ServerConnected(connected));
            Discovered::Modern(Box::new(server_info))
        }
        None => Discovered::Legacy(unsupported(&versions)),
    }
}

/// The newest revision that both speak, of those in an unsupported-version error.
fn retry_version(error: &Json) -> Option<Revision> {
    let supported = Object::of(error)?.object("data")?.json("supported")?.to::<Vec<String>>().ok()?;
    supported.iter().filter_map(|version| version.parse().ok()).max()
}

fn unsupported(versions: &[String]) -> Error {
    let what = format!(
        "The server supports only protocol version {}, which this client does not",
        versions.join(", ")
    );
    Error::new(Symbol::UnsupportedVersion, what)
}

/// Why a process failed at the handshake. That it reads no more is noticed at once; how it ended, and its last words, a
/// moment later.
async fn reason(connection: &Connection, error: Error) -> Error {
    const MOMENT: Duration = Duration::from_millis(10);
    for _ in 0..50 {
        if error.symbol() != Symbol::Unavailable {
            break;
        }
        if let Some(why) = connection.router.tickets.closed() {
            return why.unexecuted();
        }
        tokio::time::sleep(MOMENT).await;
    }
    error
}

/// Which of two refusals to tell, that of the discovery or that of the handshake after it: a server that has said which
/// versions it speaks has said why.
fn clearer(discovery: Error, handshake: Error) -> Error {
    match discovery.symbol() {
        Symbol::UnsupportedVersion if says_no(&handshake) => discovery,
        _ => handshake,
    }
}

/// What is known of a server before it has said anything.
fn unknown(transport: &'static str) -> ServerInfo {
    ServerInfo {
        revision: Revision::LATEST_MODERN,
        supported: Vec::new(),
        capabilities: Json::empty_object(),
        info: None,
        instructions: None,
        transport,
    }
}

/// Whether the server is there and refused, as opposed to not being there.
fn says_no(error: &Error) -> bool {
    !matches!(
        error.symbol(),
        Symbol::Unavailable
            | Symbol::Overloaded
            | Symbol::Timeout
            | Symbol::RateLimited
            | Symbol::Unauthorized
            | Symbol::TooLarge
            | Symbol::ServerCapabilityMissing
    )
}
