//! [`World`]: a fake MCP server with its authorization servers, on ports of this machine.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use ::http::{HeaderMap, Method, Request, Response, header};
use axum::Router;
use axum::body::Body;
use bytes::Bytes;
use ring::digest::{SHA256, digest};
use serde_json::{Map, Value, json};
use tidegate_protocol::Error;
use tokio::net::TcpListener;
use url::form_urlencoded;

use crate::oauth::allowed_addresses::AllowedAddresses;
use crate::oauth::http::Http;
use crate::oauth::jwt::encode;
use crate::oauth::{FollowRedirect, OAuth, OAuthBuilder, Scopes};
use crate::{Authorizer, Challenge};

pub(super) const REDIRECT_URI: &str = "http://127.0.0.1:1/callback";

/// What the servers do. Tests change it at any time.
pub(super) struct Plan {
    /// The `WWW-Authenticate` of a 401; `{prm}` stands for the address of the description.
    pub(super) challenge: String,
    /// The issuers that the server names; none for a server that does not describe itself.
    pub(super) issuers: Vec<String>,
    /// Changes to the server's description; null removes.
    pub(super) resource: Value,
    /// Changes to the description of the authorization servers; null removes everything.
    pub(super) server: Value,
    /// Changes to the answer to a registration.
    pub(super) registration: Value,
    /// The scopes without which the MCP server says 403.
    pub(super) needs: Scopes,
    /// Seconds that tokens are good.
    pub(super) life: Option<u64>,
    pub(super) refreshes: bool,
    /// The MCP server takes no token at all.
    pub(super) refuses: bool,
    /// The `iss` of a login; `{issuer}` stands for the right one.
    pub(super) iss: Option<&'static str>,
    /// The error that a login ends with.
    pub(super) denies: Option<&'static str>,
    /// The error that token requests end with.
    pub(super) trouble: Option<(u16, &'static str)>,
    /// How long a token request takes.
    pub(super) slow: Duration,
    pub(super) dpop: bool,
    pub(super) nonces: bool,
    /// Answers to particular paths.
    pub(super) special: HashMap<&'static str, Special>,
}

#[derive(Clone)]
pub(super) struct Special {
    pub(super) status: u16,
    pub(super) location: Option<String>,
    pub(super) body: String,
}

/// A request that a server got.
#[derive(Debug, Clone)]
pub(super) struct Seen {
    pub(super) host: String,
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    /// The query, or the form.
    pub(super) fields: HashMap<String, String>,
    pub(super) body: Value,
}

impl Seen {
    pub(super) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", String::as_str)
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }
}

#[derive(Default)]
struct Issued {
    count: u64,
    /// By code: scopes and challenge.
    codes: HashMap<String, (Scopes, String)>,
    access: HashMap<String, Scopes>,
    refresh: HashMap<String, Scopes>,
}

pub(super) struct World {
    pub(super) mcp: String,
    pub(super) issuer: String,
    /// A second authorization server.
    pub(super) other: String,
    shared: Arc<Shared>,
}

struct Shared {
    mcp: String,
    plan: Mutex<Plan>,
    seen: Mutex<Vec<Seen>>,
    issued: Mutex<Issued>,
}

impl World {
    pub(super) async fn new() -> World {
        let listeners = [listen().await, listen().await, listen().await];
        let [mcp, issuer, other] =
            listeners.each_ref().map(|l| format!("http://{}", l.local_addr().expect("an address")));
        let mcp = format!("{mcp}/mcp");
        let plan = Plan {
            challenge: r#"Bearer resource_metadata="{prm}""#.to_owned(),
            issuers: vec![issuer.clone()],
            resource: json!({}),
            server: json!({}),
            registration: json!({}),
            needs: Scopes::default(),
            life: Some(3600),
            refreshes: true,
            refuses: false,
            iss: Some("{issuer}"),
            denies: None,
            trouble: None,
            slow: Duration::ZERO,
            dpop: false,
            nonces: false,
            special: HashMap::new(),
        };
        let shared = Arc::new(Shared {
            mcp: mcp.clone(),
            plan: Mutex::new(plan),
            seen: Mutex::default(),
            issued: Mutex::default(),
        });
        for listener in listeners {
            let shared = shared.clone();
            let app = Router::new().fallback(move |request| answer(shared.clone(), request));
            tokio::spawn(async move { axum::serve(listener, app).await });
        }
        World { mcp, issuer, other, shared }
    }

    pub(super) fn plan(&self) -> MutexGuard<'_, Plan> {
        self.shared.plan.lock().unwrap()
    }

    /// An [`OAuth`] for this server, with a browser that agrees at once.
    pub(super) fn builder(&self) -> OAuthBuilder {
        OAuth::builder(&self.mcp).browser(FollowRedirect::new(REDIRECT_URI))
    }

    /// The requests to a path so far.
    pub(super) fn seen(&self, path: &str) -> Vec<Seen> {
        self.shared.seen.lock().unwrap().iter().filter(|seen| seen.path == path).cloned().collect()
    }

    pub(super) fn last(&self, path: &str) -> Seen {
        self.seen(path).pop().unwrap_or_else(|| panic!("no request to {path}"))
    }

    /// Makes all access tokens so far worthless.
    pub(super) fn revoke(&self) {
        self.shared.issued.lock().unwrap().access.clear();
    }

    /// Makes all refresh tokens so far worthless.
    pub(super) fn revoke_refresh(&self) {
        self.shared.issued.lock().unwrap().refresh.clear();
    }

    /// One MCP request, as the transport makes it.
    pub(super) async fn call(&self, oauth: &OAuth) -> Result<u16, Error> {
        let http = Http::new(AllowedAddresses::anywhere());
        let url = self.mcp.parse().unwrap();
        for _ in 0..4 {
            let refused = oauth.authorization().await?;
            let mut request = Request::post(&self.mcp);
            if let Some(authorization) = &refused {
                request = request.header(header::AUTHORIZATION, authorization);
                if let Some(proof) = oauth.proof(&Method::POST, &url, authorization) {
                    request = request.header("dpop", proof);
                }
            }
            let answer = http.send(request.body(Bytes::new()).unwrap()).await?;
            if let Some(authorization) = &refused {
                oauth.answered(authorization, answer.status, &answer.headers);
            }
            let status = answer.status.as_u16();
            if !matches!(status, 401 | 403) {
                return Ok(status);
            }
            let all = answer.headers.get_all(header::WWW_AUTHENTICATE).iter();
            let www_authenticate = all.map(|value| value.to_str().unwrap().to_owned()).collect();
            oauth.challenged(Challenge { status, www_authenticate, refused }).await?;
        }
        panic!("more challenges than the transport answers");
    }
}

async fn listen() -> TcpListener {
    TcpListener::bind("127.0.0.1:0").await.expect("a port")
}

async fn answer(shared: Arc<Shared>, request: Request<Body>) -> Response<Body> {
    let (head, body) = request.into_parts();
    let body = axum::body::to_bytes(body, 1 << 20).await.unwrap();
    let fields = match head.uri.query() {
        Some(query) => form_urlencoded::parse(query.as_bytes()).into_owned().collect(),
        None => form_urlencoded::parse(&body).into_owned().collect(),
    };
    let seen = Seen {
        host: head.headers["host"].to_str().unwrap().to_owned(),
        path: head.uri.path().to_owned(),
        headers: head.headers,
        fields,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    };
    shared.seen.lock().unwrap().push(seen.clone());
    let (special, slow) = {
        let plan = shared.plan.lock().unwrap();
        (plan.special.get(seen.path.as_str()).cloned(), plan.slow)
    };
    if let Some(special) = special {
        let mut response = Response::builder().status(special.status);
        if let Some(location) = special.location {
            response = response.header(header::LOCATION, location);
        }
        return response.body(Body::from(special.body)).unwrap();
    }
    if seen.path == "/token" {
        tokio::time::sleep(slow).await;
    }
    let plan = shared.plan.lock().unwrap();
    match seen.path.as_str() {
        "/mcp" => shared.mcp(&plan, &seen),
        "/.well-known/oauth-protected-resource/mcp" if !plan.issuers.is_empty() => {
            let own = json!({"resource": shared.mcp, "authorization_servers": plan.issuers});
            reply(200, &merged(own, &plan.resource))
        }
        "/.well-known/oauth-authorization-server" if !plan.server.is_null() => {
            let at = |path: &str| format!("http://{}{path}", seen.host);
            let own = json!({
                "issuer": at(""),
                "authorization_endpoint": at("/authorize"),
                "token_endpoint": at("/token"),
                "registration_endpoint": at("/register"),
                "code_challenge_methods_supported": ["S256"],
                "authorization_response_iss_parameter_supported": plan.iss.is_some(),
                "token_endpoint_auth_methods_supported": ["none", "client_secret_basic", "client_secret_post"],
            });
            reply(200, &merged(own, &plan.server))
        }
        "/register" => {
            let mut issued = shared.issued.lock().unwrap();
            issued.count += 1;
            reply(201, &merged(json!({"client_id": format!("client-{}", issued.count)}), &plan.registration))
        }
        "/authorize" => shared.authorize(&plan, &seen),
        "/token" => shared.token(&plan, &seen),
        _ => reply(404, &json!({})),
    }
}

impl Shared {
    fn mcp(&self, plan: &Plan, seen: &Seen) -> Response<Body> {
        let scheme = if plan.dpop { "DPoP " } else { "Bearer " };
        let token = seen.header("authorization").strip_prefix(scheme);
        let scopes = token.and_then(|token| self.issued.lock().unwrap().access.get(token).cloned());
        let refuse = |status: u16, challenge: String| {
            let response = Response::builder().status(status).header(header::WWW_AUTHENTICATE, challenge);
            response.header("dpop-nonce", "rs-nonce").body(Body::empty()).unwrap()
        };
        let prm = self.mcp.replace("/mcp", "/.well-known/oauth-protected-resource/mcp");
        match scopes {
            Some(_) if plan.nonces && !has_nonce(seen, "rs-nonce") => {
                refuse(401, r#"DPoP error="use_dpop_nonce""#.to_owned())
            }
            Some(scopes) if !plan.refuses && scopes.covers(&plan.needs) => reply(200, &json!({})),
            Some(scopes) if !plan.refuses && !scopes.covers(&plan.needs) => {
                refuse(403, format!(r#"Bearer error="insufficient_scope", scope="{}""#, plan.needs))
            }
            _ => refuse(401, plan.challenge.replace("{prm}", &prm)),
        }
    }

    fn authorize(&self, plan: &Plan, seen: &Seen) -> Response<Body> {
        let mut issued = self.issued.lock().unwrap();
        issued.count += 1;
        let code = format!("code-{}", issued.count);
        let scopes = Scopes::parse(seen.field("scope"));
        issued.codes.insert(code.clone(), (scopes, seen.field("code_challenge").to_owned()));
        let mut query = form_urlencoded::Serializer::new(String::new());
        match plan.denies {
            Some(error) => query.append_pair("error", error).append_pair("error_description", "said so"),
            None => query.append_pair("code", &code),
        };
        query.append_pair("state", seen.field("state"));
        if let Some(iss) = plan.iss {
            query.append_pair("iss", &iss.replace("{issuer}", &format!("http://{}", seen.host)));
        }
        let location = format!("{}?{}", seen.field("redirect_uri"), query.finish());
        Response::builder().status(302).header(header::LOCATION, location).body(Body::empty()).unwrap()
    }

    fn token(&self, plan: &Plan, seen: &Seen) -> Response<Body> {
        let deny =
            |status, error: &str| reply(status, &json!({"error": error, "error_description": "said so"}));
        if let Some((status, error)) = plan.trouble {
            return deny(status, error);
        }
        if plan.nonces && !has_nonce(seen, "as-nonce") {
            let mut response = deny(400, "use_dpop_nonce");
            response.headers_mut().insert("dpop-nonce", "as-nonce".parse().unwrap());
            return response;
        }
        let mut issued = self.issued.lock().unwrap();
        let scopes = match seen.field("grant_type") {
            "authorization_code" => {
                let verifier = encode(digest(&SHA256, seen.field("code_verifier").as_bytes()));
                match issued.codes.remove(seen.field("code")) {
                    Some((scopes, challenge)) if challenge == verifier => scopes,
                    _ => return deny(400, "invalid_grant"),
                }
            }
            // Each refresh token is good once.
            "refresh_token" => match issued.refresh.remove(seen.field("refresh_token")) {
                Some(scopes) => scopes,
                None => return deny(400, "invalid_grant"),
            },
            _ => Scopes::parse(seen.field("scope")),
        };
        issued.count += 1;
        let number = issued.count;
        let (access, refresh) = (format!("secret-access-{number}"), format!("secret-refresh-{number}"));
        let mut answer =
            json!({"access_token": access, "token_type": if plan.dpop { "DPoP" } else { "Bearer" }});
        if let Some(life) = plan.life {
            answer["expires_in"] = life.into();
        }
        if plan.refreshes {
            answer["refresh_token"] = refresh.as_str().into();
            issued.refresh.insert(refresh, scopes.clone());
        }
        issued.access.insert(access, scopes);
        reply(200, &answer)
    }
}

fn has_nonce(seen: &Seen, nonce: &str) -> bool {
    let claims = seen.header("dpop").split('.').nth(1).and_then(crate::oauth::jwt::decode);
    claims.is_some_and(|claims| serde_json::from_slice::<Value>(&claims).unwrap()["nonce"] == nonce)
}

fn merged(mut own: Value, changes: &Value) -> Value {
    let own_fields = own.as_object_mut().unwrap();
    for (name, value) in changes.as_object().unwrap_or(&Map::new()) {
        match value {
            Value::Null => own_fields.remove(name),
            value => own_fields.insert(name.clone(), value.clone()),
        };
    }
    own
}

fn reply(status: u16, body: &Value) -> Response<Body> {
    let response = Response::builder().status(status).header(header::CONTENT_TYPE, "application/json");
    response.body(Body::from(body.to_string())).unwrap()
}
