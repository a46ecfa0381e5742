//! Which server a word of the command line means.
//!
//! The first rule that fits holds: with `--config`, an entry of that file; a URL, a command line or `FILE#NAME`; a server of
//! the `tidegate.toml` that `tidegate serve` would use; an entry of a file of an editor or assistant; a program.
//!
//! A file of the current directory may have come with somebody else's repository. What it names is used if the file is named
//! as well, or after a yes at the terminal.

use std::path::{Path, PathBuf};

use tidegate_builtin::Host;
use tidegate_client::{Command, EntrySettings, ServersFile, Target, is_project_file, well_known_files};
use tidegate_config::{Config, DisabledServer, ServerSettings, Settings, Source};
use tidegate_service::likely_names;

use super::builtin::Builtin;
use super::configuration;
use super::failure::Failure;
use super::{elicit, output};
use crate::term::clean;

/// A server that a word of the command line means, or that the configuration has.
#[derive(Clone)]
pub(crate) struct ResolvedServer {
    /// Its name.
    pub(crate) name: String,
    /// What to connect to.
    pub(crate) target: Target,
    /// The file that it is an entry of.
    pub(crate) file: Option<PathBuf>,
    /// How it is to be used, as far as the file of another program says so.
    pub(crate) terms: EntrySettings,
    /// What `tidegate.toml` says about it, if it is from there.
    pub(crate) settings: Option<Box<ServerSettings>>,
    /// The server itself, if it is part of the program.
    pub(crate) builtin: Option<Builtin>,
}

impl ResolvedServer {
    /// A server that no configuration of the gateway knows.
    pub(crate) fn new(name: String, target: Target, file: Option<PathBuf>) -> ResolvedServer {
        ResolvedServer { name, target, file, terms: EntrySettings::default(), settings: None, builtin: None }
    }

    /// A server of the gateway's configuration.
    pub(crate) fn configured(server: &ServerSettings, file: &Path) -> Result<ResolvedServer, Failure> {
        let (target, builtin) = match &server.source {
            Source::Target(target) => (target.clone(), None),
            Source::Builtin(name) => {
                let builtin = Builtin::new(name, server, Host::default())?;
                (builtin.target.clone(), Some(builtin))
            }
        };
        Ok(ResolvedServer {
            name: server.name.clone(),
            target,
            file: Some(file.to_owned()),
            terms: EntrySettings::default(),
            settings: Some(Box::new(server.clone())),
            builtin,
        })
    }

    /// A server that is part of the program, where no configuration names it.
    fn builtin(server: &ServerSettings) -> Result<ResolvedServer, Failure> {
        Ok(ResolvedServer { file: None, ..ResolvedServer::configured(server, Path::new(""))? })
    }

    /// What it is, for people, without secrets.
    pub(crate) fn shown(&self) -> String {
        match &self.settings {
            Some(settings) => settings.shown.clone(),
            None => self.target.to_string(),
        }
    }
}

/// Finds the server that is meant.
pub(crate) fn resolve(word: &str, config: Option<&Path>) -> Result<ResolvedServer, Failure> {
    let word = word.trim();
    if let Some(file) = config {
        return if is_tidegate_toml(file) {
            GatewayConfig::load(file)?.entry(word)
        } else {
            outside_the_gateway(word, config)
        };
    }
    if let Some((file, name)) = toml_and_name(word) {
        return if is_tidegate_toml(&file) {
            GatewayConfig::load(&file)?.entry(name)
        } else {
            outside_the_gateway(name, Some(&file))
        };
    }
    if !is_name(word) {
        return outside_the_gateway(word, None);
    }
    let (gateway, broken) = match GatewayConfig::of_serve() {
        Some(Ok(gateway)) => (Some(gateway), None),
        Some(Err(failure)) => (None, Some(failure)),
        None => (None, None),
    };
    if let Some(server) = gateway.as_ref().and_then(|gateway| gateway.get(word)) {
        return server;
    }
    let others = editor_files();
    // As `tidegate serve` would serve it.
    let having = others.iter().filter(|file| file.names().any(|name| name == word));
    // The user's own come before those of the directory that somebody happens to be in.
    let elsewhere_in = having.min_by_key(|file| is_project_file(file.origin())).map(ServersFile::origin);
    let is_elsewhere = elsewhere_in.is_some();
    if word == "memory" && gateway.is_none() && broken.is_none() && !is_elsewhere {
        let settings = super::serve::unconfigured(word);
        return ResolvedServer::builtin(&settings.servers[0]);
    }
    if is_elsewhere || is_program(word) {
        if let Some(broken) = broken {
            output::note(&format!("note: tidegate.toml was not searched: {}", broken.line()));
        }
        return outside_the_gateway(word, elsewhere_in).and_then(trusted);
    }
    if let Some(broken) = broken {
        return Err(broken);
    }
    let ours = gateway.iter().flat_map(|gateway| gateway.names().map(|name| (name, gateway.file.as_path())));
    let theirs = others.iter().flat_map(|file| file.names().map(|name| (name, file.origin())));
    match nearest_with_files(word, ours.chain(theirs)) {
        Some(meant) => {
            Err(Failure::usage(format!("no server or program is named {word:?}; did you mean {meant}?")))
        }
        None => {
            Target::parse(word)?;
            let known = gateway
                .iter()
                .flat_map(GatewayConfig::names)
                .chain(others.iter().flat_map(ServersFile::names));
            let mut known: Vec<String> = known.map(clean::name).collect();
            known.dedup();
            let failure = Failure::usage(format!("no server or program is named {word:?}"));
            Err(match known.len() {
                0 => failure.advise("Pass a URL, a command line, or the name of a server of tidegate.toml."),
                count if count > NAMED => {
                    known.truncate(NAMED);
                    failure.advise(format!("Known servers: {} and {} more", known.join(", "), count - NAMED))
                }
                _ => failure.advise(format!("Known servers: {}", known.join(", "))),
            })
        }
    }
}

/// How many servers are named to whoever meant another.
const NAMED: usize = 10;

/// A server that was found by its name alone, unless it is one of a file that may be somebody else's, and nobody at the
/// terminal says that it is fine.
fn trusted(server: ResolvedServer) -> Result<ResolvedServer, Failure> {
    let Some(file) = server.file.as_deref().filter(|file| is_project_file(file)) else { return Ok(server) };
    let (name, file) = (clean::name(&server.name), clean::line(&file.display().to_string()));
    let question =
        format!("{name:?} is defined in {file}, a file of this directory: {}", clean::place(&server.shown()));
    match elicit::agrees(&question, "Use it?") {
        true => Ok(server),
        false => Err(Failure::usage(format!(
            "{name:?} is defined in {file}, a file of this directory that may not be yours, so it was not started"
        ))
        .advise(format!("If you trust it, name the file as well: {file}#{name}"))),
    }
}

/// The servers of a configuration of the gateway.
pub(crate) struct GatewayConfig {
    pub(crate) file: PathBuf,
    pub(crate) settings: Settings,
}

impl GatewayConfig {
    /// Those of the configuration that `tidegate serve` would use, if there is one.
    pub(crate) fn of_serve() -> Option<Result<GatewayConfig, Failure>> {
        Config::find(None).map(|file| GatewayConfig::load(&file))
    }

    pub(crate) fn load(file: &Path) -> Result<GatewayConfig, Failure> {
        let settings = configuration::load_unserved(file)?;
        Ok(GatewayConfig { file: file.to_owned(), settings })
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let disabled = self.settings.disabled.iter().map(|server| server.name.as_str());
        self.settings.servers.iter().map(|server| server.name.as_str()).chain(disabled)
    }

    /// The server of this name, if there is one.
    fn get(&self, name: &str) -> Option<Result<ResolvedServer, Failure>> {
        if let Some(disabled) = self.settings.disabled.iter().find(|server| server.name == name) {
            return Some(Err(self::disabled(disabled)));
        }
        let server = self.settings.servers.iter().find(|server| server.name == name)?;
        tracing::info!(server = name, file = %self.file.display(), "using the server of this configuration");
        if tracing::enabled!(tracing::Level::INFO)
            && let Some(other) = editor_files().iter().find(|file| file.names().any(|other| other == name))
        {
            let other = other.origin().display();
            tracing::info!(server = name, file = %other, "this file has a server of the same name, which is ignored");
        }
        Some(ResolvedServer::configured(server, &self.file))
    }

    /// The server of this name, or the only one if there is no name.
    pub(crate) fn entry(&self, name: &str) -> Result<ResolvedServer, Failure> {
        let file = self.file.display();
        match self.settings.servers.as_slice() {
            [only] if name.is_empty() => ResolvedServer::configured(only, &self.file),
            [] if name.is_empty() => Err(Failure::usage(format!("{file} has no servers"))
                .advise("Add one with tidegate add NAME URL, or tidegate add NAME -- COMMAND.")),
            _ if name.is_empty() => {
                let names: Vec<_> = self.names().collect();
                Err(Failure::usage(format!("{file} has several servers: {}", names.join(", ")))
                    .advise(format!("Choose one, such as: --config {file} {}", names[0])))
            }
            _ => self.get(name).unwrap_or_else(|| {
                let meant = super::near(name, self.names());
                let meant = meant.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
                let names: Vec<_> = self.names().collect();
                let failure = Failure::usage(format!("{file} has no server {name:?}{meant}"));
                Err(match names.is_empty() {
                    true => failure,
                    false => failure.advise(format!("Its servers: {}", names.join(", "))),
                })
            }),
        }
    }
}

/// Why a server of the gateway cannot be used.
pub(crate) fn disabled(server: &DisabledServer) -> Failure {
    let DisabledServer { name, reason, advice, .. } = server;
    let failure = Failure::usage(format!("the server {name:?} is disabled: {reason}"));
    if advice.is_empty() { failure } else { failure.advise(advice) }
}

/// Anything but a server of the gateway.
fn outside_the_gateway(word: &str, config: Option<&Path>) -> Result<ResolvedServer, Failure> {
    let found = Target::find(word, config)?;
    if let Some(file) = &found.file {
        tracing::info!(server = found.name, file = %file.display(), "using the server of this file");
    }
    for note in &found.notes {
        tracing::info!(server = found.name, "{note}");
    }
    if found.disabled {
        output::note(&format!("note: {:?} is disabled in its file; using it anyway", found.name));
    }
    Ok(ResolvedServer { terms: found.settings, ..ResolvedServer::new(found.name, found.target, found.file) })
}

/// A server that a command line starts.
pub(crate) fn command_line(words: &[String]) -> Result<ResolvedServer, Failure> {
    let line = shlex::try_join(words.iter().map(String::as_str))
        .map_err(|_| Failure::usage("the command line contains a NUL character"))?;
    let target = Target::parse(&line)?;
    Ok(ResolvedServer::new(target.name(), target, None))
}

/// The files of editors and assistants that are there and can be read.
fn editor_files() -> Vec<ServersFile> {
    let files = well_known_files().into_iter().map(|(_, path)| path).filter(|path| path.is_file());
    files.filter_map(|path| ServersFile::load(path).ok()).collect()
}

/// Up to three names that are likely meant, with the files that have them.
fn nearest_with_files<'a>(word: &str, names: impl Iterator<Item = (&'a str, &'a Path)>) -> Option<String> {
    const MOST: usize = 3;
    let mut likely = likely_names(word, names);
    likely.dedup_by(|a, b| a.0 == b.0);
    let shown = |(name, file): &(&str, &Path)| {
        format!("{:?} ({})", clean::line(name), clean::line(&file.display().to_string()))
    };
    let likely: Vec<String> = likely.iter().take(MOST).map(shown).collect();
    (!likely.is_empty()).then(|| likely.join(" or "))
}

/// Whether a text can be the name of a server. More than a word is never looked up: a file in the current directory could
/// otherwise stand in for a command line that somebody typed.
fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.contains(|c: char| c.is_whitespace() || matches!(c, '/' | '\\'))
        && !text.ends_with(".json")
        && !text.contains(".json#")
}

/// Whether `PATH` has a program of this name.
fn is_program(name: &str) -> bool {
    Command { program: name.to_owned(), ..Command::default() }.locate().is_ok()
}

/// Whether a file is a configuration of the gateway. Codex has its servers in a TOML file, too.
pub(crate) fn is_tidegate_toml(file: &Path) -> bool {
    let is_toml = file.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"));
    is_toml && ServersFile::load(file).is_err()
}

/// Splits `tidegate.toml#time`. The name may be left out if there is only one.
fn toml_and_name(text: &str) -> Option<(PathBuf, &str)> {
    let (file, name) = match text.rsplit_once(".toml#") {
        Some((file, name)) => (&text[..file.len() + ".toml".len()], name),
        None if text.ends_with(".toml") => (text, ""),
        None => return None,
    };
    let path = PathBuf::from(file);
    let is_path = !file.contains("://") && !file.contains(char::is_whitespace);
    (path.is_file() || is_path).then_some((path, name))
}

/// The address of a server, for what only servers at an address have.
pub(crate) fn url(word: &str, config: Option<&Path>) -> Result<String, Failure> {
    match resolve(word, config)?.target {
        Target::Url(remote) => Ok(remote.url.to_string()),
        _ => Err(Failure::usage(
            "only servers with a URL have logins: pass one, such as https://example.com/mcp",
        )),
    }
}
