//! What was written: a `tidegate.toml` field by field.
//!
//! The comments on the fields are what people read: they become the descriptions in the JSON Schema, which editors show.
//! Texts stay texts here; what they mean is found out in [`resolve`](crate::resolve).

pub(crate) mod memory;
mod server;
mod values;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

pub(crate) use server::{Breaker, Defaults, Era, Instances, Retry, Server, Tool, Transport};
pub(crate) use values::{Listen, Place, Size, Switch, Time, Words};

/// The configuration of a Tidegate gateway: the servers behind it, and how it offers them.
///
/// In every text, `${NAME}` stands for an environment variable, `${NAME:-default}` for the same with something to use if
/// it is not set, and `${file:/path}` for what a file holds. `$${` stands for `${` itself.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
#[schemars(title = "tidegate.toml")]
pub(crate) struct File {
    /// The address to listen on: a port, which only this machine can reach, or a host and a port, such as
    /// "localhost:8080" or "0.0.0.0:8080". Default "127.0.0.1:8765".
    pub(crate) listen: Option<Listen>,
    /// The path of the endpoint. Default "/mcp".
    pub(crate) path: Option<String>,
    /// Host names under which the gateway may be reached, besides those of this machine. Default none.
    pub(crate) allow_hosts: Vec<String>,
    /// Origins of web pages that may call, such as "https://app.example.com". Default none.
    pub(crate) allow_origins: Vec<String>,
    /// Whether to serve the HTTP+SSE transport of 2024-11-05 too, for old clients. Default false.
    pub(crate) http_sse: Option<bool>,
    /// How large one message of a client may be: bytes, or a text such as "16MiB". Default "4MiB".
    pub(crate) max_message: Option<Size>,
    /// How many bytes of large messages, unread and kept answers and lists of servers the gateway may hold, all together:
    /// bytes, or a text such as "512MiB". New requests are refused for a while when it is used up. Default: the smaller
    /// of "1GiB" and half of the memory that the process may have.
    pub(crate) max_buffered: Option<Size>,
    /// How many connections of clients there may be at once. Default 8192.
    pub(crate) max_connections: Option<usize>,
    /// How long a connection may stay open without a request. Default "75s".
    pub(crate) connection_idle: Option<Time>,
    /// How long a client may take over the headers of a request, and over its body. Default "30s".
    pub(crate) request_within: Option<Time>,
    /// How long running calls may take to end when the gateway stops. Default "10s".
    pub(crate) drain: Option<Time>,
    /// A directory in which the last known tools of each server are kept, so that they can be listed before the server
    /// has started; false to keep nothing. Default: tidegate in the user's directory for state, such as
    /// ~/.local/state/tidegate.
    pub(crate) state_dir: Option<Place>,
    /// How tools are offered.
    pub(crate) tools: Tools,
    /// The memory that is part of Tidegate.
    pub(crate) memory: memory::Memory,
    /// What holds for every server that does not say otherwise.
    pub(crate) defaults: Defaults,
    /// The servers, by name. A name consists of letters, digits, "-", "_" and ".", at most 64 of them.
    #[schemars(with = "std::collections::BTreeMap<String, Server>")]
    pub(crate) servers: IndexMap<String, Server>,
}

/// How tools are offered.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tools {
    /// "all" lists every tool; "search" lists the favourites and tools to find and call the others, which saves room in
    /// the model's context when there are many. Default "all".
    pub(crate) mode: Option<Mode>,
    /// With mode = "search": which tools are listed all the same. Patterns such as "github_*" for names as clients see
    /// them. Default none.
    pub(crate) favourites: Vec<String>,
    /// Whether tools may change behind your back: "off" offers whatever servers say; "first-use" remembers each tool as
    /// it was first seen and withholds it when it has changed; "locked" offers only what the lock file holds.
    /// Default "off".
    pub(crate) pin: Option<Pin>,
    /// The lock file. Default "tidegate.lock" beside this file.
    pub(crate) lock_file: Option<String>,
    /// "portable" makes names that every model takes: letters, digits, "_" and "-", at most name_length of them. "exact"
    /// keeps the servers' names as they are behind the prefix. Default "portable".
    pub(crate) names: Option<Names>,
    /// With names = "portable": how long names may be, 24 to 64. Models take 64 characters, and clients put something
    /// before the names, such as mcp__tidegate__. A file that Tidegate makes says 48. Default 64.
    pub(crate) name_length: Option<usize>,
    /// "portable" lists the arguments of tools in words that every client and agent framework understands; what does not
    /// fit the server's own schema does not fit those either. "exact" lists what servers write.
    /// Default "exact".
    pub(crate) schemas: Option<Schemas>,
    /// Lists larger than this are sent in pages: bytes, or a text such as "4MiB". Default "4MiB".
    pub(crate) page_bytes: Option<Size>,
    /// Whether clients may send several calls in one request (tools/call_batch). Default true.
    pub(crate) batch: Option<bool>,
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
