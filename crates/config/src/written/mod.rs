//! What was written: a `tidegate.toml` field by field.
//!
//! The comments on the fields are what people read: they become the descriptions in the JSON Schema, which editors show.
//! The sections of servers of the program are theirs: see [`section`](crate::section). Texts stay texts here; what they mean is found out in [`resolve`](crate::resolve).

mod admin;
mod audit;
mod auth;
mod endpoint;
mod limits;
mod log;
mod otlp;
mod policy;
mod protocol;
mod server;
mod telemetry;
mod values;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use admin::Admin;
pub(crate) use audit::{Audit, WhenFull};
pub(crate) use auth::{Auth, Introspection, Jwt, Tls};
pub(crate) use endpoint::Endpoint;
pub(crate) use limits::{Limit, LimitRule, Limits, Priority, Run};
pub(crate) use log::{Log, LogFormat};
pub(crate) use otlp::{Otlp, OtlpProtocol};
pub(crate) use policy::{DefaultEffect, Policy, PolicyMode, Rule};
pub(crate) use protocol::{Errors, Handshake, Requirement};
pub(crate) use server::{Breaker, Defaults, Era, Instances, Retry, Server, Tool, Transport};
pub(crate) use telemetry::{Health, Telemetry, TelemetryNames};
pub(crate) use tidegate_builtin::Time;
pub(crate) use values::{Directory, Listen, Size, Switch, Texts, Words};

/// The configuration of a Tidegate gateway: the servers behind it, and how it offers them.
///
/// In every string, `${NAME}` is an environment variable (or one of the .env beside this file), `${NAME:-default}` the same
/// with a default, and `${file:/path}` the content of a file. `$${` is a literal `${`.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "tidegate.toml")]
pub(crate) struct File {
    /// The address to listen on: a port, which only this machine can reach, or a host and a port, such as
    /// "localhost:8080" or "0.0.0.0:8080". Default "127.0.0.1:8765".
    pub(crate) listen: Option<Listen>,
    /// The path of the endpoint. Default "/mcp".
    pub(crate) path: Option<String>,
    /// Host names under which the gateway can be reached, in addition to those of this machine. Default none.
    pub(crate) allow_hosts: Vec<String>,
    /// Origins of web pages that may call the gateway, such as "https://app.example.com". Default none.
    pub(crate) allow_origins: Vec<String>,
    /// Where others find the gateway, such as "https://mcp.example.com": https, or http on this machine, without a path.
    /// Links and OAuth metadata begin with it, and its host is allowed. Default: the address that is listened on.
    pub(crate) public_url: Option<String>,
    /// The proxies in front of the gateway: addresses and networks such as "10.0.0.0/8". Only their Forwarded and
    /// X-Forwarded-For headers count; without [tls], other machines than these are not served. Default none.
    pub(crate) trusted_proxies: Vec<String>,
    /// Allow other machines to connect without authentication, or without encryption. Default false.
    pub(crate) insecure: Option<bool>,
    /// The certificate to serve HTTPS with.
    pub(crate) tls: Option<Tls>,
    /// Who may call. Without it, everybody on this machine, as one user.
    pub(crate) auth: Option<Auth>,
    /// Who may do what. Without it, everybody who may call may do everything.
    pub(crate) policy: Option<Policy>,
    /// Where a record of every call and every refused login is kept. Without it, nowhere.
    pub(crate) audit: Option<Audit>,
    /// What is measured while it runs.
    pub(crate) telemetry: Telemetry,
    /// Which log lines there are, how they look and where they go.
    pub(crate) log: Log,
    /// Where operators come in.
    pub(crate) admin: Admin,
    /// Endpoints with a selection of what all servers offer, by name, at /NAME followed by path. A name consists of
    /// lower-case letters, digits and "-", at most 64 of them.
    #[schemars(with = "std::collections::BTreeMap<String, Endpoint>")]
    pub(crate) endpoints: IndexMap<String, Endpoint>,
    /// How much callers may do. Without it, no more is limited than max_calls, max_message and the like.
    pub(crate) limits: Option<Limits>,
    /// Also serve the HTTP+SSE transport of 2024-11-05, for old clients. Default false.
    pub(crate) http_sse: Option<bool>,
    /// The largest message that a client may send: bytes, or a string such as "16MiB". Default "4MiB".
    pub(crate) max_message: Option<Size>,
    /// How many bytes of large messages, unread and stored responses and server lists the gateway may hold in total:
    /// bytes, or a string such as "512MiB". At the limit, new requests are refused for a while. Default: the smaller of
    /// "1GiB" and half of the memory available to the process.
    pub(crate) max_buffered: Option<Size>,
    /// How many client connections may be open at once. Default 8192.
    pub(crate) max_connections: Option<usize>,
    /// How long a connection may stay open without a request. Default "75s".
    pub(crate) connection_idle: Option<Time>,
    /// How long a client may take to send the headers of a request, and its body. Default "30s".
    pub(crate) request_within: Option<Time>,
    /// How many calls may run at once, all servers together. As many again may wait for their turn; further ones are
    /// refused. Default 8192.
    pub(crate) max_calls: Option<usize>,
    /// The largest result that a client is sent: bytes, or a string such as "16MiB". A larger one becomes an error that
    /// names the limit. Default "64MiB".
    pub(crate) max_result: Option<Size>,
    /// How long a call may take in all, whatever its server may take. Default "24h".
    pub(crate) call_timeout: Option<Time>,
    /// How long running calls may take to finish when the gateway stops. Default "10s".
    pub(crate) drain: Option<Time>,
    /// A directory for the last known lists of each server, so that they can be served before the server has started;
    /// false to store nothing. Default: tidegate in the user's state directory, such as ~/.local/state/tidegate.
    pub(crate) state_dir: Option<Directory>,
    /// Secret keys for what clients are given to bring back: cursors of lists, handles of tasks. The first seals, all of them
    /// open, so that a key can be replaced: put the new one first, and remove the old one later. At least 32 random
    /// characters each. Gateways that share their clients need the same keys. Default: sealing.key in state_dir, which is
    /// created when it is missing.
    pub(crate) sealing_keys: Vec<String>,
    /// Whose error numbers clients look for in the gateway's own errors: "standard", "gbif", "percolate", "docling" or
    /// "devflow". Default "standard".
    pub(crate) errors: Option<Errors>,
    /// How tools are offered.
    pub(crate) tools: Tools,
    /// Settings for every server that does not have its own.
    pub(crate) defaults: Defaults,
    /// The servers, by name. A name consists of letters, digits, "-", "_" and ".", at most 64 of them.
    #[schemars(with = "std::collections::BTreeMap<String, Server>")]
    pub(crate) servers: IndexMap<String, Server>,
}

/// How tools are offered.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tools {
    /// "all" lists every tool; "search" lists the favourites, and tools to find and call all others, which saves space in
    /// the model's context when there are many. Default "all".
    pub(crate) mode: Option<Mode>,
    /// With mode = "search": tools that are listed anyway. Patterns such as "github_*" for names as clients see them.
    /// Default none.
    pub(crate) favourites: Vec<String>,
    /// Protection against tools that change silently: "off" offers whatever servers list; "first-use" remembers each tool
    /// as it was first seen and withholds it when it changes; "locked" offers only the tools in the lock file.
    /// Default "off".
    pub(crate) pin: Option<Pin>,
    /// The lock file. Default "tidegate.lock" beside this file.
    pub(crate) lock_file: Option<String>,
    /// "portable" uses names that every model accepts: letters, digits, "_" and "-", at most name_length of them. "exact"
    /// keeps the servers' own names after the prefix. Default "portable".
    pub(crate) names: Option<Names>,
    /// With names = "portable": the maximum length of names, 24 to 64. Models accept 64 characters, and clients add a
    /// prefix such as mcp__tidegate__. Files that Tidegate creates set 48. Default 64.
    pub(crate) name_length: Option<usize>,
    /// "portable" lists the arguments of tools in a form that every client and agent framework understands, and that never
    /// allows more than the server's own schema. "exact" lists them as servers describe them. Default "exact".
    pub(crate) schemas: Option<Schemas>,
    /// Lists larger than this are sent in pages: bytes, or a string such as "4MiB". Default "4MiB".
    pub(crate) page_bytes: Option<Size>,
    /// Whether clients may send several calls in one request (tools/call_batch). Default true.
    pub(crate) batch: Option<bool>,
    /// Whether the answer to initialize has the definitions of all tools under capabilities.tools, for clients that read them
    /// there. Default false.
    pub(crate) in_capabilities: Option<bool>,
}

/// Which tools are listed.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    All,
    Search,
}

/// Whether tools may change.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Pin {
    Off,
    FirstUse,
    Locked,
}

/// How the schemas of arguments are listed.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Schemas {
    Exact,
    Portable,
}

/// Which names are exposed.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Names {
    Portable,
    Exact,
}
