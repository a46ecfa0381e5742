//! Picking up changes of the configuration while serving.

use std::path::PathBuf;

use tidegate_config::{Config, Watcher};
use tidegate_gateway::Gateway;

/// Puts every new content of the file in force. A file that cannot be used changes nothing.
pub(super) async fn keep(gateway: Gateway, file: PathBuf, mut watcher: Watcher) {
    loop {
        watcher.changed().await;
        let settings = match Config::load(&file, &|name| std::env::var(name).ok()) {
            Ok(settings) => settings,
            Err(error) => {
                tracing::error!("the configuration stays as it was:\n{error}");
                continue;
            }
        };
        for note in &settings.notes {
            tracing::warn!("{note}");
        }
        match gateway.reload(settings) {
            Ok(()) => tracing::info!(file = %file.display(), "the new configuration is in force"),
            Err(error) => tracing::error!("the configuration stays as it was: {}", error.message),
        }
    }
}
