//! What servers say about themselves: [`ResourceMetadata`] (RFC 9728) and [`ServerMetadata`] (RFC 8414).
//!
//! Identifiers (`resource`, `issuer`) stay the very text that was received: they are compared and sent as they are.

use serde::Deserialize;
use serde_json::{Map, Value};
use url::Url;

use super::fault::{Fault, quote};
use super::scopes::Scopes;

/// What an MCP server says about itself.
#[derive(Debug, Clone, Default)]
pub(super) struct ResourceMetadata {
    /// Its name for itself, which tokens are asked for.
    pub(super) resource: String,
    /// The issuers of its authorization servers.
    pub(super) servers: Vec<String>,
    /// The scopes for basic use.
    pub(super) scopes: Scopes,
    /// Tokens must be bound to a key.
    pub(super) needs_dpop: bool,
}

impl ResourceMetadata {
    /// Reads a document. It counts only if it is about `server` (RFC 9728 section 3.3): who could speak for another
    /// server could have tokens made for it.
    pub(super) fn read(document: &Map<String, Value>, server: &Url) -> Result<ResourceMetadata, Fault> {
        let host = super::http::host(server);
        let Some(resource) = document.get("resource").and_then(Value::as_str) else {
            return Err(Fault::Metadata(format!("the description of {host} does not say what it describes")));
        };
        if !describes(resource, server) {
            let resource = quote(resource);
            return Err(Fault::Metadata(format!(
                "the description of {host} is one of {resource}, so it is not used"
            )));
        }
        Ok(ResourceMetadata {
            resource: resource.to_owned(),
            servers: strings(document.get("authorization_servers")).unwrap_or_default(),
            scopes: strings(document.get("scopes_supported")).unwrap_or_default().into_iter().collect(),
            needs_dpop: document.get("dpop_bound_access_tokens_required") == Some(&Value::Bool(true)),
        })
    }
}

/// Whether `resource` is the server, or a part of the same host that the server is in.
fn describes(resource: &str, server: &Url) -> bool {
    let Ok(resource) = Url::parse(resource) else { return false };
    if resource.fragment().is_some() || resource.origin() != server.origin() {
        return false;
    }
    if resource.query().is_some() && resource.query() != server.query() {
        return false;
    }
    let base = resource.path().trim_end_matches('/');
    server.path().strip_prefix(base).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// What an authorization server says about itself. Endpoints are wishes: see [`AllowedAddresses`](super::allowed_addresses::AllowedAddresses).
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
pub(super) struct ServerMetadata {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: Option<String>,
    pub(super) registration_endpoint: Option<String>,
    pub(super) scopes_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) dpop_signing_alg_values_supported: Option<Vec<String>>,
    pub(super) authorization_response_iss_parameter_supported: Option<bool>,
    pub(super) client_id_metadata_document_supported: Option<bool>,
    /// Nobody said this: it is what 2025-03-26 assumes of a server that says nothing.
    #[serde(skip)]
    pub(super) assumed: bool,
}

impl ServerMetadata {
    /// Reads a document that was found for one of `issuers`. 2026-07-28 authorization-server-discovery: the issuer in
    /// it must be identical, else somebody speaks for somebody else.
    pub(super) fn read(document: Map<String, Value>, issuers: &[&str]) -> Result<ServerMetadata, Fault> {
        let asked = issuers.first().copied().unwrap_or_default();
        let metadata: ServerMetadata = serde_json::from_value(Value::Object(document)).map_err(|error| {
            Fault::Metadata(format!(
                "the description of the authorization server {} is wrong: {error}",
                quote(asked)
            ))
        })?;
        if issuers.contains(&metadata.issuer.as_str()) {
            return Ok(metadata);
        }
        Err(Fault::Metadata(format!(
            "the authorization server {} calls itself {:?}, so it is not trusted",
            quote(asked),
            quote(&metadata.issuer)
        )))
    }

    /// 2025-03-26 authorization, Fallbacks for Servers without Metadata Discovery.
    pub(super) fn assumed(origin: &str) -> ServerMetadata {
        ServerMetadata {
            issuer: origin.to_owned(),
            authorization_endpoint: Some(format!("{origin}/authorize")),
            token_endpoint: Some(format!("{origin}/token")),
            registration_endpoint: Some(format!("{origin}/register")),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            assumed: true,
            ..ServerMetadata::default()
        }
    }

    /// Whether refresh tokens are to be had by asking for `offline_access`.
    pub(super) fn offers_offline(&self) -> bool {
        self.scopes_supported.as_ref().is_some_and(|all| all.iter().any(|scope| scope == "offline_access"))
    }

    /// Whether proofs of possession can be made with the only kind of key that we make.
    pub(super) fn takes_dpop(&self) -> bool {
        self.dpop_signing_alg_values_supported
            .as_ref()
            .is_some_and(|all| all.iter().any(|alg| alg == "ES256"))
    }

    /// Where tokens are asked for.
    pub(super) fn token_endpoint(&self) -> Result<&str, Fault> {
        self.token_endpoint.as_deref().ok_or_else(|| {
            Fault::Metadata(format!(
                "the authorization server {} names no token endpoint",
                quote(&self.issuer)
            ))
        })
    }
}

fn strings(value: Option<&Value>) -> Option<Vec<String>> {
    let all = value?.as_array()?;
    Some(all.iter().filter_map(|one| one.as_str().map(str::to_owned)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_describes_a_server() {
        for (resource, server, expected) in [
            ("https://a.example/mcp", "https://a.example/mcp", true),
            ("https://A.example:443/mcp", "https://a.example/mcp", true),
            ("https://a.example", "https://a.example/mcp", true),
            ("https://a.example/", "https://a.example", true),
            ("https://a.example/mcp/", "https://a.example/mcp", true),
            ("https://a.example/mcp", "https://a.example/mcp/v1", true),
            ("https://a.example/mcp", "https://a.example/mcp?tenant=1", true),
            ("https://a.example/mcp?tenant=1", "https://a.example/mcp?tenant=2", false),
            ("https://a.example/mcp", "https://a.example/mcp2", false),
            ("https://a.example/mcp/v1", "https://a.example/mcp", false),
            ("https://a.example/other", "https://a.example/mcp", false),
            ("http://a.example/mcp", "https://a.example/mcp", false),
            ("https://a.example:8443/mcp", "https://a.example/mcp", false),
            ("https://evil.example/mcp", "https://a.example/mcp", false),
            ("https://a.example/mcp#x", "https://a.example/mcp", false),
            ("a.example", "https://a.example/mcp", false),
        ] {
            assert_eq!(describes(resource, &Url::parse(server).unwrap()), expected, "{resource} of {server}");
        }
    }

    #[test]
    fn issuers_are_compared_to_the_letter() {
        let document = |issuer: &str| Map::from_iter([("issuer".to_owned(), Value::from(issuer))]);
        let read = |issuer: &str| ServerMetadata::read(document(issuer), &["https://a.example"]);
        assert!(read("https://a.example").is_ok());
        for other in
            ["https://a.example/", "https://A.example", "https://a.example:443", "https://b.example", ""]
        {
            assert!(read(other).is_err(), "{other}");
        }
    }
}
