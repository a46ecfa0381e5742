//! `tidegate serve`: one endpoint in front of the configured servers.

mod ancestry;
mod announcer;
mod banner;
mod bind;
mod builtin_pages;
mod default_address;
mod descriptors;
mod dial;
mod environment;
mod gateway_handle;
mod home_page;
mod port_owner;
mod reload;
mod signals;
mod statistics;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use clap::{Args, ValueEnum};
use tidegate::edge::{http, stdio};
use tidegate::protocol::Profile;
use tidegate::{Eras, logging};
use tidegate_config::{Config, ListenAddress, ServerSettings, Settings, Source};
use tidegate_gateway::Gateway;
use tidegate_service::budget::Budget;
use tokio::net::TcpListener;

use self::ancestry::Ancestry;
use self::announcer::Announcer;
use self::banner::Banner;
use self::builtin_pages::BuiltinPages;
use self::environment::Environment;
use self::gateway_handle::GatewayHandle;
use self::home_page::Audience;
use self::reload::{ConfigFollower, ConfigSource};
use self::signals::ShutdownSignals;
use self::statistics::Statistics;
use super::configuration;
use super::exit::Exit;
use super::failure::Failure;
use crate::builtins::registry;

/// Serve all configured MCP servers behind one endpoint
///
/// Reads ./tidegate.toml or, if there is none, the user's own configuration file. Changes to the file apply while running.
/// Without any configuration, serves the built-in memory until the first `tidegate add`.
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct Serve {
    /// Configuration to serve: a tidegate.toml, or any mcpServers file
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Address to listen on: a port, or host:port [default: 127.0.0.1:8765]
    #[arg(long, value_name = "ADDRESS", value_parser = address, conflicts_with = "stdio")]
    listen: Option<ListenAddress>,

    /// Serve one client over standard input and output instead of HTTP
    #[arg(long)]
    stdio: bool,

    /// Host name by which clients may reach this server, besides localhost (repeatable)
    #[arg(long = "allow-host", value_name = "HOST", value_parser = host)]
    hosts: Vec<String>,

    /// Web origin that may call this server, such as https://app.example.com (repeatable)
    #[arg(long = "allow-origin", value_name = "ORIGIN", value_parser = origin)]
    origins: Vec<String>,

    /// Protocol versions to accept: up to 2025-11-25 (legacy), 2026-07-28 (modern), or both
    #[arg(long, value_enum, default_value = "both", hide_possible_values = true)]
    era: Era,

    /// Also serve the deprecated HTTP+SSE transport (2024-11-05) at /sse
    #[arg(long)]
    http_sse: bool,

    /// With --stdio, accept requests before the client has sent initialize
    #[arg(long, requires = "stdio")]
    lenient_init: bool,

    /// Serve a small demo server instead of a configuration
    #[arg(long, conflicts_with = "config")]
    demo: bool,

    /// For the demonstration server: which numbers errors have, those of the specification or those that clients of an
    /// older server look for.
    #[arg(long = "legacy-errors", value_enum, default_value = "strict", value_name = "PROFILE", hide = true)]
    errors: Errors,

    /// Log more; twice (-vv) also logs every message
    #[arg(short = 'v', long = "verbose", action = clap::ArgAction::Count, help_heading = "Logging")]
    verbose: u8,
}

const EXAMPLES: &str = "\
Examples:
  tidegate serve                        serve ./tidegate.toml or the user's configuration
  tidegate serve --listen 8080          on another port
  tidegate serve --stdio                for clients that start their servers themselves
  tidegate serve --config servers.json  serve an mcpServers file";

fn address(text: &str) -> Result<ListenAddress, String> {
    text.parse()
}

fn host(text: &str) -> Result<String, &'static str> {
    tidegate_config::check_host(text).map(|()| text.to_owned())
}

fn origin(text: &str) -> Result<String, &'static str> {
    tidegate_config::check_origin(text).map(|()| text.to_owned())
}

impl Serve {
    /// Which log lines are wanted, if the command line says so. That a connection was opened is left out as long as
    /// nobody asks for certain lines: a server that is ready says so itself.
    pub(crate) fn log_level(&self) -> Option<&'static str> {
        match self.verbose {
            0 if std::env::var_os("LOG_LEVEL").is_some() => None,
            0 => Some("info,tidegate::connected=error"),
            1 => Some("info,tidegate=debug,tidegate::wire=info"),
            _ => Some("info,tidegate=trace"),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Era {
    Both,
    Legacy,
    Modern,
}

#[derive(Clone, Copy, ValueEnum)]
enum Errors {
    Strict,
    Gbif,
    Percolate,
    Docling,
}

impl From<Errors> for Profile {
    fn from(errors: Errors) -> Profile {
        match errors {
            Errors::Strict => Profile::Strict,
            Errors::Gbif => Profile::Gbif,
            Errors::Percolate => Profile::Percolate,
            Errors::Docling => Profile::Docling,
        }
    }
}

impl From<Era> for Eras {
    fn from(era: Era) -> Eras {
        match era {
            Era::Both => Eras::Both,
            Era::Legacy => Eras::Legacy,
            Era::Modern => Eras::Modern,
        }
    }
}

pub(crate) async fn run(serve: Serve) -> Result<Exit, Failure> {
    let environment = Environment::read(|name| std::env::var(name).ok()).map_err(Failure::usage)?;
    let file = if serve.demo { None } else { Config::find(serve.config.as_deref()) };
    let ancestry = Ancestry::with(file.as_deref())?;
    // Before the file is read, so that no change is missed.
    let source = if serve.demo { ConfigSource::Fixed } else { ConfigSource::of(file.as_deref()) };
    let mut settings = match &file {
        Some(file) => load(file)?,
        None => unconfigured(if serve.demo { "demo" } else { "memory" }),
    };
    environment.apply(&mut settings);
    // Before any server is started: what cannot listen has no use for them.
    let endpoint = match serve.stdio {
        true => None,
        false => Some(Endpoint::open(&serve, &settings, file.as_deref()).await?),
    };
    signals::watch(settings.drain);
    if let Some(bytes) = settings.listen.max_buffered {
        Budget::of_process().set_limit(bytes);
    }
    let handle = GatewayHandle::default();
    let dial = dial::with(serve.errors.into(), ancestry.clone(), handle.clone());
    let gateway = Gateway::builder().settings(settings.clone()).dial(dial).start()?;
    handle.set(Some(gateway.clone()));
    let mut announcer = Announcer::new(gateway.clone());
    announcer.announce();
    let is_configured = Arc::new(AtomicBool::new(file.is_some()));
    let pages = BuiltinPages::of(&settings);
    let follower = ConfigFollower {
        gateway: gateway.clone(),
        announcer,
        environment,
        ancestry,
        pages: pages.clone(),
        listen: settings.listen.clone(),
        calls: settings.calls,
        is_configured: is_configured.clone(),
    };
    let following = tokio::spawn(follower.run(source));
    let statistics = Statistics::start();
    let served = match endpoint {
        None => Ok(over_stdio(&serve, &gateway, &settings, is_configured).await),
        Some(endpoint) => endpoint.serve(&gateway, &pages, is_configured).await,
    };
    following.abort();
    handle.set(None);
    gateway.close().await;
    statistics.end();
    served
}

/// Reads a configuration.
fn load(file: &Path) -> Result<Settings, Failure> {
    let settings = configuration::load(file)?;
    for note in &settings.notes {
        tracing::warn!("{note}");
    }
    Ok(settings)
}

/// What is served without a configuration: a server of the program, whose tools keep their names.
pub(super) fn unconfigured(builtin: &str) -> Settings {
    // A demonstration leaves nothing behind.
    let state_dir = tidegate_config::usual_state_dir().filter(|_| builtin != "demo");
    let mut settings = Settings { state_dir, ..Settings::default() };
    let mut server = ServerSettings::new(builtin, Source::Builtin(builtin.to_owned()));
    server.prefix = String::new();
    let told = registry().builtins.get(builtin).map(|builtin| builtin.usual_settings());
    settings.servers.push(match told {
        Some(told) => server.told(builtin, &told),
        None => server.seal(),
    });
    settings
}

async fn over_stdio(
    serve: &Serve,
    gateway: &Gateway,
    settings: &Settings,
    is_configured: Arc<AtomicBool>,
) -> Exit {
    // Without a file there is nothing to read again.
    let mut edge = stdio::Settings {
        drain: settings.drain,
        ignores_hangup: is_configured,
        ..stdio::Settings::default()
    };
    edge.edge.eras = serve.era.into();
    edge.edge.lenient_init = serve.lenient_init;
    edge.edge.limits.max_bytes = settings.listen.max_message;
    edge.edge.relays = true;
    let ended = stdio::serve(gateway.clone(), edge).await;
    let why = match ended {
        stdio::Ended::Eof => "standard input was closed",
        stdio::Ended::OutputClosed => "standard output was closed",
        stdio::Ended::Signal(signal) => signal,
    };
    tracing::info!("Shutting down: {why}");
    logging::hush();
    Exit::Fine
}

/// The endpoint, which has its address and nothing to serve yet.
struct Endpoint {
    listeners: Vec<TcpListener>,
    /// From before it says where it is, so that whoever reads that can end it.
    ending: ShutdownSignals,
    edge: http::Settings,
    /// Where it is.
    url: String,
    /// Who can see its page.
    audience: Audience,
}

impl Endpoint {
    /// Takes the address, and says so.
    async fn open(serve: &Serve, settings: &Settings, file: Option<&Path>) -> Result<Endpoint, Failure> {
        descriptors::raise();
        let listen = &settings.listen;
        let wanted = match &serve.listen {
            Some(wanted) => wanted.clone(),
            None if listen.address_is_said => listen.address.parse().map_err(Failure::usage)?,
            None => default_address::from_environment(&listen.address, |name| std::env::var(name).ok())
                .and_then(|address| address.parse())
                .map_err(Failure::usage)?,
        };
        let listeners = bind::bind(&wanted).await?;
        let cannot = |error| Failure::new(Exit::Unavailable, format!("cannot listen on {wanted}: {error}"));
        let address =
            listeners.first().map_or(Ok(SocketAddr::from(([127, 0, 0, 1], 0))), TcpListener::local_addr);
        let address = address.map_err(cannot)?;
        let mut edge = http::Settings {
            hosts: [&listen.hosts[..], &serve.hosts].concat(),
            origins: [&listen.origins[..], &serve.origins].concat(),
            http_sse: listen.http_sse || serve.http_sse,
            path: listen.path.clone(),
            drain: settings.drain,
            session_dir: settings.state_dir.as_ref().map(|dir| dir.join("sessions")),
            max_connections: listen.max_connections,
            connection_idle: listen.connection_idle,
            request_within: listen.request_within,
            ..http::Settings::default().eras(serve.era.into())
        };
        edge.edge.limits.max_bytes = listen.max_message;
        edge.edge.relays = true;
        if !address.ip().is_loopback() && edge.hosts.is_empty() {
            return Err(Failure::usage(format!(
                "other machines can reach {address}: say by which host name with --allow-host NAME"
            ))
            .advise("There is no authentication yet: anyone who can reach the port could call every tool."));
        }
        let url = bind::url(address, &edge.hosts, &edge.path);
        let links = BuiltinPages::of(settings).links(&edge.path).into_iter();
        let pages = links.map(|link| (link.title, bind::url(address, &edge.hosts, link.path))).collect();
        let ending = ShutdownSignals::listen().map_err(|error| {
            Failure::new(Exit::Unavailable, format!("cannot listen for signals: {error}"))
        })?;
        Banner { url: &url, pages, address, settings, file, demo: serve.demo }.show()?;
        // A name that others use leads here from elsewhere, through a proxy for one.
        let audience = match address.ip().is_loopback() && edge.hosts.is_empty() {
            true => Audience::Local,
            false => Audience::Remote,
        };
        Ok(Endpoint { listeners, ending, edge, url, audience })
    }

    /// Serves until a signal comes.
    async fn serve(
        self,
        gateway: &Gateway,
        pages: &BuiltinPages,
        is_configured: Arc<AtomicBool>,
    ) -> Result<Exit, Failure> {
        let Endpoint { listeners, ending, mut edge, url, audience } = self;
        let (linked, path) = (pages.clone(), edge.path.clone());
        let home = home_page::pages(gateway.clone(), url.clone(), audience, move || linked.links(&path));
        edge.pages = home.into_iter().chain(pages.files()).collect();
        // Sessions of legacy clients outlive a restart as long as the keys do.
        let keys = gateway.clone();
        edge.session_sealer = Some(http::SessionSealer::following(move || keys.sealer()));
        let ending = {
            let gateway = gateway.clone();
            async move {
                ending.wait(is_configured).await;
                tracing::info!("Shutting down");
                logging::hush();
                // Subscriptions end here; else they would keep their connections open.
                gateway.shut_down();
            }
        };
        // The front, outermost first: the guard, who calls (nobody is asked yet), pages and the endpoint; then, inside of the
        // gateway, `layers::front`.
        let front = http::front(gateway.clone(), &edge, |site| site);
        http::serve(front, listeners, edge, ending)
            .await
            .map_err(|error| Failure::new(Exit::Unavailable, format!("cannot serve {url}: {error}")))?;
        Ok(Exit::Fine)
    }
}
