//! [`ProtectedResource`]: an endpoint as OAuth sees it, and its metadata (RFC 9728).

use std::sync::Arc;

use bytes::Bytes;
use tidegate_edge::http::Challenge;

use crate::issuers::Issuers;
use crate::scopes::Scopes;

/// Where metadata of protected resources is.
pub(crate) const WELL_KNOWN: &str = "/.well-known/oauth-protected-resource";

/// An endpoint that tokens are for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProtectedResource {
    /// Its name; `None` for the default one.
    pub endpoint: Option<Arc<str>>,
    /// Its path, for example `/research/mcp`.
    pub path: String,
    /// Its URL as clients know it, made of `public_url` and the path.
    pub url: String,
    /// What `aud` of a token must have one of. None: the URL. For the default endpoint, what an issuer has in its settings goes
    /// first.
    pub audience: Vec<String>,
}

/// A [`ProtectedResource`] with what clients are told of it.
#[derive(Debug)]
pub(crate) struct Resource {
    pub(crate) endpoint: Option<Arc<str>>,
    pub(crate) path: String,
    audience: Vec<String>,
    pub(crate) metadata_path: String,
    /// The document and where it is; `None` if there is nobody to get tokens from.
    pub(crate) metadata: Option<(String, Bytes)>,
    scopes: Vec<Arc<str>>,
}

impl Resource {
    pub(crate) fn new(resource: ProtectedResource, issuers: &Issuers, scopes: &Scopes) -> Resource {
        let ProtectedResource { endpoint, path, url, mut audience } = resource;
        if audience.is_empty() {
            audience.push(url.clone());
        }
        // RFC 9728, section 3.1: between the host and the path.
        let metadata_path = format!("{WELL_KNOWN}{}", if path == "/" { "" } else { &path });
        let servers = issuers.names();
        let metadata = (!servers.is_empty()).then(|| {
            let mut document = serde_json::json!({
                "resource": url,
                "authorization_servers": servers,
                "bearer_methods_supported": ["header"],
                "resource_name": match &endpoint {
                    Some(name) => format!("Tidegate: {name}"),
                    None => "Tidegate".to_owned(),
                },
            });
            if !scopes.required.is_empty() {
                let words: Vec<&str> = scopes.required.iter().map(|scope| &**scope).collect();
                document["scopes_supported"] = words.into();
            }
            (format!("{}{metadata_path}", origin(&url)), Bytes::from(document.to_string()))
        });
        Resource { endpoint, path, audience, metadata_path, metadata, scopes: scopes.required.clone() }
    }

    /// Whether a token for these audiences is for this resource. `of_issuer` is what the settings of its issuer say of the default
    /// endpoint.
    pub(crate) fn is_meant(&self, audiences: &[Arc<str>], of_issuer: &[String]) -> bool {
        let accepted = self.accepted(of_issuer);
        audiences.iter().any(|audience| accepted.iter().any(|one| **one == **audience))
    }

    /// The audiences of which a token must have one.
    pub(crate) fn accepted<'a>(&'a self, of_issuer: &'a [String]) -> &'a [String] {
        if self.endpoint.is_none() && !of_issuer.is_empty() { of_issuer } else { &self.audience }
    }

    /// The challenge with where to get a token, and the scopes to ask for. With API keys alone there is nothing to say.
    pub(crate) fn complete(&self, challenge: Challenge) -> Challenge {
        match &self.metadata {
            Some(_) => self.with_scopes(challenge, self.base_scopes()),
            None => challenge,
        }
    }

    /// The challenge with where to get a token, and all scopes that an operation needs.
    pub(crate) fn with_scopes(
        &self,
        challenge: Challenge,
        scopes: impl IntoIterator<Item = String>,
    ) -> Challenge {
        let challenge = challenge.scopes(scopes);
        match &self.metadata {
            Some((url, _)) => challenge.resource_metadata(url.clone()),
            None => challenge,
        }
    }

    /// The scopes that everything needs.
    pub(crate) fn base_scopes(&self) -> impl Iterator<Item = String> {
        self.scopes.iter().map(|scope| scope.to_string())
    }
}

/// Scheme and authority of a URL.
fn origin(url: &str) -> &str {
    let start = url.find("://").map_or(0, |at| at + 3);
    let end = url[start..].find('/').map_or(url.len(), |at| start + at);
    &url[..end]
}
