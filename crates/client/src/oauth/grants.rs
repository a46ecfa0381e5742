//! Tokens without a browser: for the program itself, for its workload, or through an enterprise.

use std::sync::Arc;

use async_trait::async_trait;
use rmcp::transport::auth::enterprise::{
    EmaAuthorizationServer, EmaClientAssertion, EmaClientAssertionProvider, EmaClientAuthentication,
    EmaError, EmaExchangeRequest, EmaExchangeStage,
};

use super::bridge::Plain;
use super::client::Proof;
use super::fault::Fault;
use super::http::Http;
use super::jwt::SigningKey;
use super::reach::Reach;
use super::scopes::Scopes;
use super::secret::Secret;
use super::settings::{Assertion, Enterprise};
use super::store::TokenKind;
use super::token::{Form, Granted, JWT_BEARER, TokenEndpoint};

/// The program asks for itself (RFC 6749 section 4.4).
pub(super) async fn client_credentials(endpoint: &TokenEndpoint, scopes: &Scopes) -> Result<Granted, Fault> {
    if matches!(endpoint.proof, Proof::None) {
        let what = "a program that asks for itself has to prove who it is; configure a client secret or a private key";
        return Err(Fault::Settings(what.to_owned()));
    }
    endpoint.ask(form("client_credentials", scopes)).await
}

/// The platform has said who the program is (RFC 7523 section 2.1).
pub(super) async fn workload(
    endpoint: &TokenEndpoint,
    assertion: &Assertion,
    scopes: &Scopes,
) -> Result<Granted, Fault> {
    let mut form = form(JWT_BEARER, scopes);
    form.push(("assertion".to_owned(), assertion.get().await?.reveal().to_owned()));
    endpoint.ask(form).await
}

fn form(grant: &str, scopes: &Scopes) -> Form {
    let mut form = vec![("grant_type".to_owned(), grant.to_owned())];
    if !scopes.is_empty() {
        form.push(("scope".to_owned(), scopes.to_string()));
    }
    form
}

/// The identity provider of an enterprise gives a statement about the person (an ID-JAG), and the authorization server
/// a token for it. rmcp does both, and checks that the statement is about this very client, resource and server.
pub(super) async fn enterprise(
    endpoint: &TokenEndpoint,
    enterprise: &Enterprise,
    scopes: &Scopes,
) -> Result<Granted, Fault> {
    // Its address is from the configuration, not from a server.
    let idp_endpoint = enterprise.idp_token_endpoint.as_str();
    let anywhere = Reach::anywhere();
    anywhere.check("token endpoint of the identity provider", idp_endpoint)?;
    let (idp_http, http) = (Plain(Arc::new(Http::new(anywhere))), Plain(endpoint.http.clone()));
    let id_token = enterprise.id_token.get().await?;
    let idp_client = &enterprise.idp_client;
    let idp = EmaAuthorizationServer::new(&enterprise.idp_issuer, idp_endpoint, &idp_client.id)
        .with_client_authentication(authentication(&idp_client.auth.proof(None)));
    let server = EmaAuthorizationServer::new(&endpoint.issuer, endpoint.url.as_str(), &endpoint.client_id)
        .with_client_authentication(authentication(&endpoint.proof));
    let exchange = EmaExchangeRequest::new_with_id_token(idp, server, &endpoint.resource, id_token.reveal())
        .with_scopes(scopes.iter())
        .exchange(&idp_http, &http);
    let token = exchange.await.map_err(|error| fault(error, enterprise, endpoint))?;
    Ok(Granted {
        access: token.access_token.secret().as_str().into(),
        kind: TokenKind::Bearer,
        refresh: None,
        expires_in: token.expires_in.map(|life| life.as_secs()),
        scopes: (!token.scopes.is_empty()).then(|| token.scopes.into_iter().collect()),
    })
}

fn authentication(proof: &Proof) -> EmaClientAuthentication {
    let secret = |secret: &Secret| oauth2::ClientSecret::new(secret.reveal().to_owned());
    match proof {
        Proof::None => EmaClientAuthentication::None,
        Proof::Basic(own) => EmaClientAuthentication::ClientSecretBasic(secret(own)),
        Proof::Post(own) => EmaClientAuthentication::ClientSecretPost(secret(own)),
        Proof::Jwt(key) => EmaClientAuthentication::JwtAssertion(Arc::new(Signer(key.clone()))),
    }
}

struct Signer(SigningKey);

#[async_trait]
impl EmaClientAssertionProvider for Signer {
    async fn create_assertion(
        &self,
        server: &EmaAuthorizationServer,
    ) -> Result<EmaClientAssertion, Box<dyn std::error::Error + Send + Sync>> {
        Ok(EmaClientAssertion::new(self.0.assertion(&server.client_id, &server.issuer)?))
    }
}

fn fault(error: EmaError, enterprise: &Enterprise, endpoint: &TokenEndpoint) -> Fault {
    let host = |stage| match stage {
        EmaExchangeStage::IdentityProvider => enterprise.idp_issuer.clone(),
        _ => endpoint.issuer.clone(),
    };
    let denied = |stage, code: &str| Fault::Denied {
        host: host(stage),
        code: code.into(),
        description: String::new(),
    };
    match error {
        EmaError::InvalidGrant(stage) => denied(stage, "invalid_grant"),
        EmaError::InsufficientUserAuthentication(stage) => denied(stage, "insufficient_user_authentication"),
        EmaError::OAuthRejected { stage, code, .. } => denied(stage, code),
        EmaError::RequestFailed(stage) => {
            Fault::Network { host: host(stage), why: "the request failed".to_owned() }
        }
        EmaError::InvalidResponse { stage, message } => {
            Fault::Metadata(format!("{} gave an answer that is not trusted ({message})", host(stage)))
        }
        other => Fault::Settings(format!("the enterprise login is not set up right: {other}")),
    }
}
