//! Where operators come in: `[admin]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::Listen;

/// Where operators come in.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Admin {
    /// An address of its own for the admin API (/api) and /metrics, which are then not at the address of clients: a port, which only
    /// this machine can reach, or a host and a port. Beyond this machine it needs [auth], and [tls] or trusted_proxies. /health, /ready and
    /// /live are at both. Default: the address of clients.
    pub(crate) listen: Option<Listen>,
}
