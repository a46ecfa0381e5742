//! What can be set about a server as a whole.

use std::time::Duration;

use tidegate_protocol::Profile;
use tidegate_protocol::json::ObjectWriter;

/// Who may share a cached result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Scope {
    /// Everybody.
    Public,
    /// Only the caller it was made for.
    #[default]
    Private,
}

/// How long and for whom a result may be cached (2026-07-28 server/utilities/caching).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheHint {
    /// For how long. Zero means that it has to be asked for each time.
    pub ttl: Duration,
    /// For whom.
    pub scope: Scope,
}

impl CacheHint {
    /// Appends the two members, without braces.
    pub(crate) fn write(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"\"ttlMs\":");
        out.extend_from_slice(self.ttl.as_millis().to_string().as_bytes());
        out.extend_from_slice(match self.scope {
            Scope::Public => b",\"cacheScope\":\"public\"",
            Scope::Private => b",\"cacheScope\":\"private\"",
        });
    }

    pub(crate) fn write_members(self, w: &mut ObjectWriter) {
        let scope = if self.scope == Scope::Public { "public" } else { "private" };
        w.value("ttlMs", &(self.ttl.as_millis() as u64)).str("cacheScope", scope);
    }
}

/// The limits of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskSettings {
    /// How long a task is kept, from its creation. One that still runs then is stopped. Default one hour.
    pub ttl: Duration,
    /// The longest time that a 2025-11-25 client can ask for. Default one day.
    pub max_ttl: Duration,
    /// How often clients should ask. Default one second.
    pub poll_interval: Duration,
    /// How many tasks one principal may have, finished ones included. Default 1,000.
    pub max_per_principal: usize,
    /// How many tasks there may be in all. Default 10,000.
    pub max_total: usize,
    /// How many bytes the results of finished tasks may take in all. A task whose result does not fit fails. Default
    /// 256 MiB.
    pub max_held_bytes: usize,
}

impl Default for TaskSettings {
    fn default() -> Self {
        TaskSettings {
            ttl: Duration::from_secs(3600),
            max_ttl: Duration::from_secs(24 * 3600),
            poll_interval: Duration::from_secs(1),
            max_per_principal: 1_000,
            max_total: 10_000,
            max_held_bytes: 256 * 1024 * 1024,
        }
    }
}

/// Everything that [`Server`](crate::Server) was told that is not an offer.
#[derive(Debug, Clone)]
pub(crate) struct ServerSettings {
    pub(crate) page_size: usize,
    pub(crate) cache: CacheHint,
    pub(crate) profile: Profile,
    pub(crate) validate_output: bool,
    pub(crate) tools_in_capabilities: bool,
    pub(crate) dynamic: bool,
    pub(crate) call_batch: bool,
    pub(crate) tasks: TaskSettings,
    pub(crate) state_ttl: Duration,
    pub(crate) max_rounds: u32,
    pub(crate) max_subscriptions: usize,
}

impl Default for ServerSettings {
    fn default() -> Self {
        ServerSettings {
            page_size: 1000,
            cache: CacheHint::default(),
            profile: Profile::Strict,
            validate_output: false,
            tools_in_capabilities: false,
            dynamic: false,
            call_batch: false,
            tasks: TaskSettings::default(),
            state_ttl: Duration::from_secs(600),
            max_rounds: 32,
            max_subscriptions: 10_000,
        }
    }
}
