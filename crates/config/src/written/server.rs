//! One server, and what holds for all of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_protocol::Capability;

use super::Time;
use super::protocol::{ClientInfo, Errors, Handshake, Requirement};
use super::values::{Size, Switch, Words};

/// Writes a struct with the given fields and those that a server and `[defaults]` have in common. `serde(flatten)` would
/// do it too, but knows no unknown fields and no places in the text.
macro_rules! with_terms {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Deserialize, JsonSchema, Default)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $field: $type,)*
            /// Which era of the protocol to speak: "auto" for whichever the server supports, "legacy" for 2025-11-25 and
            /// earlier, "modern" for 2026-07-28. Default "auto".
            pub(crate) era: Option<Era>,
            /// How long a call may take. Default "60s".
            pub(crate) timeout: Option<Time>,
            /// How long a call may take in total, with all extensions. Default "1h", or timeout if that is longer.
            pub(crate) max_timeout: Option<Time>,
            /// Whether progress notifications extend a call by its timeout, up to max_timeout. Default true.
            pub(crate) extend_on_progress: Option<bool>,
            /// How long a server may take to start and complete the handshake. Default "60s", because some install
            /// themselves first.
            pub(crate) start_timeout: Option<Time>,
            /// How long opening a connection may take. Default "10s".
            pub(crate) connect_timeout: Option<Time>,
            /// How long the server's process may be idle before it is stopped; it is started again when needed. "never"
            /// keeps it running. Default "10m" for a process that has not been called, else session_idle after its last
            /// client has left.
            pub(crate) idle: Option<Time>,
            /// Who shares a session (for a program: a process) of a legacy server: "per-user" gives each user one,
            /// "per-client" each client of a user, "one" shares one among all users. Without authentication everybody is
            /// the same user. Default "per-user".
            pub(crate) instances: Option<Instances>,
            /// The client capabilities that a session with a legacy server declares. Some servers choose their tools by
            /// them. Default all.
            pub(crate) capabilities: Option<Vec<Askable>>,
            /// The maximum number of such sessions. Default 64.
            #[schemars(range(min = 1))]
            pub(crate) max_sessions: Option<usize>,
            /// How long such a session is kept after its client has left. Default "1h", or idle if that is set.
            pub(crate) session_idle: Option<Time>,
            /// The maximum number of concurrent calls. Default 1024.
            #[schemars(range(min = 1))]
            pub(crate) max_in_flight: Option<usize>,
            /// The largest message that the server may send: bytes, or a string such as "16MiB". Default "16MiB".
            pub(crate) max_message: Option<Size>,
            /// The circuit breaker, which stops calling a server that fails: false for none, or a table. Default: after 5
            /// consecutive failures, for 30 seconds.
            pub(crate) breaker: Option<Switch<Breaker>>,
            /// Retries of calls that failed before the server did anything: false for none, or a table. Default: 3 times,
            /// after 1, 2 and 4 seconds.
            pub(crate) retry: Option<Switch<Retry>>,
            /// Whether to trust the annotations of tools (read-only, idempotent), so that such calls are retried when
            /// their outcome is unknown. Default false.
            pub(crate) trust_annotations: Option<bool>,
            /// How long a call to a legacy server waits for the user's answer to a question. Default "5m".
            pub(crate) park_time: Option<Time>,
        }
    };
}

with_terms! {
    /// Settings for every server that does not have its own.
    Defaults {
        /// Environment variables for every program that is started. Those of a server (env, env_file) are merged over
        /// them, name by name. Default none.
        env: BTreeMap<String, String>,
    }
}

with_terms! {
    /// A server. It has exactly one of command, url and builtin.
    Server {
        /// The program to start. A string with spaces and without args is split like in a shell, unless a file of that
        /// name exists; a list is the program and its arguments. "./" and "../" start from the folder of this file, "~/"
        /// from the home directory; other names are looked up in PATH.
        command: Option<Words>,
        /// The program's arguments. Default none.
        args: Option<Vec<String>>,
        /// Environment variables for the program, in addition to those that every program gets (PATH, HOME, proxies and the
        /// like). Default none.
        env: BTreeMap<String, String>,
        /// A file with such variables, one NAME=value per line. env wins over it. Default none.
        env_file: Option<String>,
        /// The working directory of the program. Default: that of the gateway.
        cwd: Option<String>,
        /// The URL of the server, http or https.
        url: Option<String>,
        /// Headers for every request, such as Authorization. Default none.
        headers: BTreeMap<String, String>,
        /// The transport: "http" for Streamable HTTP, "sse" for the older HTTP+SSE. Default: whichever the server
        /// supports.
        transport: Option<Transport>,
        /// The name of a server that is built into Tidegate, such as "memory".
        builtin: Option<String>,
        /// Whether to use the server. Default true.
        enabled: Option<bool>,
        /// The prefix of the server's tool names; "" for none. Default: the server's name and "_".
        prefix: Option<String>,
        /// Which tools to offer, by the server's own names: patterns such as "read_*". Default: all.
        allow: Vec<String>,
        /// Which tools not to offer, even if allow matches them. Default none.
        deny: Vec<String>,
        /// Changes to single tools, by the server's own names.
        tools: BTreeMap<String, Tool>,
        /// Capabilities without which the server is refused (E205): "tools", "resources", "prompts", "completions",
        /// "logging". Default none.
        require: Vec<Requirement>,
        /// Whose error numbers the server uses: "standard", "gbif", "percolate", "docling" or "devflow". Callers find
        /// such a number in the data of an error. Default "standard".
        errors: Option<Errors>,
        /// "three-step" for servers that want initialize, notifications/initialized and tools/list, in this order, before any
        /// tool is called: it offers protocol version 2024-11-05 (or what MCP_PROTOCOL_VERSION says) and requires tools.
        /// Default "auto".
        handshake: Option<Handshake>,
        /// The protocol version to speak, such as "2025-06-18". Default: the newest that both sides support.
        protocol_version: Option<String>,
        /// The name and version under which the gateway introduces itself to the server. Default: Tidegate's own.
        client_info: Option<ClientInfo>,
    }
}

/// Changes to a tool.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tool {
    /// The name that clients see, without a prefix. Default: the server's name for it, after the prefix.
    pub(crate) name: Option<String>,
    /// The description that clients see. Default: the server's own.
    pub(crate) description: Option<String>,
    /// How long a call of this tool may take. Default: the server's timeout.
    pub(crate) timeout: Option<Time>,
}

/// The circuit breaker. Either a number of consecutive failures, or a share of the most recent calls.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Breaker {
    /// The number of consecutive failures that opens the breaker. Default 5. Not together with window and percent.
    #[schemars(range(min = 1))]
    pub(crate) failures: Option<u32>,
    /// How many of the most recent calls are considered. Default 10, if percent is given.
    #[schemars(range(min = 1))]
    pub(crate) window: Option<u32>,
    /// The percentage of failures among them that opens the breaker, 1 to 100. Default 50, if window is given.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) percent: Option<u8>,
    /// How long the breaker stays open. Default "30s".
    pub(crate) open_for: Option<Time>,
    /// How many trial calls may run at once afterwards. Default 1.
    #[schemars(range(min = 1))]
    pub(crate) trials: Option<u32>,
    /// How many trial calls must succeed before the breaker closes. Default 1.
    #[schemars(range(min = 1))]
    pub(crate) successes: Option<u32>,
}

/// Retries of calls that failed before the server did anything.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retry {
    /// How often a failed call is retried. Default 3.
    pub(crate) attempts: Option<u32>,
    /// The delay before the first retry. Default "1s".
    pub(crate) base: Option<Time>,
    /// The factor by which each delay grows, 1 or more. Default 2.
    #[schemars(range(min = 1))]
    pub(crate) multiplier: Option<f64>,
    /// The longest delay. Default "10s".
    pub(crate) max: Option<Time>,
    /// The share of a delay that is random, from 0 to 1. Default 0.5.
    #[schemars(range(min = 0, max = 1))]
    pub(crate) jitter: Option<f64>,
    /// How long after the start of a call it may still be retried; "never" for no limit. Default "60s".
    pub(crate) overall: Option<Time>,
}

/// An era of the protocol.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Era {
    Auto,
    Legacy,
    Modern,
}

/// How many sessions a legacy server gets.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Instances {
    PerUser,
    #[serde(alias = "per-caller")]
    PerClient,
    One,
}

/// What a client can be asked for.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
pub(crate) enum Askable {
    #[serde(rename = "elicitation")]
    Elicitation,
    #[serde(rename = "elicitation.form")]
    Form,
    #[serde(rename = "elicitation.url")]
    Url,
    #[serde(rename = "sampling")]
    Sampling,
    #[serde(rename = "roots")]
    Roots,
}

impl Askable {
    pub(crate) fn means(self) -> &'static [Capability] {
        match self {
            Askable::Elicitation => &[Capability::ElicitForm, Capability::ElicitUrl],
            Askable::Form => &[Capability::ElicitForm],
            Askable::Url => &[Capability::ElicitUrl],
            Askable::Sampling => &[Capability::Sampling, Capability::SamplingTools],
            Askable::Roots => &[Capability::Roots],
        }
    }
}

/// How to speak to an address.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Transport {
    Http,
    Sse,
}
