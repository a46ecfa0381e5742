//! A login with a browser (the authorization code grant) and what renews it (the refresh grant).
//!
//! rmcp does both: PKCE, `state`, the address of the login page, `iss`, and the two token requests. A manager of rmcp
//! lives for one such step, so that nothing it remembers can get in the way of another.

use std::sync::Arc;

use oauth2::TokenResponse;
use rmcp::transport::auth::{
    AuthError, AuthorizationManager, AuthorizationMetadata, CredentialStore, InMemoryCredentialStore,
    OAuthClientConfig, OAuthTokenResponse, StoredCredentials,
};
use serde_json::json;
use tracing::instrument::WithSubscriber;
use tracing::subscriber::NoSubscriber;
use url::Url;

use super::browser::Visit;
use super::fault::{Fault, quote};
use super::metadata::ServerMetadata;
use super::scopes::Scopes;
use super::secret::Secret;
use super::settings::Server;
use super::store::TokenKind;
use super::token::{Granted, TokenEndpoint};

/// Sends a person to the login page, and turns what comes back into tokens.
pub(super) async fn login(
    server: &Server,
    metadata: &ServerMetadata,
    endpoint: Arc<TokenEndpoint>,
    scopes: &Scopes,
    visit: Box<dyn Visit>,
    assume_pkce: bool,
) -> Result<Granted, Fault> {
    let Some(page) = &metadata.authorization_endpoint else {
        let issuer = quote(&metadata.issuer);
        return Err(Fault::Metadata(format!("the authorization server {issuer} has no login page")));
    };
    endpoint.http.reach().check("login page", page)?;
    check_pkce(metadata, assume_pkce)?;
    let manager = manager(server, metadata, &endpoint, page, visit.redirect_uri()).await?;
    let scopes: Vec<&str> = scopes.iter().collect();
    let url =
        quiet(manager.get_authorization_url(&scopes)).await.map_err(|error| endpoint.take_trouble(error))?;
    let url = with_resource(&url, &endpoint.resource)?;
    let state = parameter(&url, "state")?.unwrap_or_default();
    let came_back = visit.visit(url.into()).await.map_err(|error| Fault::Browser(error.to_string()))?;
    let callback = Callback::read(&came_back, &state, metadata, &endpoint)?;
    let exchange =
        manager.exchange_code_for_token_with_issuer(&callback.code, &state, callback.iss.as_deref());
    let response = quiet(exchange).await.map_err(|error| endpoint.take_trouble(error))?;
    granted(&response).ok_or_else(|| endpoint.nonsense())
}

/// Gets new tokens for a refresh token.
pub(super) async fn refresh(
    server: &Server,
    endpoint: Arc<TokenEndpoint>,
    refresh: &Secret,
) -> Result<Granted, Fault> {
    let metadata = ServerMetadata { issuer: endpoint.issuer.clone(), ..ServerMetadata::default() };
    // Neither page nor redirect is used here, but rmcp wants to see addresses.
    let here = endpoint.url.to_string();
    let mut manager = manager(server, &metadata, &endpoint, &here, &here).await?;
    let had = json!({"access_token": "-", "token_type": "Bearer", "refresh_token": refresh.reveal()});
    let broken = |error: serde_json::Error| Fault::Metadata(error.to_string());
    let had: OAuthTokenResponse = serde_json::from_value(had).map_err(broken)?;
    let store = InMemoryCredentialStore::new();
    // Without scopes the new tokens have those of the old ones (RFC 6749 section 6).
    let stored = StoredCredentials::new(endpoint.client_id.clone(), Some(had), Vec::new(), None);
    store.save(stored).await.map_err(|error| endpoint.take_trouble(error))?;
    manager.set_credential_store(store);
    let response = quiet(manager.refresh_token()).await.map_err(|error| endpoint.take_trouble(error))?;
    granted(&response).ok_or_else(|| endpoint.nonsense())
}

/// 2026-07-28 security-considerations: a server that does not say that it knows PKCE must not be used.
fn check_pkce(metadata: &ServerMetadata, assume: bool) -> Result<(), Fault> {
    let known = match &metadata.code_challenge_methods_supported {
        Some(methods) => methods.iter().any(|method| method == "S256"),
        None => assume,
    };
    if known {
        return Ok(());
    }
    Err(Fault::Unsupported(format!(
        "the authorization server {} does not say that it protects logins with PKCE (S256), so none is made; \
         tell whoever runs it to add code_challenge_methods_supported to its description",
        quote(&metadata.issuer)
    )))
}

async fn manager(
    server: &Server,
    metadata: &ServerMetadata,
    endpoint: &Arc<TokenEndpoint>,
    page: &str,
    redirect_uri: &str,
) -> Result<AuthorizationManager, Fault> {
    let failed = |error: AuthError| endpoint.take_trouble(error);
    let made = AuthorizationManager::new_with_oauth_http_client(server.url.as_str(), endpoint.clone());
    let mut manager = made.await.map_err(failed)?;
    let mut own = AuthorizationMetadata::default();
    own.issuer = Some(metadata.issuer.clone());
    own.authorization_endpoint = page.to_owned();
    own.token_endpoint = endpoint.url.to_string();
    own.code_challenge_methods_supported = Some(vec!["S256".to_owned()]);
    let sends_iss = metadata.authorization_response_iss_parameter_supported == Some(true);
    own.additional_fields
        .insert("authorization_response_iss_parameter_supported".to_owned(), sends_iss.into());
    manager.set_metadata(own);
    // No secret: the endpoint adds it, and rmcp cannot show it to anybody.
    manager.configure_client(OAuthClientConfig::new(&endpoint.client_id, redirect_uri)).map_err(failed)?;
    Ok(manager)
}

/// rmcp logs authorization codes.
async fn quiet<T>(step: impl Future<Output = T>) -> T {
    step.with_subscriber(NoSubscriber::new()).await
}

/// The resource to the letter: rmcp knows only the address, to which `Url` may have added a slash.
fn with_resource(url: &str, resource: &str) -> Result<Url, Fault> {
    let mut url =
        Url::parse(url).map_err(|_| Fault::Metadata("the login page has no valid address".to_owned()))?;
    let others: Vec<(String, String)> =
        url.query_pairs().filter(|(name, _)| name != "resource").map(|(n, v)| (n.into(), v.into())).collect();
    url.query_pairs_mut().clear().extend_pairs(others).append_pair("resource", resource);
    Ok(url)
}

/// A parameter of an address, which must not be there twice.
fn parameter(url: &Url, name: &str) -> Result<Option<String>, Fault> {
    let mut all = url.query_pairs().filter(|(own, _)| own == name).map(|(_, value)| value.into_owned());
    match (all.next(), all.next()) {
        (_, Some(_)) => Err(Fault::Callback("it says something twice")),
        (found, None) => Ok(found),
    }
}

struct Callback {
    code: String,
    iss: Option<String>,
}

impl Callback {
    /// Reads where the browser came back to. Nothing in it counts, not even an error, before `state` and `iss` are
    /// known to be right (2026-07-28 authorization, Authorization Response Validation).
    fn read(
        came_back: &str,
        state: &str,
        metadata: &ServerMetadata,
        endpoint: &TokenEndpoint,
    ) -> Result<Callback, Fault> {
        let url = Url::parse(came_back).map_err(|_| Fault::Callback("it is not an address"))?;
        if state.is_empty() || parameter(&url, "state")?.as_deref() != Some(state) {
            return Err(Fault::Callback("it does not belong to this login"));
        }
        let iss = parameter(&url, "iss")?;
        match &iss {
            Some(iss) if *iss != metadata.issuer => {
                return Err(Fault::Callback("it is from another authorization server"));
            }
            None if metadata.authorization_response_iss_parameter_supported == Some(true) => {
                return Err(Fault::Callback("it does not say which authorization server it is from"));
            }
            _ => {}
        }
        if let Some(code) = parameter(&url, "error")? {
            let description = parameter(&url, "error_description")?.unwrap_or_default();
            return Err(Fault::Denied { host: super::http::host(&endpoint.url), code, description });
        }
        match parameter(&url, "code")? {
            Some(code) if !code.is_empty() => Ok(Callback { code, iss }),
            _ => Err(Fault::Callback("it holds no code")),
        }
    }
}

fn granted(response: &OAuthTokenResponse) -> Option<Granted> {
    Some(Granted {
        access: response.access_token().secret().as_str().into(),
        kind: TokenKind::named(response.token_type().as_ref())?,
        refresh: response.refresh_token().map(|token| token.secret().as_str().into()),
        expires_in: response.expires_in().map(|life| life.as_secs()),
        scopes: response.scopes().map(|all| all.iter().map(|scope| scope.to_string()).collect()),
    })
}
