//! [`GatewayArgs`]: the options of all commands that ask a running gateway, and which one they mean.

use std::path::{Path, PathBuf};

use clap::Args;
use tidegate_config::{Config, Settings};
use url::Url;

use super::client::AdminClient;
use super::presence::{self, Presence, Transport};
use crate::commands::configuration;
use crate::commands::failure::Failure;
use crate::commands::header::Header;
use crate::commands::output;
use crate::commands::serve::unconfigured;
use crate::term::clean::line as clean;

/// Which running gateway is meant.
#[derive(Args)]
pub(crate) struct GatewayArgs {
    /// Where the gateway is [default: the one that runs with the configuration, else where that says]
    #[arg(long, value_name = "URL", help_heading = "Gateway")]
    pub(crate) url: Option<Url>,

    /// A header to send to a URL, such as 'Authorization: Bearer KEY' (repeatable)
    #[arg(long = "header", short = 'H', value_name = "NAME: VALUE", help_heading = "Gateway")]
    headers: Vec<String>,

    /// The process of the gateway, if several run with the configuration
    #[arg(long, value_name = "PID", conflicts_with = "url", help_heading = "Gateway")]
    pid: Option<u32>,

    /// The configuration [default: ./tidegate.toml, else the user's own]
    #[arg(long, value_name = "FILE", conflicts_with = "url", help_heading = "Gateway")]
    pub(crate) config: Option<PathBuf>,
}

/// What a command is about.
pub(crate) struct Target {
    /// The configuration, if there is one.
    pub(crate) file: Option<PathBuf>,
    /// What it means.
    pub(crate) settings: Settings,
    /// Whom to ask.
    pub(crate) client: AdminClient,
    /// Gateways that run with the same configuration beside the one that is asked: over stdio, for a client each.
    pub(crate) beside: Vec<Presence>,
    /// Gateways that run with the same state directory and another configuration.
    pub(crate) others: Vec<Presence>,
}

impl Target {
    /// One that asks nobody else.
    fn only(file: Option<PathBuf>, settings: Settings, client: AdminClient) -> Target {
        Target { file, settings, client, beside: Vec::new(), others: Vec::new() }
    }
}

impl GatewayArgs {
    /// Finds the gateway that is meant. Whether it answers is not known yet.
    pub(crate) async fn find(&self) -> Result<Target, Failure> {
        self.locate(false).await
    }

    /// The same for whoever asks all that run with the configuration.
    pub(crate) async fn find_all(&self) -> Result<Target, Failure> {
        self.locate(true).await
    }

    async fn locate(&self, all: bool) -> Result<Target, Failure> {
        let headers = self.headers()?;
        let file = Config::find(self.config.as_deref());
        let loaded = file.as_deref().map(configuration::load_unserved).transpose();
        let (settings, broken) = match loaded {
            Ok(settings) => (settings.unwrap_or_else(|| unconfigured("memory")), None),
            // One that runs does so with what was right before, and one elsewhere does not care.
            Err(error) => {
                let state_dir = file.as_deref().and_then(Config::state_dir_of);
                (Settings { state_dir, ..unconfigured("memory") }, Some(error))
            }
        };
        let running = match &settings.state_dir {
            Some(state_dir) => presence::running(state_dir).await,
            None => Vec::new(),
        };
        if let Some(url) = &self.url {
            let client = AdminClient::at(url.clone(), headers, token_for(url, &running))?;
            let there = running.into_iter().find(|presence| is_at(presence, url));
            // The file that can be changed is that of the gateway which is asked.
            let file = there.and_then(|presence| presence.config);
            return Ok(Target::only(file, settings, client));
        }
        if let Some(pid) = self.pid {
            let Some(meant) = running.iter().find(|presence| presence.pid == pid) else {
                let failure = Failure::usage(format!("no gateway with the process {pid} runs here"));
                return Err(with_list(failure, &running));
            };
            let file = meant.config.clone().or(file);
            let client = AdminClient::of(meant, headers)?;
            return Ok(Target::only(file, settings, client));
        }
        let (mut own, mut others): (Vec<Presence>, Vec<Presence>) =
            running.into_iter().partition(|presence| is_of(presence, file.as_deref()));
        if own.is_empty() {
            // One that began without a configuration takes the first that comes.
            (own, others) = others.into_iter().partition(|presence| presence.config.is_none());
        }
        match broken {
            Some(error) if own.is_empty() => return Err(error.into()),
            Some(_) => output::note(
                "note: the configuration has mistakes; tidegate check names them. The gateway runs with what was right before.",
            ),
            None => {}
        }
        // The one over HTTP is for everybody; those over stdio are for a client each.
        own.sort_by_key(|one| one.transport != Transport::Http);
        let over_http = own.iter().filter(|one| one.transport == Transport::Http).count();
        let client = match (own.as_slice(), over_http) {
            ([], _) => {
                let url = configured_url(&settings)?;
                // Whoever is there is known to serve something else.
                match others.iter().any(|other| is_at(other, &url)) {
                    true => AdminClient::nowhere(&url),
                    false => AdminClient::at(url, headers, None)?,
                }
            }
            ([only], _) => AdminClient::of(only, headers)?,
            ([first, ..], count) if all || count == 1 => AdminClient::of(first, headers)?,
            _ => {
                let what = "several gateways run with this configuration: choose one with --pid";
                return Err(with_list(Failure::usage(what), &own));
            }
        };
        let beside = own.into_iter().skip(1).collect();
        Ok(Target { file, settings, client, beside, others })
    }

    fn headers(&self) -> Result<axum::http::HeaderMap, Failure> {
        let mut headers = axum::http::HeaderMap::new();
        for header in &self.headers {
            let Header { name, value, .. } = Header::parse(header)?;
            let (Ok(name), Ok(mut value)) =
                (name.parse::<axum::http::HeaderName>(), value.parse::<axum::http::HeaderValue>())
            else {
                return Err(Failure::usage(format!("--header {name}: this is no value of a header")));
            };
            value.set_sensitive(true);
            headers.insert(name, value);
        }
        Ok(headers)
    }
}

/// Whether a gateway runs with this configuration, or both have none.
fn is_of(presence: &Presence, file: Option<&Path>) -> bool {
    match (&presence.config, file) {
        (Some(config), Some(file)) => {
            std::fs::canonicalize(file).is_ok_and(|file| file == *config) || config == file
        }
        (config, file) => config.is_none() && file.is_none(),
    }
}

/// Whether a gateway's API is at this URL.
fn is_at(presence: &Presence, url: &Url) -> bool {
    let own = presence.url.as_deref().and_then(|own| Url::parse(own).ok());
    own.is_some_and(|own| own.origin() == url.origin())
}

/// The token of the gateway at this URL, if it runs on this machine and is ours.
fn token_for(url: &Url, running: &[Presence]) -> Option<String> {
    running.iter().find(|presence| is_at(presence, url))?.token.clone()
}

/// Gateways that run, for whoever has to choose.
fn with_list(failure: Failure, running: &[Presence]) -> Failure {
    match running {
        [] => failure,
        running => {
            let all = running.iter().map(shown).collect::<Vec<_>>().join("\n");
            failure.advise(format!("These run:\n{all}"))
        }
    }
}

/// A gateway in a line.
pub(crate) fn shown(presence: &Presence) -> String {
    let place = presence.url.clone().unwrap_or_else(|| presence.transport.as_str().to_owned());
    let config = presence.config.as_ref().map(|config| format!(", {}", config.display())).unwrap_or_default();
    clean(&format!("--pid {}: {place}{config}, since {}", presence.pid, presence.started))
}

/// Where the admin API of a configuration is.
pub(crate) fn configured_url(settings: &Settings) -> Result<Url, Failure> {
    let listen = &settings.listen;
    let (scheme, address) = match &settings.admin.listen {
        Some(address) => {
            let is_loopback =
                address.parse::<tidegate_config::ListenAddress>().is_ok_and(|it| it.is_loopback());
            (if listen.tls.is_some() && !is_loopback { "https" } else { "http" }, address)
        }
        None => {
            if let Some(url) = listen.public_url.as_deref().and_then(|url| Url::parse(url).ok()) {
                return Ok(url);
            }
            (if listen.tls.is_some() { "https" } else { "http" }, &listen.address)
        }
    };
    let address = match address.parse::<u16>() {
        Ok(port) => format!("127.0.0.1:{port}"),
        Err(_) => address.clone(),
    };
    // Where everybody can reach it, so can this machine.
    let address = address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]");
    let text = format!("{scheme}://{address}");
    Url::parse(&text).map_err(|error| Failure::usage(format!("{text} is no address of a gateway: {error}")))
}
