//! [`AdminListener`]: an address of its own for what is for operators (`[admin] listen`): the admin API, the figures, and how it is.

use std::net::SocketAddr;
use std::time::Duration;

use tidegate::edge::http::{self, GuardLayer, PageSite};
use tidegate_config::{ListenAddress, Settings, check_admin_exposure};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tower::Layer;

use super::admin::Admin;
use super::authentication::Authentication;
use super::bind;
use super::home_page::Audience;
use super::http_server::standing;
use super::monitoring::Monitoring;
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;

/// How many connections it takes at once.
const MOST_CONNECTIONS: usize = 256;

/// How long those who still ask are waited for after everybody else: streams have ended by then, and the rest is quick.
const MOST_DRAIN: Duration = Duration::from_secs(1);

/// A socket that has its address, and nothing to serve yet.
pub(super) struct AdminListener {
    listeners: Vec<TcpListener>,
    edge: http::Settings,
    origin: String,
    audience: Audience,
}

/// The same while it is served.
pub(super) struct ServedAdmin {
    closing: CancellationToken,
    serving: JoinHandle<()>,
}

impl AdminListener {
    /// Takes the address that the configuration has for it, if it has one. `edge` is how clients are served, and `audience` who they are.
    pub(super) async fn open(
        settings: &Settings,
        edge: &http::Settings,
        audience: Audience,
    ) -> Result<Option<AdminListener>, Failure> {
        let Some(wanted) = &settings.admin.listen else { return Ok(None) };
        let wanted: ListenAddress = wanted.parse().map_err(Failure::usage)?;
        check_admin_exposure(&wanted, &settings.listen, settings.auth.as_ref())
            .map_err(|error| Failure::usage(format!("cannot listen on {wanted} ([admin]): {error}")))?;
        let listeners = bind::bind(&wanted).await?;
        let cannot = |error| Failure::new(Exit::Unavailable, format!("cannot listen on {wanted}: {error}"));
        let address =
            listeners.first().map_or(Ok(SocketAddr::from(([127, 0, 0, 1], 0))), TcpListener::local_addr);
        let address = address.map_err(cannot)?;
        let is_loopback = address.ip().to_canonical().is_loopback();
        // The names and the certificate are those of others' way to the gateway.
        let own = http::Settings {
            hosts: if is_loopback { Vec::new() } else { edge.hosts.clone() },
            tls: edge.tls.clone().filter(|_| !is_loopback),
            only_proxies: !is_loopback && edge.only_proxies,
            trusted_proxies: edge.trusted_proxies.clone(),
            connection_idle: edge.connection_idle,
            request_within: edge.request_within,
            drain: edge.drain.min(MOST_DRAIN),
            max_connections: MOST_CONNECTIONS,
            ..http::Settings::default()
        };
        let origin = bind::origin(address, &own.hosts, own.tls.is_some());
        let audience = match audience {
            Audience::Authenticated => Audience::Authenticated,
            _ if is_loopback => Audience::Local,
            _ => Audience::Remote,
        };
        tracing::info!(url = origin, "The admin API, /metrics and /health are at {origin}");
        Ok(Some(AdminListener { listeners, edge: own, origin, audience }))
    }

    /// Where it is.
    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    /// Serves until it is closed.
    pub(super) fn serve(
        self,
        admin: &Admin,
        monitoring: &Monitoring,
        authentication: Option<&Authentication>,
    ) -> ServedAdmin {
        let AdminListener { listeners, mut edge, audience, .. } = self;
        edge.pages = monitoring.pages(audience).into();
        edge.handlers = standing(audience).map(|standing| admin.handler(standing)).into_iter().collect();
        let closing = CancellationToken::new();
        let (site, guard) = (PageSite::new(&edge), GuardLayer::new(&edge));
        let until = closing.clone().cancelled_owned();
        let ended = |served: std::io::Result<()>| {
            if let Err(error) = served {
                tracing::error!(%error, "The admin API has ended");
            }
        };
        let serving =
            match authentication {
                None => tokio::spawn(async move {
                    ended(http::serve(guard.layer(site), listeners, edge, until).await)
                }),
                Some(authentication) => {
                    let site = authentication.authenticator().layer(site);
                    tokio::spawn(async move {
                        ended(http::serve(guard.layer(site), listeners, edge, until).await)
                    })
                }
            };
        ServedAdmin { closing, serving }
    }
}

impl ServedAdmin {
    /// Lets what is under way end.
    pub(super) async fn close(self) {
        self.closing.cancel();
        let _ = self.serving.await;
    }
}
