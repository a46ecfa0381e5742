//! ConfigFollower the configuration while serving: changes of the file, and the first file where there was none.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::future::select_all;
use tidegate_config::{CallSettings, Config, ListenSettings, Settings, Watcher};
use tidegate_gateway::{Gateway, LIFECYCLE};

use super::ancestry::Ancestry;
use super::announcer::Announcer;
use super::builtin_pages::BuiltinPages;
use super::environment::Environment;
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
    /// How the endpoint was opened, which stays as it is.
    pub(super) listen: ListenSettings,
    /// How much calls may take, which stays as well.
    pub(super) calls: CallSettings,
    /// Whether there is a file by now.
    pub(super) is_configured: Arc<AtomicBool>,
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
        let load = move || configuration::load(&place);
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
        self.note(&settings);
        if let Err(error) = self.gateway.reload(settings.clone()).await {
            tracing::error!("Configuration not changed: {}", error.message);
            return false;
        }
        self.pages.follow(&settings);
        self.announcer.announce();
        true
    }

    /// What is worth knowing about it.
    fn note(&mut self, settings: &Settings) {
        for note in &settings.notes {
            tracing::warn!("{note}");
        }
        if settings.listen != self.listen {
            tracing::warn!("How to listen has changed (listen, path, allow_hosts, …): restart to apply that");
            self.listen = settings.listen.clone();
        }
        if settings.calls != self.calls {
            tracing::warn!(
                "The limits of calls have changed (max_calls, max_result, call_timeout): restart to apply that"
            );
            self.calls = settings.calls;
        }
    }
}
