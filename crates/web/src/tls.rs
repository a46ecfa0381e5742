//! TLS with the certificates that the system trusts. Reading them takes a while, so the process shares one configuration.

use std::sync::{Arc, OnceLock};

use rustls::ClientConfig;
use rustls_platform_verifier::BuilderVerifierExt;

use crate::Error;

/// The configuration that all connections share.
pub fn tls() -> Result<Arc<ClientConfig>, Error> {
    static SHARED: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = SHARED.get() {
        return Ok(config.clone());
    }
    // Named here, because a process may have no default provider, or another one.
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .and_then(BuilderVerifierExt::with_platform_verifier)
        .map_err(|error| Error::Certificates(error.to_string()))?
        .with_no_client_auth();
    Ok(SHARED.get_or_init(|| Arc::new(config)).clone())
}
