//! [`discover`]: from a refused request to the authorization server that gives out tokens for it.
//!
//! Nothing here is remembered: a server may move to another authorization server at any time, and only asking again
//! tells (2026-07-28 client-registration, Authorization Server Binding).

use url::Url;

use super::challenge::Asked;
use super::fault::{Fault, quote};
use super::http::Http;
use super::metadata::{ResourceMetadata, ServerMetadata};
use super::settings::Server;

/// How many of the authorization servers that a server names are tried.
const MAX_SERVERS: usize = 5;

/// Whom to ask for a token, and what for.
#[derive(Debug, Clone)]
pub(super) struct DiscoveredServer {
    pub(super) resource: ResourceMetadata,
    pub(super) server: ServerMetadata,
    /// The resource described itself. If not, this is as 2025-03-26 has it.
    pub(super) described: bool,
}

/// Finds the authorization server. Of several, those in `known` are tried first, because somebody has logged in there.
pub(super) async fn discover(
    http: &Http,
    server: &Server,
    asked: &Asked,
    known: &[&str],
) -> Result<DiscoveredServer, Fault> {
    let Some(resource) = resource_metadata(http, server, asked).await? else {
        let resource = ResourceMetadata { resource: server.text.clone(), ..ResourceMetadata::default() };
        return Ok(DiscoveredServer { resource, server: legacy(http, server).await?, described: false });
    };
    if resource.servers.is_empty() {
        let server = legacy(http, server).await?;
        return Ok(DiscoveredServer { resource, server, described: true });
    }
    let is_known = |issuer: &&String| known.contains(&issuer.as_str());
    let (first, then): (Vec<_>, Vec<_>) = resource.servers.iter().partition(is_known);
    let mut trouble = None;
    for issuer in first.into_iter().chain(then).take(MAX_SERVERS) {
        match server_metadata(http, issuer).await {
            Ok(server) => return Ok(DiscoveredServer { resource, server, described: true }),
            // The first one is the one that is meant; that the others fail too says less.
            Err(fault) => trouble = trouble.or(Some(fault)),
        }
    }
    Err(trouble.unwrap_or_else(|| Fault::Metadata("the server names no authorization server".to_owned())))
}

/// 2026-07-28 authorization-server-discovery, Protected Resource Metadata Discovery Requirements: where the challenge
/// says, else at the path of the server, else at its root.
async fn resource_metadata(
    http: &Http,
    server: &Server,
    asked: &Asked,
) -> Result<Option<ResourceMetadata>, Fault> {
    let mut places = Vec::new();
    if let Some(place) = &asked.resource_metadata {
        match http.allowed().check_own("address of the server's description", place) {
            Ok(place) => places.push(place),
            // Servers behind a proxy often get their own address wrong. The usual places are safe to try.
            Err(fault) => tracing::warn!(%fault),
        }
    }
    places.extend(well_known(&server.url));
    for place in places {
        if let Some(document) = http.document(place).await? {
            return ResourceMetadata::read(&document, &server.url).map(Some);
        }
    }
    Ok(None)
}

fn well_known(server: &Url) -> Vec<Url> {
    let at = |path: &str, query: Option<&str>| {
        let mut url = server.clone();
        url.set_path(&format!("/.well-known/oauth-protected-resource{path}"));
        url.set_query(query);
        url.set_fragment(None);
        url
    };
    let path = server.path().trim_end_matches('/');
    let mut places = vec![at(path, server.query()), at("", None)];
    places.dedup();
    places
}

/// The metadata of an issuer, at the places where it may be (2026-07-28 authorization-server-discovery).
pub(super) async fn server_metadata(http: &Http, issuer: &str) -> Result<ServerMetadata, Fault> {
    let url = http.allowed().check("authorization server", issuer)?;
    if url.query().is_some() || url.fragment().is_some() {
        let why = "the name of an authorization server has no query and no fragment";
        return Err(Fault::Address { what: "authorization server", address: issuer.to_owned(), why });
    }
    read_first(http, &url, &[issuer]).await?.ok_or_else(|| {
        Fault::Metadata(format!("the authorization server {} does not describe itself", quote(issuer)))
    })
}

/// Servers of 2025-03-26 are their own authorization servers.
async fn legacy(http: &Http, server: &Server) -> Result<ServerMetadata, Fault> {
    let origin = server.url.origin().ascii_serialization();
    let url = http.allowed().check("server, which would be its own authorization server,", &origin)?;
    // Nobody wrote this issuer down, we made it from the address; so the slash may be there or not.
    let found = read_first(http, &url, &[&origin, &format!("{origin}/")]).await?;
    Ok(found.unwrap_or_else(|| ServerMetadata::assumed(&origin)))
}

async fn read_first(http: &Http, url: &Url, issuers: &[&str]) -> Result<Option<ServerMetadata>, Fault> {
    let path = url.path().trim_end_matches('/');
    let mut places = vec![
        format!("/.well-known/oauth-authorization-server{path}"),
        format!("/.well-known/openid-configuration{path}"),
    ];
    if !path.is_empty() {
        places.push(format!("{path}/.well-known/openid-configuration"));
    }
    let mut trouble = None;
    for place in places {
        let mut at = url.clone();
        at.set_path(&place);
        match http.document(at).await {
            Ok(Some(document)) => return ServerMetadata::read(document, issuers).map(Some),
            Ok(None) => {}
            // Some servers fail at one of the places and have the document at the next.
            Err(fault) => trouble = Some(fault),
        }
    }
    trouble.map_or(Ok(None), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_description() {
        for (server, expected) in [
            ("https://a.example", &["https://a.example/.well-known/oauth-protected-resource"][..]),
            ("https://a.example/", &["https://a.example/.well-known/oauth-protected-resource"]),
            (
                "https://a.example/pub/mcp?t=1#x",
                &[
                    "https://a.example/.well-known/oauth-protected-resource/pub/mcp?t=1",
                    "https://a.example/.well-known/oauth-protected-resource",
                ],
            ),
        ] {
            let places = well_known(&Url::parse(server).unwrap());
            assert_eq!(places.iter().map(Url::as_str).collect::<Vec<_>>(), expected);
        }
    }
}
