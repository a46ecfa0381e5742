//! Picking up changes of the configuration while serving.

use std::path::PathBuf;

use tidegate_config::{Config, Watcher};
use tidegate_gateway::Gateway;

use super::environment::Environment;

/// Puts every new content of the file in force. A file that cannot be used changes nothing.
pub(super) async fn keep(gateway: Gateway, file: PathBuf, mut watcher: Watcher, environment: Environment) {
    loop {
        watcher.changed().await;
        let place = file.clone();
        // Files are read for it, which may take a while: not where calls are answered.
        let load = move || Config::load(&place, &|name| std::env::var(name).ok());
        let mut settings = match tokio::task::spawn_blocking(load).await {
            Ok(Ok(settings)) => settings,
            Ok(Err(error)) => {
                tracing::error!("the configuration stays as it was:\n{error}");
                continue;
            }
            Err(error) => {
                tracing::error!("the configuration stays as it was: it could not be read ({error})");
                continue;
            }
        };
        environment.apply(&mut settings);
        for note in &settings.notes {
            tracing::warn!("{note}");
        }
        match gateway.reload(settings).await {
            Ok(()) => tracing::info!(file = %file.display(), "the new configuration is in force"),
            Err(error) => tracing::error!("the configuration stays as it was: {}", error.message),
        }
    }
}
