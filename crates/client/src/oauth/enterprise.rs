//! Enterprise-managed authorization: the identity provider of an enterprise gives a statement about the person (an
//! identity assertion, ID-JAG, by RFC 8693), and the authorization server a token for it (RFC 7523).
//!
//! The statement is for this very client, resource and authorization server, or it is not passed on. Its signature is
//! the business of the authorization server; we have it from the identity provider itself.

use std::sync::Arc;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tidegate_web::is_local;
use url::Url;

use super::allowed_addresses::AllowedAddresses;
use super::client::Proof;
use super::fault::Fault;
use super::http::Http;
use super::jwt::{decode, now};
use super::scopes::Scopes;
use super::settings::Enterprise;
use super::store::TokenKind;
use super::token::{Form, Granted, JWT_BEARER, TokenEndpoint, form};
use tidegate_service::secrets::Secret;

const TOKEN_EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";
const ID_TOKEN: &str = "urn:ietf:params:oauth:token-type:id_token";
const ID_JAG: &str = "urn:ietf:params:oauth:token-type:id-jag";
/// How far ahead of ours the clock of the identity provider may be, in seconds.
const CLOCK_SKEW: u64 = 60;

/// Gets a token from the authorization server of `endpoint` for somebody who is logged in to the identity provider.
pub(super) async fn enterprise(
    endpoint: &TokenEndpoint,
    enterprise: &Enterprise,
    scopes: &Scopes,
) -> Result<Granted, Fault> {
    let resource = endpoint.resource.as_deref().unwrap_or_default();
    // Its address is from the configuration, not from a server.
    let anywhere = AllowedAddresses::anywhere();
    let url =
        anywhere.check("token endpoint of the identity provider", enterprise.idp_token_endpoint.as_str())?;
    let id_token = enterprise.id_token.get().await?;
    let idp = TokenEndpoint {
        http: Arc::new(Http::new(anywhere)),
        url,
        issuer: enterprise.idp_issuer.clone(),
        client_id: enterprise.idp_client.id.clone(),
        proof: enterprise.idp_client.auth.proof(None),
        resource: endpoint.resource.clone(),
        dpop: None,
    };
    // Only the statement carries authority: to name the resource or scopes again could undo what it leaves out.
    let server = TokenEndpoint {
        http: endpoint.http.clone(),
        url: endpoint.url.clone(),
        issuer: endpoint.issuer.clone(),
        client_id: endpoint.client_id.clone(),
        proof: endpoint.proof.clone(),
        resource: None,
        dpop: None,
    };
    check_settings(&idp, &server, resource, &id_token, scopes)
        .map_err(|why| Fault::Settings(format!("the enterprise login is not set up right: {why}")))?;

    let mut exchange = form(&[
        ("grant_type", TOKEN_EXCHANGE),
        ("requested_token_type", ID_JAG),
        ("subject_token_type", ID_TOKEN),
        ("subject_token", id_token.reveal()),
        ("audience", &server.issuer),
    ]);
    if !scopes.is_empty() {
        exchange.push(("scope".to_owned(), scopes.to_string()));
    }
    let given: Exchanged = ask(&idp, exchange).await?;
    let expected = ExpectedClaims {
        idp: &idp.issuer,
        server: &server.issuer,
        client: &server.client_id,
        resource,
        scopes,
    };
    let granted = given.check(&expected, now()).map_err(|why| untrusted(&idp, why))?;

    let redemption = form(&[("grant_type", JWT_BEARER), ("assertion", &given.access_token)]);
    let token: Redeemed = ask(&server, redemption).await?;
    token.check(resource, granted).map_err(|why| untrusted(&server, why))
}

/// Whether all that goes into the requests makes sense.
fn check_settings(
    idp: &TokenEndpoint,
    server: &TokenEndpoint,
    resource: &str,
    id_token: &Secret,
    scopes: &Scopes,
) -> Result<(), &'static str> {
    let addresses = [resource, &idp.issuer, idp.url.as_str(), &server.issuer, server.url.as_str()];
    if !addresses.into_iter().all(is_safe) {
        return Err("all addresses must be https, or http on this machine, without a password or fragment");
    }
    if idp.issuer == server.issuer {
        return Err("the identity provider and the authorization server must not be the same");
    }
    if [&idp.client_id, &server.client_id].into_iter().any(|id| id.trim().is_empty()) {
        return Err("a client id is empty");
    }
    if id_token.reveal().trim().is_empty() {
        return Err("the ID token is empty");
    }
    let empty = |proof: &Proof| matches!(proof, Proof::Basic(own) | Proof::Post(own) if own.reveal().trim().is_empty());
    if empty(&idp.proof) || empty(&server.proof) {
        return Err("a client secret is empty");
    }
    if !scopes.iter().all(is_scope) {
        return Err("a scope has characters that scopes cannot have");
    }
    Ok(())
}

fn is_safe(address: &str) -> bool {
    Url::parse(address).is_ok_and(|url| {
        let local = url.host().is_some_and(|host| is_local(&host));
        (url.scheme() == "https" || url.scheme() == "http" && local)
            && url.username().is_empty()
            && url.password().is_none()
            && url.fragment().is_none()
    })
}

/// Asks for a token and reads the answer as what it must be.
async fn ask<T: DeserializeOwned>(endpoint: &TokenEndpoint, mut form: Form) -> Result<T, Fault> {
    if matches!(endpoint.proof, Proof::Jwt(_)) {
        // RFC 7521 section 4.2 leaves it open; here servers look it up by the id.
        form.push(("client_id".to_owned(), endpoint.client_id.clone()));
    }
    let body = endpoint.exchange(form).await?;
    serde_json::from_slice(&body).map_err(|_| untrusted(endpoint, "it is not a token response"))
}

fn untrusted(endpoint: &TokenEndpoint, why: &str) -> Fault {
    Fault::Metadata(format!("{} gave an answer that is not trusted ({why})", endpoint.issuer))
}

/// What the statement must be about.
struct ExpectedClaims<'a> {
    idp: &'a str,
    server: &'a str,
    client: &'a str,
    resource: &'a str,
    scopes: &'a Scopes,
}

/// One name, or a list of them.
#[derive(Deserialize)]
#[serde(untagged)]
enum Names {
    One(String),
    Many(Vec<String>),
}

impl Names {
    /// Whether this is the only one.
    fn is_only(&self, name: &str) -> bool {
        match self {
            Names::One(own) => own == name,
            Names::Many(all) => all.as_slice() == [name],
        }
    }
}

/// The answer of the identity provider.
#[derive(Deserialize)]
struct Exchanged {
    access_token: String,
    issued_token_type: String,
    token_type: String,
    resource: Option<Names>,
    scope: Option<String>,
    refresh_token: Option<Value>,
    authorization_details: Option<Vec<Value>>,
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    typ: Option<String>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    sub: String,
    aud: Names,
    client_id: String,
    jti: String,
    exp: u64,
    iat: u64,
    resource: Names,
    scope: Option<String>,
    authorization_details: Option<Vec<Value>>,
}

impl Exchanged {
    /// The scopes that the statement is for, if it is one that was asked for.
    fn check(&self, expected: &ExpectedClaims<'_>, now: u64) -> Result<Scopes, &'static str> {
        if self.issued_token_type != ID_JAG || self.token_type != "N_A" || self.refresh_token.is_some() {
            return Err("it is not an ID-JAG alone");
        }
        let mut parts = self.access_token.split('.');
        let (Some(header), Some(claims), Some(signature), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err("the ID-JAG is not a signed JWT");
        };
        if decode(signature).is_none_or(|signature| signature.is_empty()) {
            return Err("the ID-JAG is not signed");
        }
        let header: Header = part(header).ok_or("the header of the ID-JAG cannot be read")?;
        let claims: Claims = part(claims).ok_or("the claims of the ID-JAG cannot be read")?;
        if header.alg.trim().is_empty() || header.alg.eq_ignore_ascii_case("none") {
            return Err("the ID-JAG is not signed");
        }
        let same = [
            (header.typ.as_deref() == Some("oauth-id-jag+jwt"), "the JWT is not an ID-JAG"),
            (claims.iss == expected.idp, "the ID-JAG is from another identity provider"),
            (claims.aud.is_only(expected.server), "the ID-JAG is for another authorization server"),
            (claims.client_id == expected.client, "the ID-JAG is for another client"),
            (claims.resource.is_only(expected.resource), "the ID-JAG is for another resource"),
            (
                self.resource.as_ref().is_none_or(|own| own.is_only(expected.resource)),
                "the ID-JAG is for another resource",
            ),
            (!claims.sub.trim().is_empty(), "the ID-JAG names nobody"),
            (!claims.jti.trim().is_empty(), "the ID-JAG has no id"),
            (claims.exp > now, "the ID-JAG has expired"),
            (claims.iat <= now.saturating_add(CLOCK_SKEW), "the ID-JAG is from the future"),
            (is_none_or_empty(&self.authorization_details), "authorization_details are not supported"),
            (is_none_or_empty(&claims.authorization_details), "authorization_details are not supported"),
        ];
        if let Some((_, why)) = same.into_iter().find(|(right, _)| !right) {
            return Err(why);
        }
        let granted = match &claims.scope {
            Some(scope) => parse_scope(scope)?,
            None if expected.scopes.is_empty() => Scopes::default(),
            None => return Err("the ID-JAG does not say for which scopes it is"),
        };
        if !expected.scopes.is_empty() && !expected.scopes.covers(&granted) {
            return Err("the ID-JAG is for more scopes than were asked for");
        }
        let equal = |one: &Scopes, other: &Scopes| one.covers(other) && other.covers(one);
        match &self.scope {
            Some(scope) if !equal(&parse_scope(scope)?, &granted) => {
                Err("the answer names other scopes than the ID-JAG")
            }
            None if !expected.scopes.is_empty() && !equal(&granted, expected.scopes) => {
                Err("the answer does not say that there are fewer scopes")
            }
            _ => Ok(granted),
        }
    }
}

/// The answer of the authorization server.
#[derive(Deserialize)]
struct Redeemed {
    access_token: String,
    token_type: String,
    expires_in: Option<u64>,
    resource: Option<Names>,
    scope: Option<String>,
    refresh_token: Option<Value>,
    authorization_details: Option<Vec<Value>>,
}

impl Redeemed {
    /// The token, if it allows no more than the statement that it was given for.
    fn check(self, resource: &str, granted: Scopes) -> Result<Granted, &'static str> {
        if !is_none_or_empty(&self.authorization_details) {
            return Err("authorization_details are not supported");
        }
        if !self.token_type.eq_ignore_ascii_case("bearer") || self.access_token.trim().is_empty() {
            return Err("it is not a bearer token");
        }
        if self.refresh_token.is_some() || self.expires_in == Some(0) {
            return Err("the token has expired already, or can be renewed past the identity provider");
        }
        if self.resource.is_some_and(|own| !own.is_only(resource)) {
            return Err("the token is for another resource");
        }
        let scopes = match &self.scope {
            Some(scope) => Some(parse_scope(scope)?).filter(|scopes| granted.covers(scopes)),
            // RFC 6749 section 5.1: those that were asked for.
            None => Some(granted),
        };
        let scopes = scopes.ok_or("the token is for more scopes than the ID-JAG")?;
        Ok(Granted {
            access: self.access_token.as_str().into(),
            kind: TokenKind::Bearer,
            refresh: None,
            expires_in: self.expires_in,
            scopes: (!scopes.is_empty()).then_some(scopes),
        })
    }
}

fn part<T: DeserializeOwned>(text: &str) -> Option<T> {
    serde_json::from_slice(&decode(text)?).ok()
}

fn is_none_or_empty(details: &Option<Vec<Value>>) -> bool {
    details.as_ref().is_none_or(Vec::is_empty)
}

/// Scopes as RFC 6749 section 3.3 writes them, each once.
fn parse_scope(text: &str) -> Result<Scopes, &'static str> {
    let scopes: Scopes = text.split(' ').collect();
    let right = text.split(' ').all(is_scope) && scopes.iter().count() == text.split(' ').count();
    right.then_some(scopes).ok_or("scopes are malformed, or named twice")
}

fn is_scope(scope: &str) -> bool {
    !scope.is_empty() && scope.bytes().all(|b| matches!(b, b'!' | b'#'..=b'[' | b']'..=b'~'))
}

#[cfg(test)]
#[path = "tests/statements.rs"]
mod tests;
