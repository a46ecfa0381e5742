//! [`TokenStore`]: where tokens outlive a process, and where processes share them.

mod file;
mod lock;
mod memory;

use std::any::Any;
use std::time::Duration;

use futures_util::future::BoxFuture;
use serde::{Deserialize, Serialize};
use tidegate_protocol::Error;

pub use file::FileStore;
pub use memory::MemoryStore;

use super::scopes::Scopes;
use tidegate_service::secrets::Secret;

/// Keeps what was given out for each server, apart for each authorization server: what one of them gave must never be
/// shown to another.
pub trait TokenStore: Send + Sync + 'static {
    /// All that is kept for the MCP server at this address, the latest first.
    fn load<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<Vec<Credentials>, Error>>;

    /// Keeps these, in place of those for the same server and issuer.
    fn save<'a>(&'a self, credentials: &'a Credentials) -> BoxFuture<'a, Result<(), Error>>;

    /// Forgets what is kept for a server, as for a logout. Says how many entries there were.
    fn remove<'a>(&'a self, server: &'a str) -> BoxFuture<'a, Result<usize, Error>>;

    /// Waits until nobody else is getting tokens for this server, in any process that shares the store, and keeps
    /// others out until the guard is dropped. Gives up after `wait`.
    fn lock<'a>(&'a self, server: &'a str, wait: Duration) -> BoxFuture<'a, Result<StoreGuard, Error>>;

    /// Where these are kept, for people.
    fn place(&self, credentials: &Credentials) -> String;
}

/// Keeps others from getting tokens for the same server while it lives.
pub struct StoreGuard(#[expect(dead_code, reason = "only its drop counts")] Box<dyn Any + Send>);

impl StoreGuard {
    /// A guard that drops `inner` when it is dropped.
    pub fn new(inner: impl Any + Send) -> StoreGuard {
        StoreGuard(Box::new(inner))
    }
}

impl std::fmt::Debug for StoreGuard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StoreGuard")
    }
}

/// What one authorization server gave for one MCP server. Its `Debug` shows no secrets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Credentials {
    /// The address of the MCP server.
    pub server: String,
    /// The authorization server, as it calls itself.
    pub issuer: String,
    /// Where it gives out tokens.
    pub token_endpoint: String,
    /// What the tokens are for, as the MCP server calls itself.
    pub resource: String,
    /// Who we are there.
    pub registration: Registration,
    /// The tokens; none before the first, and after the last was refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<Tokens>,
    /// The scopes that were asked for, all together.
    #[serde(default)]
    pub requested: Scopes,
    /// The scopes that the tokens have.
    #[serde(default)]
    pub granted: Scopes,
    /// The key that the tokens are bound to (RFC 9449), if they are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_key: Option<Secret>,
    /// When this was written, in milliseconds since 1970.
    #[serde(default)]
    pub saved_at: u64,
}

/// A client as an authorization server knows it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Registration {
    /// The id of the client.
    pub client_id: String,
    /// How it came to be known.
    pub origin: Origin,
    /// The secret of the client, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<Secret>,
    /// How the client proves who it is, for example `none` or `client_secret_basic`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth_method: Option<String>,
    /// When the secret expires, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
    /// Where the browser is sent back to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub redirect_uri: Option<String>,
}

/// How a client came to be known to an authorization server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The user configured it.
    Configured,
    /// Its id is the address of a document that describes it.
    Document,
    /// It was registered on the fly (RFC 7591).
    Dynamic,
}

/// Tokens and how long they are good.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Tokens {
    /// The access token.
    pub access: Secret,
    /// How it is sent.
    pub kind: TokenKind,
    /// What new ones are got with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refresh: Option<Secret>,
    /// When it was given out, in seconds since 1970.
    pub issued_at: u64,
    /// When it expires, if that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<u64>,
}

/// How an access token is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum TokenKind {
    /// As it is (RFC 6750).
    Bearer,
    /// With a proof that the sender has the key (RFC 9449).
    #[serde(rename = "DPoP")]
    Dpop,
}

impl TokenKind {
    /// The kind that a `token_type` names.
    pub(super) fn named(name: &str) -> Option<TokenKind> {
        [TokenKind::Bearer, TokenKind::Dpop].into_iter().find(|kind| kind.scheme().eq_ignore_ascii_case(name))
    }

    /// The scheme in the `Authorization` header.
    pub(super) fn scheme(self) -> &'static str {
        match self {
            TokenKind::Bearer => "Bearer",
            TokenKind::Dpop => "DPoP",
        }
    }
}

impl Tokens {
    /// When to get new ones: a minute before these expire, or after half of a shorter life, so that a request on its way
    /// never carries an expired one.
    pub fn renew_at(&self) -> Option<u64> {
        let expires = self.expires_at?;
        Some(expires - (expires.saturating_sub(self.issued_at) / 2).min(60))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_renewed_in_time() {
        for (life, renewed) in [(3600, 3540), (120, 60), (100, 50), (30, 15), (1, 1), (0, 0)] {
            let tokens = Tokens {
                access: "a".into(),
                kind: TokenKind::Bearer,
                refresh: None,
                issued_at: 1000,
                expires_at: Some(1000 + life),
            };
            assert_eq!(tokens.renew_at(), Some(1000 + renewed), "{life}");
        }
    }
}
