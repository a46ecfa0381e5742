//! [`Config`]: from a file to [`Settings`].

use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use tidegate_builtin::Builtins;

use crate::document::Document;
use crate::error::ConfigError;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::{permissions, read_file, resolve, servers_json};

/// Where variables come from: `&|name| std::env::var(name).ok()` for the environment of this process.
pub type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// The ways to get [`Settings`]. Servers that are part of the program have a section of their own in a configuration: the
/// program says which there are.
///
/// ```
/// use tidegate_builtin::Builtins;
/// use tidegate_config::Config;
///
/// let text = r#"
///     [servers.time]
///     command = "uvx mcp-server-time"
///     env = { TZ = "${ZONE:-UTC}" }
/// "#;
/// let settings = Config::parse(text, "tidegate.toml", &Builtins::default(), &|_| None)?;
/// assert_eq!(settings.servers[0].prefix, "time_");
/// # Ok::<(), tidegate_config::ConfigError>(())
/// ```
#[derive(Debug)]
pub struct Config(());

impl Config {
    /// Reads a file: TOML if its name ends in `.toml`, else the `mcpServers` file of any program.
    pub fn load(path: &Path, builtins: &Builtins, env: Variables<'_>) -> Result<Settings, ConfigError> {
        load(path, builtins, env).0
    }

    /// The same for whoever does not serve it, and perhaps is about to make it fit for that: whether other machines could reach
    /// what they should not is not looked at.
    pub fn load_unserved(
        path: &Path,
        builtins: &Builtins,
        env: Variables<'_>,
    ) -> Result<Settings, ConfigError> {
        load_for(path, builtins, env, Purpose::Other).0
    }

    /// Where a configuration keeps its state, whatever else is wrong with it: for whoever looks for a gateway that runs with it.
    pub fn state_dir_of(path: &Path) -> Option<PathBuf> {
        let table = read_file::text(path).ok().and_then(|text| text.parse::<toml::Table>().ok());
        match table.as_ref().and_then(|table| table.get("state_dir")) {
            Some(toml::Value::String(said)) => Some(path.parent().unwrap_or(Path::new("")).join(said)),
            Some(toml::Value::Boolean(false)) => None,
            _ => resolve::usual_state_dir(),
        }
    }

    /// Reads a text. Messages name `origin`, relative paths start from its folder, and its ending says what the text is.
    pub fn parse(
        text: &str,
        origin: impl AsRef<Path>,
        builtins: &Builtins,
        env: Variables<'_>,
    ) -> Result<Settings, ConfigError> {
        parse(text, origin.as_ref(), builtins, env, Purpose::Serving).0
    }

    /// The configuration to use: the one that was asked for, whether or not it exists, else `tidegate.toml` here, else
    /// `tidegate/tidegate.toml` in the user's directory for configuration (`$XDG_CONFIG_HOME`, `~/.config`, or where
    /// else the system keeps it). `None` if there is none.
    pub fn find(explicit: Option<&Path>) -> Option<PathBuf> {
        if let Some(path) = explicit {
            return Some(path.to_owned());
        }
        Config::search_paths().into_iter().find(|path| path.is_file())
    }

    /// Where a configuration is looked for, best first: here, then where this user's would be.
    pub fn search_paths() -> Vec<PathBuf> {
        std::iter::once(PathBuf::from(NAME)).chain(Config::of_user()).collect()
    }

    /// Where the configuration of this user is, or would be.
    pub fn of_user() -> Option<PathBuf> {
        let base = etcetera::choose_base_strategy().ok()?;
        Some(base.config_dir().join("tidegate").join(NAME))
    }
}

/// What a configuration is called.
const NAME: &str = "tidegate.toml";

/// What somebody wants to know the settings for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// To serve them: other machines must not reach what they should not.
    Serving,
    /// Anything else.
    Other,
}

/// The settings and, whatever came of it, the files that they depend on.
pub(crate) fn load(
    path: &Path,
    builtins: &Builtins,
    env: Variables<'_>,
) -> (Result<Settings, ConfigError>, Vec<PathBuf>) {
    load_for(path, builtins, env, Purpose::Serving)
}

fn load_for(
    path: &Path,
    builtins: &Builtins,
    env: Variables<'_>,
    purpose: Purpose,
) -> (Result<Settings, ConfigError>, Vec<PathBuf>) {
    match read_file::text(path) {
        Ok(text) => parse(&text, path, builtins, env, purpose),
        Err(reason) => (Err(ConfigError::whole(path, format!("the configuration {reason}"))), Vec::new()),
    }
}

fn parse(
    text: &str,
    origin: &Path,
    builtins: &Builtins,
    env: Variables<'_>,
    purpose: Purpose,
) -> (Result<Settings, ConfigError>, Vec<PathBuf>) {
    // A mark that some editors leave at the beginning.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.len() as u64 > read_file::MAX_BYTES {
        let error = ConfigError::whole(origin, "the configuration is larger than 1 MiB");
        return (Err(error), Vec::new());
    }
    if !is_toml(origin) {
        return servers_json::settings(text, origin, env);
    }
    let secrets = Secrets::new(origin, env);
    let mut exposed = None;
    let settings = Document::read(text, origin, builtins, &secrets).and_then(|document| {
        exposed = permissions::note_on_secrets(origin, &document.plain_secrets);
        resolve::settings(document, origin, builtins, &secrets, purpose)
    });
    let (files, notes) = secrets.into_parts();
    let settings = settings.map(|mut settings| {
        settings.notes.extend(exposed.into_iter().chain(notes));
        if settings.servers.is_empty() && settings.disabled.is_empty() {
            settings.notes.push("There are no servers yet. Add one with tidegate add.".to_owned());
        }
        settings
    });
    (settings, files)
}

/// Whether a file is one of ours, by its name.
pub(crate) fn is_toml(path: &Path) -> bool {
    path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("toml"))
}
