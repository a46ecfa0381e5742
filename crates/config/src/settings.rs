//! What a configuration means: [`Settings`], with every default filled in, every secret resolved and every pattern
//! compiled. Nothing in here knows how it was written.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tidegate_builtin::BuiltinSettings;
use tidegate_client::{ClientSettings, Instances, Target};
use tidegate_protocol::Profile;
use tidegate_protocol::seal::Key;

use crate::admin_settings::AdminSettings;
use crate::audit_settings::AuditSettings;
use crate::auth_settings::{AuthSettings, TlsSettings};
use crate::disabled::DisabledServer;
use crate::endpoint_settings::EndpointSettings;
use crate::limit_settings::LimitSettings;
use crate::log_settings::LogSettings;
use crate::telemetry_settings::TelemetrySettings;
use tidegate_policy::{Patterns, Policy};

/// What a configuration means.
///
/// The default is what an empty configuration means, except that nothing is kept on disk.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The servers that are used, in the order of the file.
    pub servers: Vec<ServerSettings>,
    /// How tools are offered.
    pub tools: ToolSettings,
    /// Where clients come in.
    pub listen: ListenSettings,
    /// Who may call; `None` for everybody on this machine, as one user.
    pub auth: Option<AuthSettings>,
    /// Who may do what; `None` if everybody may do everything.
    pub policy: Option<Arc<Policy>>,
    /// Where a record of every call is kept; `None` for nowhere.
    pub audit: Option<AuditSettings>,
    /// What is measured.
    pub telemetry: TelemetrySettings,
    /// Which log lines there are, how they look and where they go.
    pub log: LogSettings,
    /// Where operators come in.
    pub admin: AdminSettings,
    /// Endpoints with a selection of what is offered, beside the one that has everything.
    pub endpoints: Vec<EndpointSettings>,
    /// How much callers may do; `None` for whatever the process can.
    pub limits: Option<LimitSettings>,
    /// How much calls may take, whichever server they are for.
    pub calls: CallSettings,
    /// Whose numbers clients look for in the gateway's own errors. Default: those of the specification.
    pub errors: Profile,
    /// How long running calls may take when the gateway stops. Default 10 s.
    pub drain: Duration,
    /// Where the last known lists of servers are kept; `None` if they are not. Default: `tidegate` in the directory
    /// for such things of the user.
    pub state_dir: Option<PathBuf>,
    /// What seals whatever clients are given to bring back: the first seals, all of them open. Default none: those in
    /// `sealing.key` in `state_dir`, or random ones for this process.
    pub sealing_keys: Vec<Key>,
    /// The servers that are not used, and why, in the order of the file.
    pub disabled: Vec<DisabledServer>,
    /// What is disabled, was ignored or looks wrong, one sentence each. They hold no secrets.
    pub notes: Vec<String>,
}

/// Where clients come in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListenSettings {
    /// Host and port. Default `127.0.0.1:8765`.
    pub address: String,
    /// Whether the configuration says that, and it is not only what is usual.
    pub address_is_said: bool,
    /// The path of the endpoint. Default `/mcp`.
    pub path: String,
    /// Host names under which it may be reached, besides those of this machine.
    pub hosts: Vec<String>,
    /// Origins of web pages that may call.
    pub origins: Vec<String>,
    /// Whether the HTTP+SSE transport of 2024-11-05 is served too. Default no.
    pub http_sse: bool,
    /// How many bytes one message may have, over HTTP and stdio. Default 4 MiB.
    pub max_message: usize,
    /// How many bytes of large messages, unread and kept answers and lists may be held all together; `None` for what
    /// suits the machine.
    pub max_buffered: Option<usize>,
    /// How many connections of clients there may be at once. Default 8192.
    pub max_connections: usize,
    /// How long a connection may stay open without a request. Default 75 s.
    pub connection_idle: Duration,
    /// How long a client may take over the headers of a request, and over its body. Default 30 s.
    pub request_within: Duration,
    /// Where others find the gateway, as `https://mcp.example.com`, with no slash at its end: what metadata and links say.
    pub public_url: Option<String>,
    /// The proxies whose `Forwarded` and `X-Forwarded-*` headers count: addresses and networks such as `10.0.0.0/8`.
    pub trusted_proxies: Vec<String>,
    /// The certificate to serve HTTPS with.
    pub tls: Option<TlsSettings>,
    /// Whether other machines may be served without authentication, or without encryption.
    pub insecure: bool,
}

/// How much calls may take, whichever server they are for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallSettings {
    /// How many run at once; as many again may wait for their turn. Default 8192.
    pub max_calls: usize,
    /// How many bytes a result may have. Default 64 MiB.
    pub max_result: usize,
    /// How long a call may take in all. Each server has timeouts of its own; this is for what hangs in between. Default
    /// 24 hours.
    pub call_timeout: Duration,
}

/// How tools are offered.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// All of them, or a way to search for them.
    pub mode: ToolMode,
    /// Tools that are offered as they are even when the others are searched for: patterns for exposed names.
    pub favourites: Patterns,
    /// Whether a tool that has changed is still offered.
    pub pin: PinMode,
    /// Where the digests of pinned tools are kept. Default `tidegate.lock` beside the configuration.
    pub lock_file: PathBuf,
    /// Which names are exposed.
    pub names: NameStyle,
    /// How long portable names may be: 24 to 64. Default 64, so that nothing is renamed that has a name already; new
    /// configurations say [`ROOMY_NAMES`].
    pub name_length: usize,
    /// How the schemas of arguments are listed.
    pub schemas: SchemaStyle,
    /// Lists that are larger than this are sent in pages. Default 4 MiB.
    pub page_bytes: usize,
    /// Whether `tools/call_batch` is offered. Default yes.
    pub batch: bool,
    /// Whether the answer to `initialize` holds the definitions of all tools. Default no.
    pub in_capabilities: bool,
}

/// The longest names that all models' interfaces take.
pub const LONGEST_NAMES: usize = 64;
/// Names that leave room for what clients put before them, such as `mcp__tidegate__`.
pub const ROOMY_NAMES: usize = 48;
/// Shorter names would say too little beside the mark that tells them apart.
pub(crate) const SHORTEST_NAMES: usize = 24;

/// Which tools a client sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ToolMode {
    /// All of them.
    #[default]
    All,
    /// Favourites, and tools to find and call the others.
    Search,
}

/// Whether a tool that has changed is still offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PinMode {
    /// Whatever the server says.
    #[default]
    Off,
    /// As it was when it was first seen.
    FirstUse,
    /// Only as the lock file says.
    Locked,
}

/// How the schemas of arguments are listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SchemaStyle {
    /// As servers write them.
    #[default]
    Exact,
    /// In words that every client understands, and never wider.
    Portable,
}

/// Which names are exposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NameStyle {
    /// Names that every model takes: letters, digits, `_` and `-`, and not too many of them.
    #[default]
    Portable,
    /// The server's names as they are, behind the prefix.
    Exact,
}

/// What a server is. Its `Debug` shows no more than a short name.
#[derive(Clone)]
pub enum Source {
    /// Something to connect to.
    Target(Target),
    /// A server that is part of the program, by its name (`demo`): the program puts it in.
    Builtin(String),
}

/// One server.
#[derive(Clone)]
pub struct ServerSettings {
    /// Its name: letters, digits, `-`, `_` and `.`, at most 64 of them.
    pub name: String,
    /// What it is.
    pub source: Source,
    /// What it is in words for people and logs: references to secrets are not filled in.
    pub shown: String,
    /// What the names of its tools are preceded by. Default `<name>_`; may be empty.
    pub prefix: String,
    /// What is changed about tools, by the server's own names for them.
    pub tools: BTreeMap<String, ToolOverride>,
    /// Which tools are offered, by the server's own names: all if there is no pattern.
    pub allow: Patterns,
    /// Which tools are not offered, even if they are allowed.
    pub deny: Patterns,
    /// How it is spoken to. A legacy session is a user's (`sessions.instances`).
    pub options: ClientSettings,
    /// After which time without calls its process is stopped; `None` for never. Default 10 minutes.
    pub idle: Option<Duration>,
    /// If it is part of the program: what its section of the configuration means.
    pub builtin: Option<BuiltinSettings>,
    /// SHA-256 in hex over everything above, secrets included: an equal digest means that nothing has changed.
    pub digest: String,
}

/// What is changed about a tool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolOverride {
    /// The name under which it is exposed, which no prefix is put before.
    pub name: Option<String>,
    /// The description that is shown instead of the server's own.
    pub description: Option<String>,
}

/// After which time without calls a server's process is stopped, if nobody says otherwise.
pub(crate) const IDLE: Duration = Duration::from_secs(600);

impl ServerSettings {
    /// A server with the defaults of a gateway. The digest says nothing yet: see [`ServerSettings::seal`].
    pub fn new(name: impl Into<String>, source: Source) -> ServerSettings {
        let name = name.into();
        let written_at = Some(format!("servers.{name}"));
        let mut options =
            ClientSettings { name: Some(name.clone()), written_at, ..ClientSettings::default() };
        options.sessions.instances = Instances::PerUser;
        let shown = match &source {
            Source::Target(target) => target.to_string(),
            Source::Builtin(name) => format!("builtin {name}"),
        };
        ServerSettings {
            prefix: format!("{name}_"),
            name,
            source,
            shown,
            tools: BTreeMap::new(),
            allow: Patterns::default(),
            deny: Patterns::default(),
            options,
            idle: Some(IDLE),
            builtin: None,
            digest: String::new(),
        }
        .seal()
    }

    /// The same, told this if it is the server of the program that has this name.
    pub fn told(mut self, builtin: &str, settings: &BuiltinSettings) -> ServerSettings {
        if matches!(&self.source, Source::Builtin(name) if name == builtin) {
            self.builtin = Some(settings.clone());
        }
        self.seal()
    }

    /// Whether a tool, by the server's own name for it, may be offered and called.
    pub fn offers(&self, tool: &str) -> bool {
        (self.allow.is_empty() || self.allow.matches(tool)) && !self.deny.matches(tool)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Target(target) => write!(f, "Target({})", target.name()),
            Source::Builtin(name) => write!(f, "Builtin({name})"),
        }
    }
}

impl fmt::Debug for ServerSettings {
    /// Without the arguments, some of which may have been filled in, and without the
    /// digest, which a guessed secret could be checked against.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerSettings")
            .field("name", &self.name)
            .field("source", &self.shown)
            .field("prefix", &self.prefix)
            .field("tools", &self.tools)
            .field("allow", &self.allow)
            .field("deny", &self.deny)
            .field("options", &self.options)
            .field("idle", &self.idle)
            .field("builtin", &self.builtin)
            .finish_non_exhaustive()
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            servers: Vec::new(),
            tools: ToolSettings::default(),
            listen: ListenSettings::default(),
            auth: None,
            policy: None,
            audit: None,
            telemetry: TelemetrySettings::default(),
            log: LogSettings::default(),
            admin: AdminSettings::default(),
            endpoints: Vec::new(),
            limits: None,
            calls: CallSettings::default(),
            errors: Profile::Strict,
            drain: Duration::from_secs(10),
            state_dir: None,
            sealing_keys: Vec::new(),
            disabled: Vec::new(),
            notes: Vec::new(),
        }
    }
}

impl Default for ListenSettings {
    fn default() -> ListenSettings {
        ListenSettings {
            address: "127.0.0.1:8765".to_owned(),
            address_is_said: false,
            path: "/mcp".to_owned(),
            hosts: Vec::new(),
            origins: Vec::new(),
            http_sse: false,
            max_message: 4 * 1024 * 1024,
            max_buffered: None,
            max_connections: 8192,
            connection_idle: Duration::from_secs(75),
            request_within: Duration::from_secs(30),
            public_url: None,
            trusted_proxies: Vec::new(),
            tls: None,
            insecure: false,
        }
    }
}

impl Default for CallSettings {
    fn default() -> CallSettings {
        CallSettings {
            max_calls: 8192,
            max_result: 64 * 1024 * 1024,
            call_timeout: Duration::from_secs(24 * 3600),
        }
    }
}

impl Default for ToolSettings {
    fn default() -> ToolSettings {
        ToolSettings {
            mode: ToolMode::All,
            favourites: Patterns::default(),
            pin: PinMode::Off,
            lock_file: PathBuf::from("tidegate.lock"),
            names: NameStyle::Portable,
            name_length: LONGEST_NAMES,
            schemas: SchemaStyle::Exact,
            page_bytes: 4 * 1024 * 1024,
            batch: true,
            in_capabilities: false,
        }
    }
}
