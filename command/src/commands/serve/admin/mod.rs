//! The admin API: what runs, how it is, what happens, and a few things that can be done about it.
//!
//! `routes` is the table of everything there is, from which requests are answered and the OpenAPI document is made; each
//! resource has a room; `access` says who may; `feed` and `stream` are what followers of events get; `socket` is the way in for
//! whoever runs the gateway.

mod access;
mod asked;
mod events;
mod feed;
mod logs;
mod openapi;
mod routes;
mod servers;
mod socket;
mod status;
mod stream;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use axum::body::Body;
use axum::http::header::ALLOW;
use axum::http::{HeaderValue, Request, Response};
use tidegate::edge::http::Handler;
use tidegate_gateway::Gateway;
use tidegate_service::Identity;
use tidegate_service::events::{Event, Operated, emit};
use tokio_util::sync::CancellationToken;

pub(super) use self::access::Standing;
use self::access::Token;
use self::asked::{Asked, Refusal};
use self::events::EventFeed;
use self::routes::{Found, Route, find};
pub(super) use self::socket::AdminSocket;
use super::monitoring::Monitoring;
use crate::commands::admin::presence::Transport;

/// Where all of it is.
pub(super) const PATH: &str = "/api";

/// The admin API. Clones are handles on the same.
#[derive(Clone)]
pub(super) struct Admin(Arc<Inner>);

struct Inner {
    gateway: Gateway,
    monitoring: Monitoring,
    transport: Transport,
    started: Instant,
    /// When it started, in milliseconds since 1970.
    since: u64,
    /// The URLs of the endpoints, once they are known.
    urls: OnceLock<Vec<String>>,
    /// The configuration, once there is one.
    config: Arc<OnceLock<PathBuf>>,
    token: Token,
    events: EventFeed,
    /// Places for those who follow the log.
    log_places: logs::Places,
    /// Fires when streams are to end.
    ending: CancellationToken,
}

impl Admin {
    /// For a gateway that runs. `config` is where its configuration is found, once there is one.
    pub(super) fn new(
        gateway: &Gateway,
        monitoring: &Monitoring,
        transport: Transport,
        config: Arc<OnceLock<PathBuf>>,
    ) -> Admin {
        Admin(Arc::new(Inner {
            gateway: gateway.clone(),
            monitoring: monitoring.clone(),
            transport,
            started: Instant::now(),
            since: tidegate_service::epoch_ms(),
            urls: OnceLock::new(),
            config,
            token: Token::new(),
            events: EventFeed::default(),
            log_places: logs::Places::new(),
            ending: CancellationToken::new(),
        }))
    }

    /// Says where clients find the gateway.
    pub(super) fn set_urls(&self, urls: Vec<String>) {
        let _ = self.0.urls.set(urls);
    }

    /// Ends all streams, so that the connections they hold can end.
    pub(super) fn end(&self) {
        self.0.ending.cancel();
    }

    /// What answers below `/api` for those who come like this.
    pub(super) fn handler(&self, standing: Standing) -> Handler {
        let admin = self.clone();
        Handler::new(PATH, move |request, identity| admin.clone().answer(request, identity, standing))
    }

    async fn answer(self, request: Request<Body>, identity: Identity, standing: Standing) -> Response<Body> {
        let answered = match find(request.method(), request.uri().path()) {
            Found::Nothing => Err(Refusal::not_found()),
            Found::Other(allowed) => {
                // Those who may not know what is here are not told by what may be done with it.
                match self.may_see(standing, &identity, request.uri().path()) {
                    true => Err(Refusal::method(allowed)),
                    false => Err(Refusal::not_found()),
                }
            }
            Found::Route(route, values) => match self.admit(route, standing, &identity, &request) {
                Ok(still) => match Asked::read(route, values, request, still, standing == Standing::Operator)
                {
                    Ok(asked) => {
                        let told =
                            (!route.method.is_reading()).then(|| asked.request.uri().path().to_owned());
                        let answered = (route.run)(self, asked).await;
                        if let (Some(path), Ok(response)) = (told, &answered) {
                            let detail = response.extensions().get::<Detail>();
                            tell(route, &path, detail, standing, &identity);
                        }
                        answered
                    }
                    Err(refusal) => Err(refusal),
                },
                Err(refusal) => Err(refusal),
            },
        };
        answered.unwrap_or_else(|refusal| {
            let mut response = asked::json(refusal.status, &serde_json::json!({"error": refusal.sentence}));
            if let Some(allowed) = refusal.allowed.and_then(|allowed| HeaderValue::try_from(allowed).ok()) {
                response.headers_mut().insert(ALLOW, allowed);
            }
            if refusal.status == 401 {
                let bearer = HeaderValue::from_static("Bearer");
                response.headers_mut().insert(axum::http::header::WWW_AUTHENTICATE, bearer);
            }
            response
        })
    }
}

/// What was changed, beyond what the path says. An extension of the answer, which nobody else looks at.
#[derive(Clone)]
struct Detail(String);

/// Says who has changed something.
fn tell(route: &Route, path: &str, detail: Option<&Detail>, standing: Standing, identity: &Identity) {
    emit(&Event::Operated(Operated {
        operation: route.id,
        path,
        detail: detail.map(|detail| detail.0.as_str()),
        way: standing.as_str(),
        principal: &identity.principal,
    }));
}
