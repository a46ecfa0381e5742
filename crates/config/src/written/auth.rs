//! Who may call, and how the connection is protected: `[auth]` and `[tls]`.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Size, Texts, Time};

/// The certificate to serve HTTPS with.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tls {
    /// The file of the certificate and those between it and the root, in PEM. Read again when it changes.
    pub(crate) cert: Option<String>,
    /// The file of the private key, in PEM. Read again when it changes.
    pub(crate) key: Option<String>,
}

/// Who may call. With this section, every client needs an API key or an access token; only a client over stdio is the local
/// user.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Auth {
    /// The file of API keys, which tidegate keys add, list, revoke and rotate manage. Read again when it changes.
    pub(crate) keys: Option<String>,
    /// Scopes that every access token needs. Clients are told to ask for them. Default none.
    pub(crate) scopes: Vec<String>,
    /// How many bytes of max_buffered one caller may hold: bytes, or a string such as "64MiB". Default: a quarter of
    /// max_buffered.
    pub(crate) max_buffered: Option<Size>,
    /// Scopes that tools need in addition: patterns such as "fs_write_*" for names as clients see them, by scope. Default
    /// none.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub(crate) tool_scopes: IndexMap<String, Vec<String>>,
    /// Scopes that include others, by scope. Default none.
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub(crate) scope_includes: IndexMap<String, Vec<String>>,
    /// The issuers whose JWT access tokens are accepted.
    pub(crate) jwt: Vec<Jwt>,
    /// Who is asked about opaque tokens, by token introspection (RFC 7662).
    pub(crate) introspection: Vec<Introspection>,
}

/// An issuer of JWT access tokens.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Jwt {
    /// The issuer, exactly as it is in the tokens (iss), such as "https://id.example.com".
    pub(crate) issuer: Option<String>,
    /// Which audience (aud) tokens for the default endpoint must have: one, or a list of which one is enough. Default: the
    /// URL of the endpoint.
    pub(crate) audience: Option<Texts>,
    /// Where the keys of the issuer are: a URL or a file. Default: where the metadata of the issuer says.
    pub(crate) jwks: Option<String>,
    /// The signature algorithms that are accepted. Default: RS256, RS384, RS512, PS256, PS384, PS512, ES256, ES384 and
    /// EdDSA.
    pub(crate) algorithms: Option<Vec<String>>,
    /// The claim that names the tenant, or a path with dots such as "org.id". A token without it is refused. Default: no
    /// tenants.
    pub(crate) tenant: Option<String>,
    /// The claim that has the roles, or a path with dots such as "realm_access.roles". Default none.
    pub(crate) roles: Option<String>,
    /// The claim that says who it is. Default "sub".
    pub(crate) subject: Option<String>,
    /// The claim that has the scopes. Default "scope", else "scp".
    pub(crate) scopes: Option<String>,
    /// By how much the clock of the issuer may differ, at most "5m". Default "60s".
    pub(crate) clock_skew: Option<Time>,
}

/// An authorization server that is asked about tokens.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Introspection {
    /// The issuer of the tokens, such as "https://id.example.com".
    pub(crate) issuer: Option<String>,
    /// The introspection endpoint, such as "https://id.example.com/introspect".
    pub(crate) url: Option<String>,
    /// The client that asks.
    pub(crate) client_id: Option<String>,
    /// The secret of that client, such as "${file:secrets/client}".
    pub(crate) client_secret: Option<String>,
    /// Which audience (aud) tokens for the default endpoint must have: one, or a list of which one is enough. Default: the
    /// URL of the endpoint.
    pub(crate) audience: Option<Texts>,
    /// The member that names the tenant, or a path with dots such as "org.id". A token without it is refused. Default: no
    /// tenants.
    pub(crate) tenant: Option<String>,
    /// The member that has the roles, or a path with dots. Default none.
    pub(crate) roles: Option<String>,
    /// The member that says who it is. Default "sub".
    pub(crate) subject: Option<String>,
    /// The member that has the scopes. Default "scope", else "scp".
    pub(crate) scopes: Option<String>,
}
