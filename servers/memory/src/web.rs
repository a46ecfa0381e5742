//! HTTP to the outside: models, embeddings, and pages that are read.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use reqwest::ClientBuilder;
use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use crate::store::{Code, Fault, Result};

/// How long a connection may take to come about.
const CONNECT: Duration = Duration::from_secs(10);

/// Encryption with the certificates that the system trusts.
pub(crate) fn tls() -> Result<Arc<ClientConfig>> {
    static TLS: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(tls) = TLS.get() {
        return Ok(tls.clone());
    }
    // Named here, because a process may have no default provider, or another one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| {
            Fault::new(Code::Outside, format!("Certificates of servers cannot be checked: {error}"))
        })?
        .with_no_client_auth();
    Ok(TLS.get_or_init(|| Arc::new(config)).clone())
}

/// A client with the certificates of the system, which waits `within` for a whole answer and follows no redirect by
/// itself.
pub(crate) fn client(within: Duration) -> Result<ClientBuilder> {
    Ok(reqwest::Client::builder()
        .tls_backend_preconfigured(ClientConfig::clone(&*tls()?))
        .user_agent(concat!("tidegate/", env!("CARGO_PKG_VERSION")))
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(CONNECT)
        .timeout(within))
}
