//! [`Identity`]: the client that we are to one authorization server, configured, described or registered.

use std::sync::Arc;

use ::http::{Request, header};
use bytes::Bytes;
use serde_json::{Map, Value, json};
use tidegate_web::is_local;
use url::Url;

use super::client::{ClientAuth, Proof};
use super::discovery::DiscoveredServer;
use super::fault::{Fault, quote};
use super::http::{Http, host};
use super::jwt::now;
use super::scopes::Scopes;
use super::settings::Settings;
use super::store::{Credentials, Origin, Registration};
use tidegate_service::secrets::Secret;

/// The method of proving with a key.
const KEY: &str = "private_key_jwt";

/// Who we are, and how we prove it.
#[derive(Debug, Clone)]
pub(super) struct Identity {
    pub(super) registration: Registration,
    pub(super) proof: Proof,
}

impl Identity {
    /// The client for a grant that needs one which is known beforehand.
    pub(super) fn configured(
        settings: &Settings,
        found: &DiscoveredServer,
        kept: &[Credentials],
    ) -> Result<Identity, Fault> {
        let Some(client) = &settings.client else {
            return Err(Fault::Settings(
                "this way of getting tokens needs a client id; configure one".to_owned(),
            ));
        };
        let issuer = &found.server.issuer;
        // 2026-07-28 client-registration, Authorization Server Binding. Without a word from the user, the client
        // belongs to whom it was first shown.
        let of_client = |own: &&Credentials| {
            own.registration.origin == Origin::Configured && own.registration.client_id == client.id
        };
        let mut earlier = kept.iter().filter(of_client).map(|own| &own.issuer);
        let bound = match &client.issuer {
            Some(bound) => Some(bound),
            None if earlier.clone().any(|own| own == issuer) => None,
            None => earlier.next(),
        };
        if let Some(bound) = bound.filter(|bound| *bound != issuer) {
            return Err(Fault::Settings(format!(
                "{} now uses the authorization server {}, but the client {} is registered with {}; \
                 register one there and configure it",
                settings.server.host(),
                quote(issuer),
                quote(&client.id),
                quote(bound)
            )));
        }
        let proof = client.auth.proof(found.server.token_endpoint_auth_methods_supported.as_deref());
        let (auth_method, secret) = match &proof {
            Proof::None => ("none", None),
            Proof::Basic(secret) => ("client_secret_basic", Some(secret.clone())),
            Proof::Post(secret) => ("client_secret_post", Some(secret.clone())),
            Proof::Jwt(_) => (KEY, None),
        };
        let registration = Registration {
            client_id: client.id.clone(),
            origin: Origin::Configured,
            secret,
            auth_method: Some(auth_method.to_owned()),
            expires_at: None,
            redirect_uri: None,
        };
        Ok(Identity { registration, proof })
    }

    /// The client as which somebody logged in earlier, if it still is one.
    pub(super) fn recall(settings: &Settings, registration: &Registration) -> Option<Identity> {
        if registration.expires_at.is_some_and(|at| at <= now()) {
            return None;
        }
        let auth = match (&settings.client, &registration.secret, registration.auth_method.as_deref()) {
            (Some(client), ..) if client.id == registration.client_id => client.auth.clone(),
            (Some(_), ..) => return None,
            // A client that was given for one login is good for all that follows from it. But keys are not kept.
            (None, _, Some(KEY)) => return None,
            (None, None, _) | (None, _, Some("none")) => ClientAuth::None,
            (None, Some(secret), _) => ClientAuth::Secret(secret.clone()),
        };
        let methods = registration.auth_method.clone().map(|method| vec![method]);
        Some(Identity { registration: registration.clone(), proof: auth.proof(methods.as_deref()) })
    }

    /// The client for a login with a browser, in the order of 2026-07-28 client-registration: the one that is or was
    /// configured, the one that a document describes, the one that we registered, a new one.
    pub(super) async fn for_user(
        http: &Arc<Http>,
        settings: &Settings,
        found: &DiscoveredServer,
        kept: &[Credentials],
        redirect_uri: &str,
        scopes: &Scopes,
    ) -> Result<Identity, Fault> {
        let server = &found.server;
        let earlier = |origin| {
            let mut ours = kept.iter().map(|own| (&own.issuer, &own.registration));
            let (_, own) = ours.find(|(issuer, own)| **issuer == server.issuer && own.origin == origin)?;
            // A registration includes where the browser comes back to.
            let fits = origin == Origin::Configured || own.redirect_uri.as_deref() == Some(redirect_uri);
            Identity::recall(settings, own).filter(|_| fits)
        };
        let configured = match &settings.client {
            Some(_) => Some(Identity::configured(settings, found, kept)?),
            None => earlier(Origin::Configured),
        };
        if let Some(mut identity) = configured {
            identity.registration.redirect_uri = Some(redirect_uri.to_owned());
            return Ok(identity);
        }
        if let (Some(url), Some(true)) =
            (&settings.client_metadata_url, server.client_id_metadata_document_supported)
        {
            let registration = Registration {
                client_id: url.clone(),
                origin: Origin::Document,
                secret: None,
                auth_method: Some("none".to_owned()),
                expires_at: None,
                redirect_uri: Some(redirect_uri.to_owned()),
            };
            return Ok(Identity { registration, proof: Proof::None });
        }
        if let Some(identity) = earlier(Origin::Dynamic) {
            return Ok(identity);
        }
        let registration = register(http, settings, found, redirect_uri, scopes).await?;
        Identity::recall(settings, &registration).ok_or_else(|| {
            Fault::Metadata(
                "the authorization server gave a client secret that has expired already".to_owned(),
            )
        })
    }
}

/// Dynamic client registration (RFC 7591).
async fn register(
    http: &Arc<Http>,
    settings: &Settings,
    found: &DiscoveredServer,
    redirect_uri: &str,
    scopes: &Scopes,
) -> Result<Registration, Fault> {
    let Some(endpoint) = &found.server.registration_endpoint else {
        return Err(Fault::Unsupported(format!(
            "the authorization server {} does not register clients by itself: register one there, and configure its id",
            quote(&found.server.issuer)
        )));
    };
    let url = http.allowed().check("registration endpoint", endpoint)?;
    let asked = auth_method(found.server.token_endpoint_auth_methods_supported.as_deref());
    let local = Url::parse(redirect_uri).is_ok_and(|uri| uri.host().is_none_or(|host| is_local(&host)));
    let mut body = json!({
        "client_name": settings.client_name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": asked,
        // 2026-07-28 client-registration: left out it means `web`, which may not use this machine.
        "application_type": if local { "native" } else { "web" },
    });
    if !scopes.is_empty() {
        body["scope"] = scopes.to_string().into();
    }
    let request = Request::post(url.as_str()).header(header::CONTENT_TYPE, "application/json");
    let wrong =
        |_| Fault::Address { what: "registration endpoint", address: endpoint.clone(), why: "it is no URI" };
    let answer = http.send(request.body(Bytes::from(body.to_string())).map_err(wrong)?).await?;
    let fields: Map<String, Value> = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |name| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let Some(client_id) = text("client_id").filter(|_| answer.status.is_success()) else {
        let why = match (text("error"), text("error_description")) {
            (Some(code), Some(more)) => format!("{}: {}", quote(code), quote(more)),
            (Some(code), None) => quote(code),
            _ => format!("HTTP {}", answer.status.as_u16()),
        };
        return Err(Fault::Unsupported(format!(
            "{} does not register this client ({why}): register one there, and configure its id",
            host(&url)
        )));
    };
    let auth_method = text("token_endpoint_auth_method").unwrap_or(asked);
    if !matches!(auth_method, "none" | "client_secret_basic" | "client_secret_post") {
        return Err(Fault::Unsupported(format!(
            "{} registered a client that has to prove itself with {}: register one there, and configure it",
            host(&url),
            quote(auth_method)
        )));
    }
    let expires_at = fields.get("client_secret_expires_at").and_then(Value::as_u64);
    Ok(Registration {
        client_id: client_id.to_owned(),
        origin: Origin::Dynamic,
        // Some give out a secret even to clients that have no use for one.
        secret: text("client_secret").filter(|_| auth_method != "none").map(Secret::from),
        auth_method: Some(auth_method.to_owned()),
        // RFC 7591 section 3.2.1: 0 means never.
        expires_at: expires_at.filter(|at| *at != 0 && auth_method != "none"),
        redirect_uri: Some(redirect_uri.to_owned()),
    })
}

/// A program on somebody's machine can keep no secret, so `none` if that will do.
fn auth_method(takes: Option<&[String]>) -> &'static str {
    let order = ["none", "client_secret_basic", "client_secret_post"];
    match takes {
        Some(takes) => order.into_iter().find(|own| takes.iter().any(|one| one == own)).unwrap_or("none"),
        None => "none",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_are_registered_in_the_way_the_server_takes() {
        let all = |methods: &[&str]| methods.iter().map(|m| (*m).to_owned()).collect::<Vec<_>>();
        for (takes, asked) in [
            (None, "none"),
            (Some(&["client_secret_basic", "none"][..]), "none"),
            (Some(&["client_secret_post", "client_secret_basic"]), "client_secret_basic"),
            (Some(&["client_secret_post"]), "client_secret_post"),
            (Some(&["private_key_jwt"]), "none"),
        ] {
            assert_eq!(auth_method(takes.map(all).as_deref()), asked);
        }
    }
}
