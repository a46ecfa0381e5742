//! Who may call: [`AuthSettings`], what `[auth]` means.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use tidegate_service::secrets::Secret;

use tidegate_policy::Patterns;

/// How callers are authenticated. Where there is one, nobody is served who is not.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AuthSettings {
    /// The file of API keys, if there are any.
    pub keys: Option<PathBuf>,
    /// The issuers whose JWT access tokens are accepted.
    pub jwt: Vec<JwtSettings>,
    /// Who is asked about tokens that only their issuer can read (RFC 7662).
    pub introspection: Vec<IntrospectionSettings>,
    /// Which scopes are needed for what.
    pub scopes: ScopeSettings,
    /// How many bytes of the budget of the process one principal may hold; `None` for a quarter of it.
    pub max_buffered: Option<usize>,
}

/// One issuer of JWT access tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JwtSettings {
    /// Its identifier, compared with `iss` character by character.
    pub issuer: String,
    /// What `aud` must have one of at the default endpoint. None: the URL of the endpoint.
    pub audience: Vec<String>,
    /// Where its keys are.
    pub jwks: JwksSource,
    /// The signature algorithms that are accepted, by their names in RFC 7518. Never `none`, never one with a shared secret.
    pub algorithms: Vec<String>,
    /// Which claims say what.
    pub claims: ClaimSettings,
    /// By how much clocks may differ. Default 60 s.
    pub clock_skew: Duration,
}

/// Where the keys of an issuer are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JwksSource {
    /// Where the issuer's metadata says.
    Discovered,
    /// At this URL.
    Url(String),
    /// In this file.
    File(PathBuf),
}

/// An authorization server that is asked about tokens.
#[derive(Debug, Clone, PartialEq)]
pub struct IntrospectionSettings {
    /// Its identifier.
    pub issuer: String,
    /// Its introspection endpoint.
    pub url: String,
    /// The client that asks.
    pub client_id: String,
    /// The secret of that client.
    pub client_secret: Secret,
    /// As for [`JwtSettings`].
    pub audience: Vec<String>,
    /// Which claims say what.
    pub claims: ClaimSettings,
}

/// Which claims of a token say what. Each is the name of a claim, or a path with dots into objects; a claim with exactly that name
/// goes first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClaimSettings {
    /// Who it is. Default `sub`.
    pub subject: Option<String>,
    /// The tenant. Where it is set, a token without it is refused.
    pub tenant: Option<String>,
    /// The roles: a list, or words in a text.
    pub roles: Option<String>,
    /// The scopes: a list, or words in a text. Default `scope`, else `scp`.
    pub scopes: Option<String>,
}

/// Which scopes access tokens need.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScopeSettings {
    /// For everything.
    pub required: Vec<String>,
    /// For tools with such names, in addition.
    pub tools: Vec<(String, Patterns)>,
    /// Scopes that include others.
    pub includes: BTreeMap<String, Vec<String>>,
}

/// The files of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsSettings {
    /// The chain of certificates, in PEM.
    pub cert: PathBuf,
    /// The private key, in PEM.
    pub key: PathBuf,
}
