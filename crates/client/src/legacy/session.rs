//! [`UpstreamSession`]: one session with a legacy server, and whose it is.

use std::collections::{BTreeSet, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};
use std::time::{Duration, Instant};

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Level, Method, Symbol, write};
use tidegate_service::{CallerId, OpenSession};

use super::handshake::{hello, welcome};
use super::owner::{ClientIdentity, SessionOwner, SessionSpec};
use super::pool::SessionPool;
use super::turns::Turns;
use crate::connection::{CancelOnDrop, Connection};
use crate::require::require;
use crate::server_info::ServerInfo;
use crate::settings::{ClientSettings, SessionSettings};
use crate::ticket::{Event, Sink};
use crate::time_budget::TimeBudget;
use crate::upstream_error::upstream_error;

/// One session.
pub(crate) struct UpstreamSession {
    pub(crate) connection: Arc<Connection>,
    pub(crate) server_info: ServerInfo,
    /// Tells how long it was open.
    _open: OpenSession,
    /// Whether tools can be called as tasks.
    pub(crate) tasks: bool,
    /// Where it would not be clear who is asked, clients go one after the other.
    pub(super) turns: Arc<Turns>,
    /// All sessions with the server, this one among them.
    pub(super) sessions: OnceLock<Weak<SessionPool>>,
    /// Whether its tools were listed in it.
    listed: AtomicBool,
    state: Mutex<State>,
}

struct State {
    used: Instant,
    /// When somebody called last. Before that there is nothing that the server could remember of anybody.
    called: Option<Instant>,
    /// The connections that calls came over, as far as they are still open.
    connections: BTreeSet<CallerId>,
    level: Option<Level>,
    subscribed: HashSet<String>,
    /// Whose roots the server was told.
    roots: Option<ClientIdentity>,
}

/// Most connections that are remembered of one session.
const MAX_CONNECTIONS: usize = 4096;

impl UpstreamSession {
    /// Shakes hands over a connection: `initialize`, a look at the answer, `notifications/initialized`, and only then
    /// anything else.
    pub(crate) async fn open(
        connection: Arc<Connection>,
        spec: &SessionSpec,
        settings: &ClientSettings,
    ) -> Result<Arc<UpstreamSession>, Error> {
        let within =
            TimeBudget::new(Instant::now(), settings.init_timeout, false, None).granted_by("start_timeout");
        let server_info = shake_hands(&connection, spec, settings, &within).await?;
        require(&server_info, &settings.require)?;
        connection.channel.established(server_info.revision);
        let told = connection.channel.tell(write::notification("notifications/initialized", None));
        tokio::time::timeout_at(within.ends(None).into(), told)
            .await
            .map_err(|_| within.over().unexecuted())??;
        connection.channel.listen().await;
        let state = State {
            used: Instant::now(),
            called: None,
            connections: BTreeSet::new(),
            level: None,
            subscribed: HashSet::new(),
            roots: None,
        };
        let tasks = server_info.offers_tasks();
        let (turns, sessions, listed) = (Arc::default(), OnceLock::new(), AtomicBool::new(false));
        let _open = OpenSession::with_server(connection.router.name.clone());
        Ok(Arc::new(UpstreamSession {
            connection,
            _open,
            server_info,
            tasks,
            turns,
            sessions,
            listed,
            state: Mutex::new(state),
        }))
    }

    /// The tools were listed.
    pub(crate) fn has_listed(&self) {
        self.listed.store(true, Ordering::Relaxed);
    }

    /// Lists the tools, unless that was done before, for servers that want it so before any call.
    pub(crate) async fn list_first(&self, within: &TimeBudget) -> Result<(), Error> {
        if !self.listed.load(Ordering::Relaxed) {
            let listed = self.ask(Method::ToolsList, &Json::empty_object(), within).await;
            listed.map_err(Error::unexecuted)?;
            self.has_listed();
        }
        Ok(())
    }

    /// Whose it is.
    pub(crate) fn owner(&self) -> SessionOwner {
        self.connection.router.owner()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Notes that the session is in use.
    pub(crate) fn touch(&self) {
        self.state().used = Instant::now();
    }

    /// Notes that somebody calls.
    pub(crate) fn called_by(&self, client: &ClientIdentity) {
        let now = Instant::now();
        let mut state = self.state();
        (state.used, state.called) = (now, Some(now));
        if let Some(connection) = client.connection()
            && state.connections.len() < MAX_CONNECTIONS
        {
            state.connections.insert(connection);
        }
    }

    /// Whether the server may remember something of somebody who may come back: a client that is still connected, or left
    /// or called not longer ago than sessions are kept.
    pub(crate) fn keeps_state(&self, settings: &SessionSettings) -> bool {
        let mut state = self.state();
        let Some(called) = state.called else { return false };
        state.connections.retain(|connection| connection.is_connected());
        if settings.while_connected && !state.connections.is_empty() {
            state.called = Some(Instant::now());
            return true;
        }
        called.elapsed() < settings.idle
    }

    /// The server was told the roots of this client: from now on the session is that client's alone, unless it was made to
    /// be everybody's.
    pub(crate) fn told_roots_of(self: &Arc<Self>, client: &ClientIdentity) {
        self.state().roots = Some(client.clone());
        if let Some(sessions) = self.sessions.get().and_then(Weak::upgrade) {
            sessions.bind(self, client);
        }
    }

    /// Whether this client's roots are what the server works with.
    pub(super) fn has_roots_of(&self, client: &ClientIdentity) -> bool {
        matches!(self.owner(), SessionOwner::Own { client: own, .. } if own == *client)
            || self.state().roots.as_ref() == Some(client)
    }

    /// Whether a client is connected that has called.
    pub(super) fn has_connected_clients(&self) -> bool {
        self.state().connections.iter().any(|connection| connection.is_connected())
    }

    /// How long it has not been in use.
    pub(crate) fn idle(&self, now: Instant) -> Duration {
        if self.connection.router.tickets.len() > 0 {
            return Duration::ZERO;
        }
        now.saturating_duration_since(self.state().used)
    }

    /// Makes the server say at least what a caller wants to hear. Which caller hears what is decided when it comes.
    pub(crate) async fn want_logs(&self, level: Option<Level>, within: &TimeBudget) {
        let Some(level) = level else { return };
        if !self.server_info.has_capability("logging") {
            return;
        }
        {
            let mut state = self.state();
            if state.level.is_some_and(|now| now <= level) {
                return;
            }
            state.level = Some(level);
        }
        self.connection.channel.hears_logs();
        let mut params = ObjectWriter::new();
        params.str("level", level.as_str());
        if let Err(error) = self.ask(Method::SetLevel, &params.finish(), within).await {
            tracing::debug!(server = %self.connection.router.name, %error, "the server rejected the log level");
        }
    }

    /// Subscribes to exactly these resources.
    pub(crate) async fn subscribe(&self, wanted: HashSet<String>, within: &TimeBudget) -> Result<(), Error> {
        let (more, less): (Vec<_>, Vec<_>) = {
            let state = self.state();
            let more = wanted.difference(&state.subscribed).cloned().collect();
            (more, state.subscribed.difference(&wanted).cloned().collect())
        };
        for (uris, method) in [(more, Method::ResourcesSubscribe), (less, Method::ResourcesUnsubscribe)] {
            for uri in uris {
                let mut params = ObjectWriter::new();
                params.str("uri", &uri);
                self.ask(method.clone(), &params.finish(), within).await?;
                let mut state = self.state();
                match method {
                    Method::ResourcesSubscribe => _ = state.subscribed.insert(uri),
                    _ => _ = state.subscribed.remove(&uri),
                }
            }
        }
        Ok(())
    }

    /// One request of our own.
    pub(crate) async fn ask(
        &self,
        method: Method,
        params: &Json,
        within: &TimeBudget,
    ) -> Result<Json, Error> {
        ask(&self.connection, method, params, within).await
    }
}

/// One request of our own on a connection, and its result.
pub(crate) async fn ask(
    connection: &Connection,
    method: Method,
    params: &Json,
    within: &TimeBudget,
) -> Result<Json, Error> {
    let write = |out: &mut Vec<u8>, _: &_| out.extend_from_slice(params.as_str().as_bytes());
    let ticket = connection.send(method.clone(), Sink::default(), params.len(), write)?;
    let waiting = CancelOnDrop::new(connection, ticket);
    loop {
        match within.next(&waiting.ticket).await? {
            Event::Answer(Ok(result)) => return Ok(result),
            Event::Answer(Err(error)) => return Err(upstream_error(&method, None, &error)),
            Event::Lost(error) => return Err(error),
            Event::Question(question) => {
                let what = "This request may not ask anything";
                let refusal = Err(Error::new(Symbol::InvalidRequest, what));
                connection.router.answer(&question.id, &refusal);
            }
            Event::Notified(_) => {}
        }
    }
}

async fn shake_hands(
    connection: &Connection,
    spec: &SessionSpec,
    settings: &ClientSettings,
    within: &TimeBudget,
) -> Result<ServerInfo, Error> {
    let params = hello(settings.offer, &spec.capabilities(settings), &spec.info(settings));
    let result = ask(connection, Method::Initialize, &params, within).await?;
    welcome(&connection.router.name, settings.offer, &result, connection.transport)
}
