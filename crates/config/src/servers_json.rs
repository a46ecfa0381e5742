//! The `mcpServers` file of another program as a configuration: its servers, and the defaults of a gateway.

use std::path::{Path, PathBuf};

use tidegate_client::{Entry, EntrySettings, ServersFile, ServersFileError};

use crate::config::Variables;
use crate::disabled::DisabledServer;
use crate::dotenv::Dotenv;
use crate::error::ConfigError;
use crate::missing_reference::{Missing, MissingReference};
use crate::resolve::usual_state_dir;
use crate::secrets::folder;
use crate::settings::{ServerSettings, Settings, Source, ToolSettings};
use crate::{names, permissions, server_summary};
use tidegate_policy::Patterns;

/// What the file means, and the other files that it depends on.
///
/// The file belongs to somebody else, who may know variables that we do not. So a server that cannot be read is disabled
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
    let dotenv = Dotenv::beside(origin);
    let variable = |name: &str| env(name).or_else(|| dotenv.get(name));
    let mut settings = Settings {
        tools: ToolSettings { lock_file: folder(origin).join("tidegate.lock"), ..ToolSettings::default() },
        state_dir: usual_state_dir(),
        ..Settings::default()
    };
    for (name, entry) in file.entries_with(&variable) {
        match entry {
            Ok(entry) => settings.take(&file, entry),
            Err(error) => settings.disable(disabled(name, error, origin)),
        }
    }
    let mut files: Vec<PathBuf> = file.names().filter_map(|name| env_file(&file, name)).collect();
    let (dotenv, notes) = dotenv.into_parts();
    settings.notes.extend(files.iter().filter_map(|file| permissions::note(file)));
    settings.notes.extend(notes);
    files.extend(dotenv);
    (Ok(settings), files)
}

impl Settings {
    fn disable(&mut self, server: DisabledServer) {
        self.notes.push(server.to_string());
        self.disabled.push(server);
    }

    fn take(&mut self, file: &ServersFile, entry: Entry) {
        let name = entry.name.as_str();
        if entry.disabled {
            let origin = file.origin();
            let shown = origin.file_name().unwrap_or(origin.as_os_str()).to_string_lossy();
            return self.disable(DisabledServer::off(name, format!("in {shown}")));
        }
        let fit = names::made_fit(name);
        if self.servers.iter().any(|server| server.name == fit) {
            let reason = format!("another server is already called {fit:?}");
            return self.disable(DisabledServer::unusable(name, reason));
        }
        if fit != name {
            self.notes.push(format!("Server {name:?} is called {fit:?} here."));
        }
        self.notes.extend(entry.notes.iter().map(|note| format!("Server {fit:?}: {note}.")));
        let mut server = ServerSettings::new(fit, Source::Target(entry.target));
        if let Some(shown) = file.raw(name).and_then(server_summary::entry) {
            server.shown = shown;
        }
        self.servers.push(on(server, &entry.settings).seal());
    }
}

/// The server on the terms that its file names.
fn on(mut server: ServerSettings, terms: &EntrySettings) -> ServerSettings {
    let options = &mut server.options;
    if let Some(timeout) = terms.timeout {
        options.timeout = timeout;
        options.max_timeout = options.max_timeout.max(timeout);
    }
    if let Some(timeout) = terms.start_timeout {
        options.init_timeout = timeout;
        options.probe_timeout = options.probe_timeout.min(timeout);
    }
    // Names are always good patterns once they are made exact.
    let exact =
        |names: &[String]| Patterns::new(names.iter().map(|name| Patterns::exact(name))).unwrap_or_default();
    server.allow = exact(&terms.include);
    server.deny = exact(&terms.exclude);
    server
}

/// Why a server is not used.
fn disabled(name: &str, error: ServersFileError, origin: &Path) -> DisabledServer {
    match error {
        ServersFileError::Unset { missing, .. } => {
            let absent: Vec<_> = missing
                .iter()
                .map(|missing| {
                    let what = Missing::Variable(missing.variable.clone());
                    (MissingReference { path: Vec::new(), what }, missing.place())
                })
                .collect();
            let absent: Vec<_> = absent.iter().map(|(absent, place)| (absent, place.clone())).collect();
            DisabledServer::missing(name, &absent, origin)
        }
        ServersFileError::Entry { reason, .. } => DisabledServer::unusable(name, reason),
        other => DisabledServer::unusable(name, other.to_string()),
    }
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
