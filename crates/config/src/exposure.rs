//! What a gateway needs before other machines may reach it. The address may be from the file or from the command line: the
//! rules are the same.

use std::fmt;

use crate::auth_settings::AuthSettings;
use crate::listen::ListenAddress;
use crate::settings::ListenSettings;

/// Why a gateway must not listen on an address. Its `Display` is a sentence that says what to do instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExposureError {
    /// Others could call every tool.
    Unauthenticated,
    /// Others could restart and disable servers.
    Operable,
    /// Keys and tokens would be sent in the clear.
    Unencrypted,
    /// Clients could not be told where they are.
    Unnamed,
    /// No name by which clients may come is known.
    NoHost,
}

/// Whether a gateway with these settings may listen on an address.
pub fn check_exposure(
    address: &ListenAddress,
    listen: &ListenSettings,
    auth: Option<&AuthSettings>,
) -> Result<(), ExposureError> {
    if address.is_loopback() {
        return Ok(());
    }
    let is_encrypted = listen.tls.is_some() || !listen.trusted_proxies.is_empty();
    match auth {
        None if !listen.insecure => Err(ExposureError::Unauthenticated),
        Some(_) if !is_encrypted && !listen.insecure => Err(ExposureError::Unencrypted),
        // 2026-07-28 authorization: the metadata of a protected resource has its URL, which no request may decide.
        Some(auth) if has_issuers(auth) && listen.public_url.is_none() => Err(ExposureError::Unnamed),
        // Whatever name a request has would do, and a page in a browser chooses its own (DNS rebinding).
        _ if listen.hosts.is_empty() => Err(ExposureError::NoHost),
        _ => Ok(()),
    }
}

/// Whether the admin API may have this address. It changes things and names callers: nobody is let in without being known, whatever
/// `insecure` says.
pub fn check_admin_exposure(
    address: &ListenAddress,
    listen: &ListenSettings,
    auth: Option<&AuthSettings>,
) -> Result<(), ExposureError> {
    if !address.is_loopback() && auth.is_none() {
        return Err(ExposureError::Operable);
    }
    check_exposure(address, listen, auth)
}

/// Whether there are access tokens, and not only keys of the gateway.
fn has_issuers(auth: &AuthSettings) -> bool {
    !auth.jwt.is_empty() || !auth.introspection.is_empty()
}

impl ExposureError {
    /// The sentence for whoever can also choose options of the command line.
    pub fn with_options(self) -> String {
        self.sentence("use --insecure (in the configuration, insecure = true)", "--allow-host")
    }

    fn sentence(self, insecure: &str, hosts: &str) -> String {
        match self {
            ExposureError::Unauthenticated => format!(
                "other machines can reach this address, and anybody there could call every tool: add [auth] \
                 (tidegate keys add NAME says how), listen on 127.0.0.1, or {insecure}"
            ),
            ExposureError::Operable => "other machines can reach this address, and anybody there could read the log and disable servers: add \
                                        [auth] (tidegate keys add NAME says how), or listen on 127.0.0.1"
                .to_owned(),
            ExposureError::Unencrypted => format!(
                "other machines can reach this address, and keys and tokens would be sent unencrypted: add [tls] with \
                 cert and key, or trusted_proxies with the addresses of the proxy in front, or {insecure}"
            ),
            ExposureError::Unnamed => {
                "other machines can reach this address, and clients with access tokens need to be told its URL: set \
                 public_url, such as \"https://mcp.example.com\""
                    .to_owned()
            }
            ExposureError::NoHost => format!(
                "other machines can reach this address, and a web page could call the tools under any name (DNS \
                 rebinding): set public_url, such as \"https://mcp.example.com\", or {hosts} with the names by which \
                 clients come"
            ),
        }
    }
}

impl fmt::Display for ExposureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence("set insecure = true", "allow_hosts"))
    }
}

impl std::error::Error for ExposureError {}
