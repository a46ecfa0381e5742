//! The `mcpServers` file of another program as a configuration: its servers, and the defaults of a gateway.

use std::path::{Path, PathBuf};

use tidegate_client::ServersFile;

use crate::config::Variables;
use crate::error::ConfigError;
use crate::resolve::usual_state_dir;
use crate::secrets::folder;
use crate::settings::{ServerSettings, Settings, Source, ToolSettings};
use crate::{names, shown};

/// What the file means, and the other files that it depends on.
///
/// The file belongs to somebody else, who may know variables that we do not. So a server that cannot be read is left out
/// with a note, and the others are used.
pub(crate) fn settings(
    text: &str,
    origin: &Path,
    env: Variables<'_>,
) -> (Result<Settings, ConfigError>, Vec<PathBuf>) {
    let file = match ServersFile::parse(text, origin) {
        Ok(file) => file,
        // The message names the file itself.
        Err(error) => {
            return (Err(ConfigError::whole(origin, without(origin, &error.to_string()))), Vec::new());
        }
    };
    let lock_file = folder(origin).join("tidegate.lock");
    let mut settings = Settings {
        tools: ToolSettings { lock_file, ..ToolSettings::default() },
        state_dir: usual_state_dir(),
        ..Settings::default()
    };
    for (name, entry) in file.entries_with(env) {
        let entry = match entry {
            Ok(entry) if entry.disabled => {
                settings
                    .notes
                    .push(format!("the server {name:?} is left out: the file says that it is disabled"));
                continue;
            }
            Ok(entry) => entry,
            Err(error) => {
                settings.notes.push(format!("the server {name:?} is left out: {error}"));
                continue;
            }
        };
        let fit = names::made_fit(name);
        if settings.servers.iter().any(|server| server.name == fit) {
            settings
                .notes
                .push(format!("the server {name:?} is left out: another one is called {fit:?} already"));
            continue;
        }
        if fit != name {
            settings.notes.push(format!("the server {name:?} is called {fit:?} here"));
        }
        settings.notes.extend(entry.notes.iter().map(|note| format!("the server {fit:?}: {note}")));
        let mut server = ServerSettings::new(fit, Source::Target(entry.target));
        if let Some(shown) = file.raw(name).and_then(shown::entry) {
            server.shown = shown;
        }
        settings.servers.push(server);
    }
    let files = file.names().filter_map(|name| env_file(&file, name)).collect();
    (Ok(settings), files)
}

/// The `envFile` of a server, if it is written without variables.
fn env_file(file: &ServersFile, name: &str) -> Option<PathBuf> {
    let path = file.raw(name)?.get("envFile")?.as_str().filter(|path| !path.contains('$'))?;
    Some(file.folder().join(path))
}

/// A message without the name of the file at its beginning.
fn without(origin: &Path, message: &str) -> String {
    let shown = origin.display().to_string();
    message.strip_prefix(&shown).map_or(message.to_owned(), |rest| format!("the file{rest}"))
}
