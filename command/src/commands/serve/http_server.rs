//! [`HttpServer`]: the gateway on a socket, from the address to the last answer.

use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use tidegate::edge::http::{self, EndpointPath, Page, Site, TlsCertificate, TrustedProxies};
use tidegate::logging;
use tidegate_config::{EndpointSettings, ListenAddress, Settings, check_exposure};
use tidegate_gateway::Gateway;
use tokio::net::TcpListener;

use super::admin::{Admin, Standing};
use super::admin_listener::AdminListener;
use super::authentication::Authentication;
use super::banner::Banner;
use super::builtin_pages::BuiltinPages;
use super::home_page::{self, Audience};
use super::monitoring::Monitoring;
use super::signals::ShutdownSignals;
use super::{Serve, bind, default_address, descriptors};
use crate::commands::exit::Exit;
use crate::commands::failure::Failure;

/// A socket that has its address, and nothing to serve yet.
pub(super) struct HttpServer {
    listeners: Vec<TcpListener>,
    /// From before it says where it is, so that whoever reads that can end it.
    ending: ShutdownSignals,
    edge: http::Settings,
    /// Where it is.
    url: String,
    /// Who can see its page.
    audience: Audience,
    authentication: Option<Authentication>,
    /// The address that is listened on, as the beginning of a URL.
    local_origin: String,
    /// Where the admin API is, if it has an address of its own.
    admin_listener: Option<AdminListener>,
}

/// Everything until the end.
type Serving = Pin<Box<dyn Future<Output = Result<Exit, Failure>> + Send>>;

impl HttpServer {
    /// Takes the address, finds out who may call, and says so.
    pub(super) async fn open(
        serve: &Serve,
        settings: &Settings,
        file: Option<&Path>,
    ) -> Result<HttpServer, Failure> {
        descriptors::raise();
        let listen = &settings.listen;
        let wanted = wanted_address(serve, settings)?;
        // The file has been checked; the command line and the environment may say something else.
        check_exposure(&wanted, listen, settings.auth.as_ref()).map_err(|error| {
            Failure::usage(format!("cannot listen on {wanted}: {}", error.with_options()))
        })?;
        let tls = match &listen.tls {
            Some(tls) => Some(Arc::new(TlsCertificate::load(&tls.cert, &tls.key).map_err(Failure::usage)?)),
            None => None,
        };
        let listeners = bind::bind(&wanted).await?;
        let cannot = |error| Failure::new(Exit::Unavailable, format!("cannot listen on {wanted}: {error}"));
        let address =
            listeners.first().map_or(Ok(SocketAddr::from(([127, 0, 0, 1], 0))), TcpListener::local_addr);
        let address = address.map_err(cannot)?;
        let is_loopback = address.ip().to_canonical().is_loopback();
        let mut edge = http::Settings {
            hosts: listen.hosts.clone(),
            origins: [&listen.origins[..], &serve.origins].concat(),
            http_sse: listen.http_sse || serve.http_sse,
            path: listen.path.clone(),
            endpoints: endpoint_paths(&settings.endpoints, &listen.path),
            drain: settings.drain,
            session_dir: settings.state_dir.as_ref().map(|dir| dir.join("sessions")),
            max_connections: listen.max_connections,
            connection_idle: listen.connection_idle,
            request_within: listen.request_within,
            trusted_proxies: TrustedProxies::parse(&listen.trusted_proxies).map_err(Failure::usage)?,
            // Whoever does not come through one of them sends everything in the clear.
            only_proxies: !is_loopback
                && !listen.trusted_proxies.is_empty()
                && tls.is_none()
                && !listen.insecure,
            tls,
            ..http::Settings::default().eras(serve.era.into())
        };
        edge.edge.limits.max_bytes = listen.max_message;
        edge.edge.relays = true;
        edge.edge.call_ids = settings.telemetry.call_ids;
        let origin = match &listen.public_url {
            Some(url) => url.clone(),
            None => bind::origin(address, &edge.hosts, edge.tls.is_some()),
        };
        let authentication = Authentication::start(settings, &origin).map_err(Failure::usage)?;
        let url = format!("{origin}{}", edge.path);
        // A browser has no way to show a page that needs a token.
        let links = match authentication {
            Some(_) => Vec::new(),
            None => BuiltinPages::of(settings).links(&edge.path),
        };
        let pages = links.into_iter().map(|link| (link.title, format!("{origin}{}", link.path))).collect();
        let endpoints = edge.endpoints.iter().map(|endpoint| format!("{origin}{}", endpoint.path)).collect();
        let ending = ShutdownSignals::listen().map_err(|error| {
            Failure::new(Exit::Unavailable, format!("cannot listen for signals: {error}"))
        })?;
        Banner { url: &url, endpoints, pages, address, settings, file, demo: serve.demo }.show()?;
        let audience = match (&authentication, is_loopback && edge.hosts.is_empty()) {
            (Some(_), _) => Audience::Authenticated,
            (None, true) => Audience::Local,
            // A name that others use leads here from elsewhere, through a proxy for one.
            (None, false) => Audience::Remote,
        };
        let local_origin = bind::origin(address, &[], edge.tls.is_some());
        let mut server = HttpServer {
            listeners,
            ending,
            edge,
            url,
            audience,
            authentication,
            local_origin,
            admin_listener: None,
        };
        server.admin_listener = AdminListener::open(settings, &server.edge, audience).await?;
        Ok(server)
    }

    /// Where the admin API is, as the beginning of a URL; `None` where it is not served.
    pub(super) fn api_url(&self) -> Option<String> {
        match &self.admin_listener {
            Some(listener) => Some(listener.origin().to_owned()),
            None => standing(self.audience).map(|_| self.local_origin.clone()),
        }
    }

    /// Who may call; `None` for everybody.
    pub(super) fn authentication(&self) -> Option<Authentication> {
        self.authentication.clone()
    }

    /// What is served, and how: until a signal comes.
    pub(super) fn serve(
        self,
        gateway: &Gateway,
        pages: &BuiltinPages,
        monitoring: &Monitoring,
        admin: &Admin,
        is_configured: Arc<AtomicBool>,
    ) -> (Site<Gateway>, Serving) {
        let HttpServer { listeners, ending, mut edge, url, audience, authentication, admin_listener, .. } =
            self;
        let origin = url.strip_suffix(&*edge.path).unwrap_or(&url);
        let endpoints = edge.endpoints.iter().map(|endpoint| format!("{origin}{}", endpoint.path));
        admin.set_urls(std::iter::once(url.clone()).chain(endpoints).collect());
        let (linked, path) = (pages.clone(), edge.path.clone());
        let home = home_page::pages(gateway.clone(), url.clone(), audience, move || linked.links(&path));
        let of_servers = match audience {
            Audience::Authenticated => Vec::new(),
            _ => pages.files(),
        };
        // Scripts and styles say nothing of anybody.
        let gated = |page: Page| match page.is_document() {
            true => {
                let (gateway, path) = (gateway.clone(), page.path().to_owned());
                page.only_for(move |identity| gateway.allows_page(identity, &path))
            }
            false => page,
        };
        // What is for operators has a listener of its own, or is here.
        let of_operators = match &admin_listener {
            Some(_) => monitoring.open_pages(audience).to_vec(),
            None => {
                edge.handlers =
                    standing(audience).map(|standing| admin.handler(standing)).into_iter().collect();
                monitoring.pages(audience)
            }
        };
        edge.pages = home.into_iter().chain(of_servers).map(gated).chain(of_operators).collect();
        // Sessions of legacy clients outlive a restart as long as the keys do.
        let keys = gateway.clone();
        edge.session_sealer = Some(http::SessionSealer::following(move || keys.sealer()));
        let ending = {
            let (gateway, admin) = (gateway.clone(), admin.clone());
            async move {
                ending.wait(is_configured).await;
                tracing::info!("Shutting down");
                logging::hush();
                // Subscriptions end here; else they would keep their connections open.
                gateway.shut_down();
                admin.end();
            }
        };
        let beside =
            admin_listener.map(|listener| listener.serve(admin, monitoring, authentication.as_ref()));
        // The front, outermost first: the guard, who calls, pages and the endpoints; then, inside of the gateway,
        // `layers::front`.
        let mut served = None;
        let mut remember = |site: &Site<Gateway>| served = Some(site.clone());
        let serving: Serving = match authentication {
            None => {
                let front = http::front(gateway.clone(), &edge, |site| {
                    remember(&site);
                    site
                });
                Box::pin(until_the_end(url, http::serve(front, listeners, edge, ending)))
            }
            Some(authentication) => {
                let authenticator = authentication.authenticator();
                authenticator.serve_openly(monitoring.open_pages(audience).to_vec());
                let front = http::front(gateway.clone(), &edge, |site| {
                    remember(&site);
                    // What was opened with a key or a token ends with it.
                    let of_principal = site.clone();
                    authenticator.on_revoked(move |principal| of_principal.end_sessions_of(principal));
                    authenticator.layer(site)
                });
                Box::pin(until_the_end(url, http::serve(front, listeners, edge, ending)))
            }
        };
        let served = served.expect("the front was made above");
        let site = served.clone();
        monitoring.set_sessions(move || site.sessions());
        let serving: Serving = match beside {
            None => serving,
            Some(beside) => Box::pin(async move {
                let ended = serving.await;
                beside.close().await;
                ended
            }),
        };
        (served, serving)
    }
}

/// How those who may use the admin API come.
pub(super) fn standing(audience: Audience) -> Option<Standing> {
    match audience {
        Audience::Local => Some(Standing::Local),
        Audience::Authenticated => Some(Standing::Authenticated),
        // It says too much for machines of which nobody knows whose they are.
        Audience::Remote => None,
    }
}

async fn until_the_end(
    url: String,
    serving: impl Future<Output = std::io::Result<()>>,
) -> Result<Exit, Failure> {
    serving.await.map_err(|error| Failure::new(Exit::Unavailable, format!("cannot serve {url}: {error}")))?;
    Ok(Exit::Fine)
}

/// Where to listen: what the command line says, else the file, else the environment.
fn wanted_address(serve: &Serve, settings: &Settings) -> Result<ListenAddress, Failure> {
    let listen = &settings.listen;
    match &serve.listen {
        Some(wanted) => Ok(wanted.clone()),
        None if listen.address_is_said => listen.address.parse().map_err(Failure::usage),
        None => default_address::from_environment(&listen.address, |name| std::env::var(name).ok())
            .and_then(|address| address.parse())
            .map_err(Failure::usage),
    }
}

/// Where endpoints are beside the default one, which is at `path` as long as the gateway runs.
pub(super) fn endpoint_paths(endpoints: &[EndpointSettings], path: &str) -> Vec<EndpointPath> {
    let beside = |name: &str| EndpointPath::new(name, EndpointSettings::path_beside(name, path));
    endpoints.iter().map(|endpoint| beside(&endpoint.name)).collect()
}
