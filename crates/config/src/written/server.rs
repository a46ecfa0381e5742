//! One server, and what holds for all of them.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_protocol::Capability;

use super::protocol::{ClientInfo, Errors, Handshake, Requirement};
use super::values::{Size, Switch, Time, Words};

/// Writes a struct with the given fields and those that a server and `[defaults]` have in common. `serde(flatten)` would
/// do it too, but knows no unknown fields and no places in the text.
macro_rules! with_terms {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $field:ident: $type:ty,)* }) => {
        $(#[$about])*
        #[derive(Deserialize, JsonSchema, Default)]
        #[serde(deny_unknown_fields, default)]
        pub(crate) struct $name {
            $($(#[$doc])* pub(crate) $field: $type,)*
            /// Which era of the protocol to speak: "auto" for whichever the server speaks, "legacy" for 2025-11-25 and
            /// earlier, "modern" for 2026-07-28. Default "auto".
            pub(crate) era: Option<Era>,
            /// How long a call may take. Default "60s".
            pub(crate) timeout: Option<Time>,
            /// How long a call may take with all its extensions. Default "1h", or timeout if that is longer.
            pub(crate) max_timeout: Option<Time>,
            /// Whether progress of a call gives it as much time again, up to max_timeout. Default false.
            pub(crate) extend_on_progress: Option<bool>,
            /// How long a server may take to start and shake hands. Default "60s", because some install themselves
            /// first.
            pub(crate) start_timeout: Option<Time>,
            /// How long a connection may take to open. Default "10s".
            pub(crate) connect_timeout: Option<Time>,
            /// After which time without calls the server's process is stopped; it is started again when it is needed.
            /// "never" lets it run. Default "10m" for a process that nobody has called, else session_idle after its
            /// last client has left.
            pub(crate) idle: Option<Time>,
            /// How many sessions (for a program: processes) a legacy server gets: "per-user" gives each user one,
            /// "per-client" each client of a user, "one" shares one among all users. Where nobody is authenticated,
            /// everybody is one user. Default "per-user".
            pub(crate) instances: Option<Instances>,
            /// What a session with a legacy server declares that its callers can be asked for. Some servers choose their
            /// tools by it. Default everything.
            pub(crate) capabilities: Option<Vec<Askable>>,
            /// How many such sessions there may be. Default 64.
            #[schemars(range(min = 1))]
            pub(crate) max_sessions: Option<usize>,
            /// For how long such a session is kept after its client has left. Default "1h", or idle if that is set.
            pub(crate) session_idle: Option<Time>,
            /// How many calls may be in flight at once. Default 1024.
            #[schemars(range(min = 1))]
            pub(crate) max_in_flight: Option<usize>,
            /// How large one message may be: bytes, or a text such as "16MiB". Default "16MiB".
            pub(crate) max_message: Option<Size>,
            /// When to stop calling a server that fails: false for never, or a table. Default: after 5 failures in a
            /// row, for 30 seconds.
            pub(crate) breaker: Option<Switch<Breaker>>,
            /// When to make a call again that failed before the server did anything: false for never, or a table.
            /// Default: 3 times, after 1, 2 and 4 seconds.
            pub(crate) retry: Option<Switch<Retry>>,
            /// Whether to believe what tools say about themselves (read-only, idempotent), so that such calls are made
            /// again when nobody knows what became of them. Default false.
            pub(crate) trust_annotations: Option<bool>,
            /// How long a call to a legacy server waits for the answer to a question. Default "5m".
            pub(crate) park_time: Option<Time>,
        }
    };
}

with_terms! {
    /// What holds for every server that does not say otherwise.
    Defaults {}
}

with_terms! {
    /// A server: exactly one of command, url and builtin says what it is.
    Server {
        /// The program to start. A text with spaces and without args is split as a shell does it, unless there is a file
        /// of that name; a list is the program and its arguments. "./" and "../" start from the folder of this file,
        /// "~/" from the home directory; other names are looked up in PATH.
        command: Option<Words>,
        /// The program's arguments. Default none.
        args: Option<Vec<String>>,
        /// Variables for the program, besides the few that every program gets (PATH, HOME and the like). Default none.
        env: BTreeMap<String, String>,
        /// A file with such variables, NAME=value in each line. Those under env come first. Default none.
        env_file: Option<String>,
        /// The directory in which the program runs. Default: the one in which the gateway was started.
        cwd: Option<String>,
        /// The address of a server, http or https.
        url: Option<String>,
        /// Headers that go with every request to the address, such as Authorization. Default none.
        headers: BTreeMap<String, String>,
        /// How to speak to the address: "http" for Streamable HTTP, "sse" for the older HTTP+SSE. Default: whichever
        /// the server has.
        transport: Option<Transport>,
        /// The name of a server that is part of Tidegate, such as "memory".
        builtin: Option<String>,
        /// Whether to use the server at all. Default true.
        enabled: Option<bool>,
        /// What the names of the server's tools are preceded by; "" for nothing. Default: the server's name and "_".
        prefix: Option<String>,
        /// Which tools to offer, by the server's own names: patterns such as "read_*". Default: all.
        allow: Vec<String>,
        /// Which tools not to offer, even if allow has them. Default none.
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
    /// The name under which clients see it; no prefix is put before it. Default: the server's, behind the prefix.
    pub(crate) name: Option<String>,
    /// What clients are told about it. Default: what the server says.
    pub(crate) description: Option<String>,
    /// How long a call of it may take. Default: the server's timeout.
    pub(crate) timeout: Option<Time>,
}

/// When to stop calling a server that fails. Either a number of failures in a row, or a share of the last calls.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Breaker {
    /// After how many failures in a row. Default 5. Not together with window and percent.
    #[schemars(range(min = 1))]
    pub(crate) failures: Option<u32>,
    /// How many of the last calls are looked at. Default 10, if percent is given.
    #[schemars(range(min = 1))]
    pub(crate) window: Option<u32>,
    /// From how many percent of failures among them on, 1 to 100. Default 50, if window is given.
    #[schemars(range(min = 1, max = 100))]
    pub(crate) percent: Option<u8>,
    /// For how long nobody calls then. Default "30s".
    pub(crate) open_for: Option<Time>,
    /// How many trial calls may run at once afterwards. Default 1.
    #[schemars(range(min = 1))]
    pub(crate) trials: Option<u32>,
    /// How many of them must succeed before everybody calls again. Default 1.
    #[schemars(range(min = 1))]
    pub(crate) successes: Option<u32>,
}

/// When to make a call again that failed before the server did anything.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Retry {
    /// How often a call is made again after it failed. Default 3.
    pub(crate) attempts: Option<u32>,
    /// How long to wait before the first time. Default "1s".
    pub(crate) base: Option<Time>,
    /// By how much each wait is longer than the one before, 1 or more. Default 2.
    #[schemars(range(min = 1))]
    pub(crate) multiplier: Option<f64>,
    /// The longest wait. Default "10s".
    pub(crate) max: Option<Time>,
    /// Which part of a wait is left to chance, from 0 to 1. Default 0.5.
    #[schemars(range(min = 0, max = 1))]
    pub(crate) jitter: Option<f64>,
    /// How long after its beginning a call may still be made again; "never" for no such limit. Default "60s".
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
