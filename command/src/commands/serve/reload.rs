//! ConfigFollower the configuration while serving: changes of the file, and the first file where there was none.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use futures_util::future::select_all;
use tidegate::edge::http::Site;
use tidegate_config::{Config, EndpointSettings, Settings, Watcher};
use tidegate_gateway::{Gateway, LIFECYCLE};

use super::ancestry::Ancestry;
use super::announcer::Announcer;
use super::authentication::Authentication;
use super::builtin_pages::BuiltinPages;
use super::environment::Environment;
use super::http_server::endpoint_paths;
use super::logs::Logs;
use crate::commands::configuration;

/// What a gateway serves.
pub(super) enum ConfigSource {
    /// A file, and who watches it.
    File(PathBuf, Watcher),
    /// No file yet; those that would be found, and who watches them.
    Nothing(Vec<(PathBuf, Watcher)>),
    /// What no file can change.
    Fixed,
}

impl ConfigSource {
    /// A file that is there, or the places where one may come.
    pub(super) fn of(file: Option<&Path>) -> ConfigSource {
        match file {
            Some(file) => ConfigSource::File(file.to_owned(), Watcher::start(file)),
            None => {
                let watched = |path: PathBuf| (path.clone(), Watcher::start(path));
                ConfigSource::Nothing(Config::search_paths().into_iter().map(watched).collect())
            }
        }
    }
}

/// What a change of the configuration changes.
pub(super) struct ConfigFollower {
    pub(super) gateway: Gateway,
    pub(super) announcer: Announcer,
    pub(super) environment: Environment,
    pub(super) ancestry: Ancestry,
    pub(super) pages: BuiltinPages,
    /// What is served over HTTP, if anything is.
    pub(super) site: Option<Site<Gateway>>,
    /// Who may call there; `None` for everybody.
    pub(super) authentication: Option<Authentication>,
    /// What is in force. How to listen, how much calls may take, and whether anybody is authenticated stays as it was at the
    /// start.
    pub(super) settings: Settings,
    /// What follows `[log]`.
    pub(super) logs: Logs,
    /// The names by which clients may come that are not from the file.
    pub(super) hosts: Vec<String>,
    /// Whether a file must not let other machines reach what they should not.
    pub(super) is_checked: bool,
    /// Whether there is a file by now.
    pub(super) is_configured: Arc<AtomicBool>,
    /// Where it is then, for whoever asks.
    pub(super) config: Arc<OnceLock<PathBuf>>,
}

impl ConfigFollower {
    /// Applies every change. A file that cannot be used changes nothing.
    pub(super) async fn run(mut self, source: ConfigSource) {
        let (file, mut watcher) = match source {
            ConfigSource::Fixed => return,
            ConfigSource::File(file, watcher) => (file, watcher),
            ConfigSource::Nothing(places) => self.first(places).await,
        };
        loop {
            watcher.changed().await;
            self.apply(&file, "Configuration changed: reloading").await;
        }
    }

    /// Waits for the first file that can be used.
    async fn first(&mut self, mut places: Vec<(PathBuf, Watcher)>) -> (PathBuf, Watcher) {
        loop {
            let changes = places.iter_mut().map(|(_, watcher)| Box::pin(watcher.changed()));
            select_all(changes).await;
            let Some(at) = places.iter().position(|(path, _)| path.is_file()) else { continue };
            let file = places[at].0.clone();
            match self.ancestry.adopt(&file) {
                Ok(()) if self.apply(&file, "Found a configuration: serving").await => {
                    self.is_configured.store(true, Ordering::Relaxed);
                    let _ = self.config.set(std::path::absolute(&file).unwrap_or(file));
                    return places.swap_remove(at);
                }
                Ok(()) => {}
                Err(error) => tracing::error!("Configuration not used: {error}"),
            }
        }
    }

    /// Puts what is in the file now in force, and says so.
    async fn apply(&mut self, file: &Path, news: &str) -> bool {
        let place = file.to_owned();
        // Files are read for it, which may take a while: not where calls are answered.
        let is_checked = self.is_checked;
        let load = move || match is_checked {
            true => configuration::load(&place),
            false => configuration::load_unserved(&place),
        };
        let mut settings = match tokio::task::spawn_blocking(load).await {
            Ok(Ok(settings)) => settings,
            Ok(Err(error)) => {
                tracing::error!("Configuration not changed, because the file has errors:");
                error.to_string().lines().for_each(|line| tracing::error!("{line}"));
                return false;
            }
            Err(error) => {
                tracing::error!(%error, "Configuration not changed, because the file cannot be read");
                return false;
            }
        };
        self.environment.apply(&mut settings);
        let file = file.display();
        tracing::info!(target: LIFECYCLE, %file, "{news} {file}");
        self.note(&mut settings);
        if let Err(error) = self.put_in_force(&settings).await {
            tracing::error!("Configuration not changed: {error}");
            return false;
        }
        self.logs.follow(&mut settings.log, &self.settings.log);
        self.pages.follow(&settings);
        self.announcer.announce();
        self.settings = settings;
        true
    }

    /// Has callers, endpoints and servers follow other settings, or nothing. At no time is there an endpoint that those who check
    /// callers do not know.
    async fn put_in_force(&self, settings: &Settings) -> Result<(), String> {
        if let (Some(authentication), Some(auth)) = (&self.authentication, &settings.auth) {
            authentication.reload(auth, &settings.endpoints).map_err(|error| error.to_string())?;
        }
        let is_kept = |name: &str| settings.endpoints.iter().any(|endpoint| endpoint.name == name);
        let kept: Vec<_> =
            self.settings.endpoints.iter().filter(|endpoint| is_kept(&endpoint.name)).cloned().collect();
        self.set_endpoints(&kept);
        if let Err(error) = self.gateway.reload(settings.clone()).await {
            self.set_endpoints(&self.settings.endpoints);
            if let (Some(authentication), Some(auth)) = (&self.authentication, &self.settings.auth)
                && let Err(error) = authentication.reload(auth, &self.settings.endpoints)
            {
                tracing::error!("Callers are authenticated as the new configuration says: {error}");
            }
            return Err(error.message);
        }
        self.set_endpoints(&settings.endpoints);
        Ok(())
    }

    fn set_endpoints(&self, endpoints: &[EndpointSettings]) {
        if let Some(site) = &self.site {
            site.set_endpoints(endpoint_paths(endpoints, &self.settings.listen.path));
        }
    }

    /// What is worth knowing about it. What needs a restart stays as it is.
    fn note(&mut self, settings: &mut Settings) {
        for note in &settings.notes {
            tracing::warn!("{note}");
        }
        settings.listen.insecure |= self.settings.listen.insecure;
        settings.listen.hosts.extend(self.hosts.iter().cloned());
        if settings.listen != self.settings.listen {
            tracing::warn!(
                "How to listen has changed (listen, path, public_url, tls, …): restart to apply that"
            );
        }
        if settings.admin != self.settings.admin {
            tracing::warn!("Where the admin API listens has changed ([admin]): restart to apply that");
        }
        if settings.calls != self.settings.calls {
            tracing::warn!(
                "The limits of calls have changed (max_calls, max_result, call_timeout): restart to apply that"
            );
        }
        if settings.audit != self.settings.audit {
            tracing::warn!("Where the audit trail goes has changed ([audit]): restart to apply that");
        }
        if settings.telemetry != self.settings.telemetry {
            tracing::warn!("What is measured has changed ([telemetry]): restart to apply that");
        }
        match (&self.settings.auth, &settings.auth) {
            (None, Some(_)) if self.site.is_some() => {
                tracing::warn!(
                    "[auth] has been added: restart to apply that. Until then, nobody is asked for a key or a token"
                );
            }
            (Some(_), None) if self.site.is_some() => {
                tracing::warn!(
                    "[auth] has been removed: restart to apply that. Until then, everybody needs a key or a token"
                );
            }
            _ => {}
        }
        settings.listen = self.settings.listen.clone();
        settings.admin = self.settings.admin.clone();
        settings.calls = self.settings.calls;
        settings.audit = self.settings.audit.clone();
        settings.telemetry = self.settings.telemetry.clone();
        if settings.auth.is_some() != self.settings.auth.is_some() {
            settings.auth = self.settings.auth.clone();
        }
    }
}
