//! [`ClientSettings`]: how a client behaves.

use std::collections::HashMap;
use std::time::Duration;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Capability, Json, Limits, Revision};
use tidegate_service::layers::{BreakerSettings, RetryPolicy};

use crate::app_error::ErrorProfile;
use crate::ids::IdStrategy;
use crate::require::ServerCapability;

/// Which era a server is spoken to in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EraChoice {
    /// Whichever it speaks, the modern one first.
    #[default]
    Auto,
    /// 2025-11-25 and earlier, without asking.
    Legacy,
    /// 2026-07-28, without asking.
    Modern,
}

/// How many legacy sessions (over stdio: processes) a server may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Instances {
    /// One for each client, under its own name and with what it has declared: for a program that calls for itself.
    #[default]
    Own,
    /// One for each user, whichever clients they use; one in all where nobody is authenticated. What a gateway has.
    PerUser,
    /// One for each client of a user: a legacy session, a stdio connection, or the same client info.
    PerClient,
    /// One in all: users that may be asked something take turns.
    One,
}

/// The legacy sessions with a server.
#[derive(Debug, Clone)]
pub struct SessionSettings {
    /// Whose they are. Default: each client its own.
    pub instances: Instances,
    /// What a session that is not a client's own declares: the questions that may be passed on to callers. Default all.
    pub capabilities: Vec<Capability>,
    /// How many sessions there may be. Default 64.
    pub max: usize,
    /// For how long after its last call a session is kept. Default 1 hour.
    pub idle: Duration,
    /// Whether a session is kept while a client that has used it is connected, however long ago it called. Default on.
    pub while_connected: bool,
}

/// Calls to a legacy server that wait for the caller to answer a question.
#[derive(Debug, Clone)]
pub struct ParkSettings {
    /// How long a call waits for its answers. Default 5 minutes.
    pub time: Duration,
    /// How many calls of one caller may wait. Default 32.
    pub per_caller: usize,
    /// How many calls may wait in all. Default 1024.
    pub total: usize,
    /// How long to wait for more questions after one has come. Default 30 ms.
    pub settle: Duration,
}

/// Tasks of legacy servers.
#[derive(Debug, Clone)]
pub struct TaskSettings {
    /// For how long a task is asked for, where the caller does not say. Default 1 hour.
    pub ttl: Duration,
    /// How long a task is kept at most, whatever the server says: its session lives as long. Default 24 hours.
    pub max_ttl: Duration,
    /// How many tasks one caller may have. Default 64.
    pub per_caller: usize,
    /// How many tasks there may be in all. Default 1024.
    pub total: usize,
}

impl Default for TaskSettings {
    fn default() -> TaskSettings {
        TaskSettings {
            ttl: Duration::from_secs(3600),
            max_ttl: Duration::from_secs(24 * 3600),
            per_caller: 64,
            total: 1024,
        }
    }
}

/// How a client behaves. The defaults suit a program that calls tools for itself.
#[derive(Debug, Clone)]
pub struct ClientSettings {
    /// The name under which the server appears in the log. Default: made from the target.
    pub name: Option<String>,
    /// Where these settings are written, for sentences that name one: `servers.weather`. Default nowhere.
    pub written_at: Option<String>,
    /// What the client says about itself: an object with `name` and `version`.
    pub client_info: Json,
    /// Which era to speak. Default: whichever the server speaks.
    pub era: EraChoice,
    /// The legacy revision that is offered. Default 2025-11-25.
    pub offer: Revision,
    /// How requests are numbered. Default UUIDs.
    pub ids: IdStrategy,
    /// How long a call may take. Default 60 s.
    pub timeout: Duration,
    /// How long calls of certain tools may take.
    pub tool_timeouts: HashMap<String, Duration>,
    /// Whether progress gives a call as much time again, up to `max_timeout`. Default on.
    pub extend_on_progress: bool,
    /// How long a call may take with all its extensions. Default 1 hour.
    pub max_timeout: Duration,
    /// How long a server on stdio may take to answer the question which era it speaks before it is taken for
    /// a legacy one. Default 3 s.
    pub probe_timeout: Duration,
    /// How long a server may take to start and shake hands. Default 60 s, because some install themselves first.
    pub init_timeout: Duration,
    /// How long a connection may take to open. Default 10 s.
    pub connect_timeout: Duration,
    /// How large and how deep one message may be. Default 16 MiB, 100 levels.
    pub limits: Limits,
    /// How many calls may be in flight at once. Default 1024.
    pub max_in_flight: usize,
    /// When to stop calling a server that fails. Default: 5 failures in a row, 30 s. `None` for never.
    pub breaker: Option<BreakerSettings>,
    /// When to call again. Default: 3 times, 1 s, 2 s, 4 s.
    pub retry: RetryPolicy,
    /// Whether what tools say about themselves (idempotent, read-only) is believed, so that such calls are made again
    /// when nobody knows what became of them. Default off, as the specification calls annotations untrusted.
    pub trust_annotations: bool,
    /// How long a list of tools is good when the server does not say. Default 5 minutes.
    pub cache_ttl: Duration,
    /// What the server must have: one that does not declare it is refused (E205). Default nothing.
    pub require: Vec<ServerCapability>,
    /// Whether the tools of a legacy server are listed in each session before the first of them is called. Default off.
    pub list_tools_first: bool,
    /// Whether results of tools are checked against their output schema. Default off.
    pub validate_output: bool,
    /// Whether tools that may not be offered, because their `x-mcp-header` marks are wrong, are listed all the same: for
    /// whoever looks for faults. Default off.
    pub list_faulty_tools: bool,
    /// What error numbers mean. Default: what the specification says.
    pub profile: ErrorProfile,
    /// How often one call may ask before it is given up. Default 16.
    pub max_rounds: usize,
    /// How many questions one call may ask in all, however many at a time. Default 256.
    pub max_questions: usize,
    /// The legacy sessions.
    pub sessions: SessionSettings,
    /// Calls that wait for answers.
    pub park: ParkSettings,
    /// Tasks.
    pub tasks: TaskSettings,
}

impl Default for ClientSettings {
    fn default() -> ClientSettings {
        let mut info = ObjectWriter::new();
        info.str("name", "tidegate").str("version", env!("CARGO_PKG_VERSION"));
        ClientSettings {
            name: None,
            written_at: None,
            client_info: info.finish(),
            era: EraChoice::Auto,
            offer: Revision::LATEST_LEGACY,
            ids: IdStrategy::default(),
            timeout: Duration::from_secs(60),
            tool_timeouts: HashMap::new(),
            extend_on_progress: true,
            max_timeout: Duration::from_secs(3600),
            probe_timeout: Duration::from_secs(3),
            init_timeout: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(10),
            limits: Limits { max_bytes: 16 * 1024 * 1024, ..Limits::default() },
            max_in_flight: 1024,
            breaker: Some(BreakerSettings::default()),
            retry: RetryPolicy::default(),
            trust_annotations: false,
            cache_ttl: Duration::from_millis(300_000),
            require: Vec::new(),
            list_tools_first: false,
            validate_output: false,
            list_faulty_tools: false,
            profile: ErrorProfile::default(),
            max_rounds: 16,
            max_questions: 256,
            sessions: SessionSettings {
                instances: Instances::Own,
                capabilities: Capability::ASKABLE.to_vec(),
                max: 64,
                idle: Duration::from_secs(3600),
                while_connected: true,
            },
            park: ParkSettings {
                time: Duration::from_secs(300),
                per_caller: 32,
                total: 1024,
                settle: Duration::from_millis(30),
            },
            tasks: TaskSettings::default(),
        }
    }
}

impl ClientSettings {
    /// The defaults, with what `MCP_PROTOCOL_VERSION` (the revision to offer) and `MCP_TOOL_CACHE_TTL` (milliseconds)
    /// say. A value that makes no sense is reported in the log and passed over.
    pub fn from_env() -> ClientSettings {
        ClientSettings::with_env(|name| std::env::var(name).ok())
    }

    fn with_env(get: impl Fn(&str) -> Option<String>) -> ClientSettings {
        let mut settings = ClientSettings::default();
        if let Some(version) = get("MCP_PROTOCOL_VERSION").filter(|v| !v.is_empty()) {
            match version.parse::<Revision>() {
                Ok(revision) => settings.offer_revision(revision),
                Err(()) => {
                    let known = Revision::ALL.map(Revision::as_str).join(", ");
                    tracing::warn!(%version, %known, "MCP_PROTOCOL_VERSION is not a known protocol version");
                }
            }
        }
        if let Some(ttl) = get("MCP_TOOL_CACHE_TTL").filter(|v| !v.is_empty()) {
            match ttl.parse() {
                Ok(ms) => settings.cache_ttl = Duration::from_millis(ms),
                Err(_) => tracing::warn!(%ttl, "MCP_TOOL_CACHE_TTL must be a number of milliseconds"),
            }
        }
        settings
    }

    /// Three steps before any tool is called: `initialize` with this revision and a look at what the server has (without
    /// tools it is refused, E205), `notifications/initialized`, and `tools/list`.
    pub fn three_steps(&mut self, offer: Revision) {
        self.offer_revision(offer);
        self.era = EraChoice::Legacy;
        self.list_tools_first = true;
        if !self.require.contains(&ServerCapability::Tools) {
            self.require.push(ServerCapability::Tools);
        }
    }

    /// Offers this revision and, if it is a legacy one, speaks no newer era.
    pub fn offer_revision(&mut self, revision: Revision) {
        if revision.is_modern() {
            self.era = EraChoice::Auto;
        } else {
            self.era = EraChoice::Legacy;
            self.offer = revision;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(name: &'static str, value: &'static str) -> ClientSettings {
        ClientSettings::with_env(|asked| (asked == name).then(|| value.to_owned()))
    }

    #[test]
    fn the_environment_decides_what_is_offered() {
        let settings = with("MCP_PROTOCOL_VERSION", "2025-06-18");
        assert_eq!((settings.era, settings.offer), (EraChoice::Legacy, Revision::V2025_06_18));
        let settings = with("MCP_PROTOCOL_VERSION", "2026-07-28");
        assert_eq!((settings.era, settings.offer), (EraChoice::Auto, Revision::V2025_11_25));
        assert_eq!(with("MCP_PROTOCOL_VERSION", "1999").era, EraChoice::Auto);
        assert_eq!(with("MCP_TOOL_CACHE_TTL", "1500").cache_ttl, Duration::from_millis(1500));
        assert_eq!(with("MCP_TOOL_CACHE_TTL", "soon").cache_ttl, Duration::from_secs(300));
    }

    #[test]
    fn three_steps_need_tools_and_list_them_first() {
        let mut settings = ClientSettings::default();
        settings.three_steps(Revision::V2024_11_05);
        assert_eq!((settings.era, settings.offer), (EraChoice::Legacy, Revision::V2024_11_05));
        assert_eq!(settings.require, [ServerCapability::Tools]);
        assert!(settings.list_tools_first);
    }
}
