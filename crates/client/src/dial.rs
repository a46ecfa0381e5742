//! [`Dialer`]: reaches a server, and finds out which era it speaks.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Json, Method, Object, Params, Revision, Symbol};
use tidegate_service::events::{self, Event, ServerConnected};
use tidegate_service::{Call, Context};
use tokio_util::sync::CancellationToken;

use crate::allowance::Allowance;
use crate::cache::ToolCache;
use crate::changes::Changes;
use crate::child::{Child, ChildSettings, OnStderr, StderrLog};
use crate::facts::ServerFacts;
use crate::handlers::Handlers;
use crate::http::HttpClient;
use crate::ids::Ids;
use crate::legacy::{Bridge, Lane, LaneKey, Line, OldSse, Session, Terms};
use crate::modern::{Link, Modern, Trouble};
use crate::options::{EraChoice, Options};
use crate::peer::{Desk, Peer};
use crate::require::require;
use crate::streams::{Pair, Streams};
use crate::target::Command;
use crate::upstream_error::{is_modern_error, upstream_error};

/// How a legacy server is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    /// A process.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// HTTP+SSE.
    Sse,
}

/// Where the server is.
pub(crate) enum To {
    Command(Command),
    Streams(Streams),
    Http { http: HttpClient, sse: bool },
}

/// Reaches one server.
pub(crate) struct Dialer {
    pub(crate) name: Arc<str>,
    pub(crate) to: To,
    pub(crate) options: Arc<Options>,
    pub(crate) ids: Arc<Ids>,
    pub(crate) changes: Arc<Changes>,
    pub(crate) handlers: Option<Arc<Handlers>>,
    /// Fires when the client is closed.
    pub(crate) over: CancellationToken,
    /// Who sees what the server's process writes to standard error.
    pub(crate) on_stderr: Option<OnStderr>,
    /// Where what it writes there is logged.
    pub(crate) stderr_log: StderrLog,
    /// Whether a legacy server has asked something that could have been for several clients.
    pub(crate) ambiguous: Arc<AtomicBool>,
    /// The connections of the old transport, which may all be told the same.
    pub(crate) bridge: Arc<Bridge>,
}

/// What a server turned out to be.
#[derive(Clone)]
pub(crate) enum Found {
    Modern(Arc<Modern>),
    /// A legacy one, with the session that was opened on the way.
    Legacy(Reach, Arc<Lane>),
}

impl Dialer {
    fn desk(&self, terms: &Terms) -> Arc<Desk> {
        Desk::new(
            self.name.clone(),
            self.changes.clone(),
            self.handlers.clone(),
            (terms.key.clone(), terms.capabilities(&self.options)),
            self.ambiguous.clone(),
            self.options.max_in_flight,
        )
    }

    fn peer(&self, desk: Arc<Desk>, line: Line) -> Arc<Peer> {
        let line = Arc::new(line);
        desk.attach(&line);
        Arc::new(Peer { desk, line, ids: self.ids.clone() })
    }

    /// Opens streams to the server.
    fn open(&self, streams: &Streams, terms: &Terms) -> Result<Arc<Peer>, Error> {
        let desk = self.desk(terms);
        let pair = Pair::open(&self.name, streams, self.options.limits, desk.clone())?;
        Ok(self.peer(desk, Line::Streams(pair)))
    }

    /// Starts the server's process.
    fn start(&self, command: &Command, terms: &Terms) -> Result<Arc<Peer>, Error> {
        let desk = self.desk(terms);
        let (limits, on_stderr) = (self.options.limits, self.on_stderr.clone());
        let settings = ChildSettings { limits, on_stderr, ..ChildSettings::default() };
        let child = Child::spawn(&self.name, command, &settings, &self.stderr_log, desk.clone())?;
        Ok(self.peer(desk, Line::Child(child)))
    }

    /// Opens a session with a legacy server.
    pub(crate) async fn lane(&self, reach: Reach, terms: &Terms) -> Result<Arc<Lane>, Error> {
        let peer = match (&self.to, reach) {
            (To::Command(command), _) => self.start(command, terms)?,
            (To::Streams(streams), _) => self.open(streams, terms)?,
            (To::Http { http, .. }, Reach::Sse) => {
                let desk = self.desk(terms);
                let within = Allowance::new(Instant::now(), self.options.init_timeout, false, None)
                    .granted_by("start_timeout");
                let http = credentials_for(http, terms);
                let opening = OldSse::open(&http, desk.clone(), &self.bridge, self.options.limits);
                let old = tokio::time::timeout_at(within.ends(None).into(), opening).await;
                let old = old.map_err(|_| within.over().unexecuted())??;
                self.peer(desk, Line::Sse(old))
            }
            (To::Http { http, .. }, _) => {
                let desk = self.desk(terms);
                let session = Session::new(credentials_for(http, terms), desk.clone(), self.options.limits);
                self.peer(desk, Line::Http(session))
            }
        };
        let opened = Lane::open(peer.clone(), terms, &self.options).await;
        match opened {
            Err(error) if matches!(peer.line.as_ref(), Line::Child(_)) => Err(reason(&peer, error).await),
            opened => opened,
        }
    }

    /// Finds out which era the server speaks. `known` is what it turned out to be the last time.
    pub(crate) async fn find(
        self: &Arc<Self>,
        cache: &Arc<ToolCache>,
        terms: &Terms,
        known: Option<Reach>,
    ) -> Result<Found, Error> {
        let usual = match &self.to {
            To::Command(_) | To::Streams(_) => Reach::Stdio,
            To::Http { sse: true, .. } => Reach::Sse,
            To::Http { .. } => Reach::Http,
        };
        let legacy_only = self.options.era == EraChoice::Legacy || usual == Reach::Sse;
        if let Some(reach) = known.or(legacy_only.then_some(usual)) {
            match self.lane(reach, terms).await {
                Ok(lane) => return Ok(Found::Legacy(reach, lane)),
                // It has said no, so perhaps it has become another.
                Err(error) if known.is_some() && !legacy_only && says_no(&error) => {}
                Err(error) if usual == Reach::Http && legacy_only && says_no(&error) => {
                    return self.old_sse_or(error, terms).await;
                }
                Err(error) => return Err(error),
            }
        }
        match &self.to {
            To::Command(command) => self.find_process(self.start(command, terms)?, cache, terms).await,
            To::Streams(streams) => self.find_process(self.open(streams, terms)?, cache, terms).await,
            To::Http { http, .. } => self.find_remote(http, cache, terms).await,
        }
    }

    fn modern(self: &Arc<Self>, link: Link, facts: ServerFacts, cache: &Arc<ToolCache>) -> Arc<Modern> {
        Arc::new(Modern { link, facts, dialer: self.clone(), cache: cache.clone() })
    }

    /// 2026-07-28 stdio, Backward Compatibility: a discovery or a modern error means modern; any other error, or
    /// silence, means legacy.
    async fn find_process(
        self: &Arc<Self>,
        peer: Arc<Peer>,
        cache: &Arc<ToolCache>,
        terms: &Terms,
    ) -> Result<Found, Error> {
        let probe = self.modern(Link::Pipe(peer.clone()), unknown("stdio"), cache);
        let allowance = Allowance::new(Instant::now(), self.options.init_timeout, false, None)
            .granted_by("start_timeout");
        let mut answer = std::pin::pin!(self.discover(&probe, terms, allowance));
        let patience = if self.options.era == EraChoice::Modern {
            self.options.init_timeout
        } else {
            self.options.probe_timeout
        };
        let discovered = match tokio::time::timeout(patience, answer.as_mut()).await {
            Ok(discovered) => discovered,
            Err(_) if self.options.era == EraChoice::Modern => return Err(allowance.over()),
            Err(_) => {
                // Silence may be that of a legacy server, or of one that is still starting: both are asked, and what it
                // says decides. One that speaks both eras stays with the handshake once it has shaken hands.
                let mut lane = std::pin::pin!(Lane::open(peer.clone(), terms, &self.options));
                tokio::select! {
                    lane = lane.as_mut() => match lane {
                        Ok(lane) => return Ok(Found::Legacy(Reach::Stdio, lane)),
                        Err(refused) => match answer.await {
                            Discovered::Legacy(_) => return Err(refused),
                            discovered => discovered,
                        },
                    },
                    discovered = answer.as_mut() => match discovered {
                        Discovered::Legacy(_) => return Ok(Found::Legacy(Reach::Stdio, lane.await?)),
                        Discovered::Modern(facts) => match tokio::time::timeout(patience, lane).await {
                            Ok(Ok(lane)) => return Ok(Found::Legacy(Reach::Stdio, lane)),
                            Ok(Err(_)) | Err(_) => Discovered::Modern(facts),
                        },
                        discovered => discovered,
                    },
                }
            }
        };
        match discovered {
            Discovered::Modern(facts) => {
                if terms.key.is_shared() {
                    // There are no sessions: it is for all users.
                    peer.desk.now_of(LaneKey::Everybody);
                }
                Ok(Found::Modern(self.modern(Link::Pipe(peer), *facts, cache)))
            }
            Discovered::Failed(error) => Err(error),
            Discovered::Legacy(error) if self.options.era == EraChoice::Modern => Err(error),
            Discovered::Gone(error) if self.options.era == EraChoice::Modern => Err(error),
            Discovered::Legacy(refusal) => match Lane::open(peer, terms, &self.options).await {
                Ok(lane) => Ok(Found::Legacy(Reach::Stdio, lane)),
                Err(error) => Err(clearer(refusal, error)),
            },
            // It ended before it had read anything: another one would end in the same way.
            Discovered::Gone(error) if error.is_unexecuted() => Err(reason(&peer, error).await),
            // Some legacy servers end at the first request that they do not know.
            Discovered::Gone(_) => Ok(Found::Legacy(Reach::Stdio, self.lane(Reach::Stdio, terms).await?)),
        }
    }

    /// 2026-07-28 streamable-http, Backward Compatibility: only a refusal without a modern error means legacy.
    async fn find_remote(
        self: &Arc<Self>,
        http: &HttpClient,
        cache: &Arc<ToolCache>,
        terms: &Terms,
    ) -> Result<Found, Error> {
        let probe = self.modern(Link::Http(http.clone()), unknown("http"), cache);
        let allowance = Allowance::new(Instant::now(), self.options.init_timeout, false, None)
            .granted_by("start_timeout");
        let refusal = match self.discover(&probe, terms, allowance).await {
            Discovered::Modern(facts) => {
                return Ok(Found::Modern(self.modern(Link::Http(http.clone()), *facts, cache)));
            }
            Discovered::Failed(error) | Discovered::Gone(error) => return Err(error),
            Discovered::Legacy(error) => error,
        };
        if self.options.era == EraChoice::Modern {
            return Err(refusal);
        }
        match self.lane(Reach::Http, terms).await {
            Ok(lane) => Ok(Found::Legacy(Reach::Http, lane)),
            Err(error) if says_no(&error) => self.old_sse_or(clearer(refusal, error), terms).await,
            Err(error) => Err(error),
        }
    }

    /// The oldest transport, for servers that know no other; else the error that led here.
    async fn old_sse_or(self: &Arc<Self>, error: Error, terms: &Terms) -> Result<Found, Error> {
        match self.lane(Reach::Sse, terms).await {
            Ok(lane) => Ok(Found::Legacy(Reach::Sse, lane)),
            Err(_) => Err(error),
        }
    }

    async fn discover(&self, probe: &Arc<Modern>, terms: &Terms, allowance: Allowance) -> Discovered {
        let mut context = Context::local();
        context.capabilities = terms.capabilities(&self.options);
        context.client_info = Some(terms.info(&self.options));
        let call = Call::new(Method::Discover, Params::empty(), context);
        let mut probe = probe.clone();
        // A server that refuses the version is asked once more: in the newest of those that it lists, even if it is the same.
        for again in [true, false] {
            let transport = if matches!(probe.link, Link::Http(_)) { "http" } else { "stdio" };
            match probe.exchange(&call, allowance).await {
                Ok(Ok(result)) => {
                    return match read_discovery(&result, transport, &self.name) {
                        Discovered::Modern(facts) => match require(&facts, &self.options.require) {
                            Ok(()) => Discovered::Modern(facts),
                            Err(error) => Discovered::Failed(error),
                        },
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
                Err(Trouble::WrongEra(error)) => return Discovered::Legacy(error),
                Err(Trouble::Error(error))
                    if transport == "stdio" && error.symbol() == Symbol::Unavailable =>
                {
                    return Discovered::Gone(error);
                }
                Err(Trouble::Error(error)) => return Discovered::Failed(error),
            }
        }
        Discovered::Failed(Error::internal())
    }
}

/// What `server/discover` led to.
enum Discovered {
    Modern(Box<ServerFacts>),
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
            let facts = ServerFacts::discovered(&object, revision, transport);
            let (name, version) = (facts.name().unwrap_or_default(), facts.version().unwrap_or_default());
            let connected = ServerConnected { server, revision, name: &name, version: &version };
            events::emit(&Event::ServerConnected(connected));
            Discovered::Modern(Box::new(facts))
        }
        None => Discovered::Legacy(unsupported(&versions)),
    }
}

/// The client for a session: with the credentials of whoever it is for, unless it is everybody's.
fn credentials_for(http: &HttpClient, terms: &Terms) -> HttpClient {
    match terms.key {
        LaneKey::Everybody => http.clone(),
        _ => http.for_caller(&terms.client.principal),
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
async fn reason(peer: &Peer, error: Error) -> Error {
    const MOMENT: Duration = Duration::from_millis(10);
    for _ in 0..50 {
        if error.symbol() != Symbol::Unavailable {
            break;
        }
        if let Some(why) = peer.desk.tickets.closed() {
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

/// Facts about a server before it has said anything.
fn unknown(transport: &'static str) -> ServerFacts {
    ServerFacts {
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
