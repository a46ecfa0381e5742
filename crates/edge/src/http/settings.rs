//! Everything about the HTTP endpoint that can be set.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::endpoint_path::EndpointPath;
use super::handler::Handler;
use super::pages::Page;
use super::session_id::SessionSealer;
#[cfg(feature = "tls")]
use super::tls::TlsCertificate;
use super::trusted_proxies::TrustedProxies;
use crate::edge_settings::{EdgeSettings, Eras};

/// Settings of the endpoint. The defaults are those of a server on the user's own machine.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What stdio has too.
    pub edge: EdgeSettings,
    /// Path of the default endpoint, which has no name. Default `/mcp`.
    pub path: String,
    /// Endpoints beside it, with sessions of their own; calls that come in there carry the name. Default none.
    pub endpoints: Vec<EndpointPath>,
    /// Host names by which clients may reach the endpoint, besides `localhost`, `127.0.0.1` and `[::1]`. When serving a
    /// socket, those are accepted only on connections over the loopback interface.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call it, besides those of the same hosts. Each as `https://app.example.com`.
    pub origins: Vec<String>,
    /// Accept any `Host` and `Origin`. Only behind something that checks them. Default off.
    pub any_host: bool,
    /// Most legacy sessions at once, at all endpoints together. One authenticated principal may have a quarter of them, and 64
    /// in any case. Default 16384.
    pub max_sessions: usize,
    /// A legacy session that nobody uses for this long ends. Default 30 minutes.
    pub session_idle: Duration,
    /// What the ids of legacy sessions are sealed with, so that they are good after a restart and for other processes with the
    /// same keys. Default none: a session ends with the process.
    pub session_sealer: Option<SessionSealer>,
    /// Where it is remembered what sealed sessions have subscribed to and at which level they log, and which of them have ended.
    /// Default none: sessions go on without subscriptions after a restart, and one that a client has ended is known to have
    /// ended only in this process.
    pub session_dir: Option<PathBuf>,
    /// How long a sealed session can be opened anew, from its handshake on. One that is in use lives on in its process.
    /// Default 30 days.
    pub session_lifetime: Duration,
    /// Serve a bare POST (no session, no modern `_meta`, no version header) without a session. Default on.
    pub bare: bool,
    /// A comment goes out on quiet streams this often, so that nothing in between closes them. Default 15 s.
    pub keep_alive: Duration,
    /// What a client is told to wait before it comes back to a closed stream. Default 1 s.
    pub retry: Duration,
    /// How many streams of one session are kept for resumption. Default 16.
    pub kept_streams: usize,
    /// How many bytes of one stream are kept for resumption. Default 1 MiB.
    pub kept_bytes: usize,
    /// Pages for browsers, each at its own path. Default none.
    pub pages: Arc<[Page]>,
    /// What answers everything below a path, beside pages and endpoints. Default none.
    pub handlers: Arc<[Handler]>,
    /// Also serve the HTTP+SSE transport of 2024-11-05 at `/sse` and `/messages`. Default off.
    pub http_sse: bool,
    /// The certificate of a socket that is served over TLS. Default none: plain HTTP.
    #[cfg(feature = "tls")]
    pub tls: Option<Arc<TlsCertificate>>,
    /// The proxies that are believed when they say whom they forward a request for, when serving a socket: see
    /// [`ClientAddress`](super::ClientAddress). Default none.
    pub trusted_proxies: TrustedProxies,
    /// Refuse whoever is not one of these proxies, when serving a socket. Default off.
    pub only_proxies: bool,
    /// Most connections at once, when serving a socket. Default 8192.
    pub max_connections: usize,
    /// A connection on which nothing is asked for this long is closed, when serving a socket. At the limit of
    /// connections the one that has been idle for longest makes room for another before that. Default 75 s.
    pub connection_idle: Duration,
    /// How long a client may take over the headers of a request, and over its body. Default 30 s.
    pub request_within: Duration,
    /// A client that takes nothing of an answer for this long is sent away. Default 30 s.
    pub stalled: Duration,
    /// How long running requests may go on after a shutdown began, when serving a socket. Default 5 s.
    pub drain: Duration,
    /// Fires when a shutdown begins: streams that wait for nothing in particular end. [`serve`](super::serve) does that for the
    /// service that it is given with these settings.
    pub closing: CancellationToken,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            edge: EdgeSettings::default(),
            path: "/mcp".to_owned(),
            endpoints: Vec::new(),
            hosts: Vec::new(),
            origins: Vec::new(),
            any_host: false,
            max_sessions: 16 * 1024,
            session_idle: Duration::from_secs(30 * 60),
            session_sealer: None,
            session_dir: None,
            session_lifetime: Duration::from_secs(30 * 24 * 3600),
            bare: true,
            keep_alive: Duration::from_secs(15),
            retry: Duration::from_secs(1),
            kept_streams: 16,
            kept_bytes: 1024 * 1024,
            pages: Arc::default(),
            handlers: Arc::default(),
            http_sse: false,
            #[cfg(feature = "tls")]
            tls: None,
            trusted_proxies: TrustedProxies::default(),
            only_proxies: false,
            max_connections: 8192,
            connection_idle: Duration::from_secs(75),
            request_within: Duration::from_secs(30),
            stalled: Duration::from_secs(30),
            drain: Duration::from_secs(5),
            closing: CancellationToken::new(),
        }
    }
}

impl Settings {
    /// Also reachable under this host name.
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// Web pages of this origin may call.
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into());
        self
    }

    /// Legacy sessions outlive the process: their ids are sealed with `sealer`, and what they have subscribed to is remembered in
    /// the directory `dir`, which must be this endpoint's alone among those with other keys.
    ///
    /// ```
    /// # use tidegate_edge::http::Settings;
    /// # use tidegate_protocol::seal::{Key, Sealer};
    /// let key = Key::derive("a secret that stays the same, of the configuration for one");
    /// let settings = Settings::default().keep_sessions(Sealer::new(key), "/var/lib/my-server/sessions");
    /// ```
    pub fn keep_sessions(mut self, sealer: impl Into<SessionSealer>, dir: impl Into<PathBuf>) -> Self {
        self.session_sealer = Some(sealer.into());
        self.session_dir = Some(dir.into());
        self
    }

    /// Served at this path.
    pub fn path(mut self, path: impl Into<String>) -> Self {
        self.path = path.into();
        self
    }

    /// Also served at `path`, as the endpoint `name`.
    pub fn endpoint(mut self, name: impl Into<Arc<str>>, path: impl Into<String>) -> Self {
        self.endpoints.push(EndpointPath::new(name, path));
        self
    }

    /// Also serves these pages. One at the path of the endpoint is never seen.
    pub fn pages(mut self, pages: impl IntoIterator<Item = Page>) -> Self {
        self.pages = pages.into_iter().collect();
        self
    }

    /// Also serves what these answer. A page and an endpoint at a path of their own come first.
    pub fn handlers(mut self, handlers: impl IntoIterator<Item = Handler>) -> Self {
        self.handlers = handlers.into_iter().collect();
        self
    }

    /// Speaks these eras.
    pub fn eras(mut self, eras: Eras) -> Self {
        self.edge.eras = eras;
        self
    }
}
