//! `tidegate serve`: one endpoint in front of the configured servers.

mod admin;
mod admin_listener;
mod ancestry;
mod announcer;
mod audit;
pub(super) mod authentication;
pub(super) mod banner;
mod bind;
mod builtin_pages;
pub(super) mod calls_api;
mod default_address;
mod descriptors;
mod dial;
mod environment;
mod export;
mod gateway_handle;
mod home_page;
mod http_server;
pub(crate) mod logs;
mod monitoring;
mod port_owner;
mod queues;
mod reload;
mod signals;
mod statistics;
mod story_keeper;

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use clap::{Args, ValueEnum};
use tidegate::edge::stdio;
use tidegate::protocol::Profile;
use tidegate::{Eras, logging};
use tidegate_auth::keys::DEFAULT_ENDPOINT;
use tidegate_config::{Config, ListenAddress, ServerSettings, Settings, Source};
use tidegate_gateway::Gateway;
use tidegate_service::budget::Budget;

use self::admin::{Admin, AdminSocket};
use self::ancestry::Ancestry;
use self::announcer::Announcer;
use self::audit::Trail;
use self::builtin_pages::BuiltinPages;
use self::environment::Environment;
use self::export::Export;
use self::gateway_handle::GatewayHandle;
use self::http_server::HttpServer;
use self::logs::Logs;
use self::monitoring::Monitoring;
use self::reload::{ConfigFollower, ConfigSource};
use self::statistics::Statistics;
use super::admin::presence::Transport;
use super::exit::Exit;
use super::failure::Failure;
use super::{configuration, near};
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

    /// Let other machines connect without authentication, or without encryption
    #[arg(long, conflicts_with = "stdio")]
    insecure: bool,

    /// With --stdio only: serve this endpoint of the configuration instead of everything
    // What is required is not, where it conflicts with something that is there: so that is named, too.
    #[arg(long, value_name = "NAME", requires = "stdio", conflicts_with_all = ["listen", "insecure"])]
    endpoint: Option<String>,

    /// Protocol versions to accept: up to 2025-11-25 (legacy), 2026-07-28 (modern), or both
    #[arg(long, value_enum, default_value = "both", hide_possible_values = true)]
    era: Era,

    /// Also serve the deprecated HTTP+SSE transport (2024-11-05) at /sse
    #[arg(long)]
    http_sse: bool,

    /// With --stdio, accept requests before the client has sent initialize
    #[arg(long, requires = "stdio", conflicts_with_all = ["listen", "insecure"])]
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

    /// What was said about logging elsewhere.
    #[arg(skip)]
    log: logs::Said,
}

const EXAMPLES: &str = "\
Examples:
  tidegate serve                        serve ./tidegate.toml or the user's configuration
  tidegate serve --listen 8080          on another port
  tidegate serve --stdio                for clients that start their servers themselves
  tidegate serve --stdio --endpoint research
                                        only what [endpoints.research] selects
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
    /// Whether what a file says about listening stands on its own: over stdio nobody listens, and where the command line says
    /// something about it, too, both are looked at together.
    fn is_checked(&self) -> bool {
        !self.stdio && !self.insecure && self.hosts.is_empty()
    }

    /// The endpoint over stdio; `None` for the default one.
    fn named_endpoint(&self) -> Option<&str> {
        self.endpoint.as_deref().filter(|name| *name != DEFAULT_ENDPOINT)
    }

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

    /// Notes whether `--log-format` and `--log-level`, or their variables, are there.
    pub(crate) fn note_logging(&mut self, format: bool, level: bool) {
        let level = level || self.verbose > 0 || std::env::var_os("LOG_LEVEL").is_some();
        self.log = logs::Said { format, level };
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
        Some(file) => load(file, serve.is_checked())?,
        None => unconfigured(if serve.demo { "demo" } else { "memory" }),
    };
    let logs = Logs::start(&settings.log, serve.log)?;
    for note in &settings.notes {
        tracing::warn!("{note}");
    }
    environment.apply(&mut settings);
    settings.listen.insecure |= serve.insecure;
    settings.listen.hosts.extend(serve.hosts.iter().cloned());
    if let Some(name) = serve.named_endpoint() {
        check_endpoint(name, &settings)?;
    }
    // Over stdio there is one user, whom nobody has to authenticate.
    if serve.stdio {
        settings.auth = None;
    }
    if let Some(bytes) = settings.listen.max_buffered {
        Budget::of_process().set_limit(bytes);
    }
    let trail = Trail::start(&settings, serve.stdio)?;
    // Before any server is started: what cannot listen, or let anybody in, has no use for them.
    let server = match serve.stdio {
        true => None,
        false => Some(HttpServer::open(&serve, &settings, file.as_deref()).await?),
    };
    signals::watch(settings.drain);
    let handle = GatewayHandle::default();
    let authentication = server.as_ref().and_then(HttpServer::authentication);
    let dial = dial::with(serve.errors.into(), ancestry.clone(), handle.clone(), authentication.is_some());
    let mut builder = Gateway::builder().settings(settings.clone()).dial(dial);
    if let Some(authentication) = &authentication {
        builder = builder.check(authentication.scope_check());
    }
    let gateway = trail.guard(builder).start()?;
    handle.set(Some(gateway.clone()));
    let mut announcer = Announcer::new(gateway.clone());
    announcer.announce();
    let is_configured = Arc::new(AtomicBool::new(file.is_some()));
    let pages = BuiltinPages::of(&settings);
    let config = Arc::new(OnceLock::new());
    if let Some(file) = &file {
        let _ = config.set(std::path::absolute(file).unwrap_or_else(|_| file.clone()));
    }
    // Where nobody can ask, no collector is told and no file is read, nothing is measured.
    let (telemetry, has_socket) = (&settings.telemetry, settings.state_dir.is_some());
    let is_monitored =
        server.is_some() || has_socket || telemetry.otlp.is_some() || telemetry.stories.file.is_some();
    let monitoring = is_monitored.then(|| Monitoring::start(&settings, &gateway));
    let export = monitoring.as_ref().and_then(|monitoring| Export::start(&settings, &gateway, monitoring));
    let transport = if serve.stdio { Transport::Stdio } else { Transport::Http };
    let admin =
        monitoring.as_ref().map(|monitoring| Admin::new(&gateway, monitoring, transport, config.clone()));
    let api_url = server.as_ref().and_then(HttpServer::api_url);
    let served = server.zip(monitoring.as_ref().zip(admin.as_ref())).map(|(server, (monitoring, admin))| {
        server.serve(&gateway, &pages, monitoring, admin, is_configured.clone())
    });
    let socket = match &admin {
        Some(admin) => Some(AdminSocket::open(admin, &settings, api_url).await),
        None => None,
    };
    let follower = ConfigFollower {
        gateway: gateway.clone(),
        announcer,
        environment,
        ancestry,
        pages,
        site: served.as_ref().map(|(site, _)| site.clone()),
        authentication,
        settings: settings.clone(),
        logs,
        hosts: serve.hosts.clone(),
        is_checked: serve.is_checked(),
        is_configured: is_configured.clone(),
        config,
    };
    let following = tokio::spawn(follower.run(source));
    let counted = monitoring.as_ref().and_then(Monitoring::counted);
    let statistics = Statistics::start(&gateway, counted, settings.telemetry.health);
    let served = match served {
        None => Ok(over_stdio(&serve, &gateway, &settings, is_configured).await),
        Some((_, serving)) => serving.await,
    };
    following.abort();
    admin.iter().for_each(Admin::end);
    handle.set(None);
    // Each may wait a while for somebody else.
    let socket = async {
        if let Some(socket) = socket {
            socket.close().await;
        }
    };
    let ended = async {
        gateway.close().await;
        trail.close().await;
        if let Some(export) = export {
            export.end().await;
        }
    };
    tokio::join!(socket, ended);
    monitoring.iter().for_each(Monitoring::end);
    statistics.end();
    served
}

/// Whether the configuration has such an endpoint.
fn check_endpoint(name: &str, settings: &Settings) -> Result<(), Failure> {
    let names = || settings.endpoints.iter().map(|endpoint| endpoint.name.as_str());
    if names().any(|known| known == name) {
        return Ok(());
    }
    let is_alone = settings.endpoints.is_empty();
    let known: Vec<&str> = names().chain([DEFAULT_ENDPOINT]).collect();
    let failure = match near(name, names()) {
        Some(meant) => Failure::usage(format!("there is no endpoint {name:?}; did you mean {meant:?}?")),
        None => Failure::usage(format!("there is no endpoint {name:?}")),
    };
    Err(match is_alone {
        true => failure.advise(format!(
            "The configuration has no endpoints: add [endpoints.{name}], or leave out --endpoint."
        )),
        false => failure.advise(format!("The endpoints of the configuration: {}.", known.join(", "))),
    })
}

/// Reads a configuration. `is_checked` says whether other machines must not reach what they should not.
fn load(file: &Path, is_checked: bool) -> Result<Settings, Failure> {
    Ok(if is_checked { configuration::load(file)? } else { configuration::load_unserved(file)? })
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
    edge.edge.endpoint = serve.named_endpoint().map(Into::into);
    edge.edge.limits.max_bytes = settings.listen.max_message;
    edge.edge.relays = true;
    edge.edge.call_ids = settings.telemetry.call_ids;
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
