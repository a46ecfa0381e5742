//! Which file of keys a command is about, and whether a gateway looks at it.

use std::path::{Path, PathBuf};

use tidegate_auth::keys::{KeyFile, KeyFileError};
use tidegate_config::{AuthSettings, Config, EndpointSettings};

use super::{DEFAULT_ENDPOINT, Place};
use crate::commands::failure::Failure;
use crate::commands::{configuration, near, output};
use crate::term::clean;

/// A file of keys, and what is around it.
pub(super) struct KeysFile {
    pub(super) path: PathBuf,
    /// Where a gateway writes when keys were last used.
    pub(super) state_dir: Option<PathBuf>,
    /// The configuration, where it does not have this file.
    without: Option<PathBuf>,
    /// What the configuration says about who may call.
    auth: Option<AuthSettings>,
    /// The endpoints of the configuration, if there is one.
    endpoints: Option<Vec<EndpointSettings>>,
}

/// What the file is called where nobody says so.
const NAME: &str = "keys.toml";

impl KeysFile {
    pub(super) fn find(place: &Place) -> Result<KeysFile, Failure> {
        let config = match (&place.config, &place.file) {
            // Somebody else's configuration may be around.
            (None, Some(_)) => Config::find(None),
            (explicit, _) => Some(configuration::existing(explicit.as_deref())?),
        };
        // To be served, it may need the keys first.
        let settings = config.as_deref().map(configuration::load_unserved).transpose();
        let settings = match settings {
            // Nothing of it is needed.
            Err(_) if place.config.is_none() && place.file.is_some() => None,
            settings => settings?,
        };
        let said = settings.as_ref().and_then(|settings| settings.auth.as_ref()?.keys.clone());
        let path = match (&place.file, &said, &config) {
            (Some(path), ..) => path.clone(),
            (None, Some(path), _) => path.clone(),
            (None, None, Some(config)) => config.with_file_name(NAME),
            (None, None, None) => PathBuf::from(NAME),
        };
        let is_said = said.is_some_and(|said| is_same(&said, &path));
        Ok(KeysFile {
            without: config.filter(|_| settings.is_some() && !is_said),
            state_dir: match &settings {
                Some(settings) => settings.state_dir.clone(),
                None => tidegate_config::usual_state_dir(),
            },
            auth: settings.as_ref().and_then(|settings| settings.auth.clone()),
            endpoints: settings.map(|settings| settings.endpoints),
            path,
        })
    }

    /// Its path, for people.
    pub(super) fn shown(&self) -> String {
        clean::line(&self.path.display().to_string())
    }

    /// Whether there is such an endpoint, where that is known.
    pub(super) fn check_endpoint(&self, name: &str) -> Result<(), Failure> {
        let Some(endpoints) = &self.endpoints else { return Ok(()) };
        let names = || endpoints.iter().map(|endpoint| endpoint.name.as_str());
        if name == DEFAULT_ENDPOINT || names().any(|known| known == name) {
            return Ok(());
        }
        let failure = match near(name, names()) {
            Some(meant) => Failure::usage(format!("there is no endpoint {name:?}; did you mean {meant:?}?")),
            None => Failure::usage(format!("there is no endpoint {name:?}")),
        };
        let known: Vec<&str> = names().chain([DEFAULT_ENDPOINT]).collect();
        Err(failure.advise(format!("The endpoints of the configuration: {}.", known.join(", "))))
    }

    /// Says what to write so that the keys count.
    pub(super) fn say_what_is_missing(&self) {
        let Some(config) = &self.without else { return };
        let file = clean::line(&config.display().to_string());
        let path = match (self.path.parent(), config.parent()) {
            // Paths in it start from its folder.
            (Some(ours), Some(theirs)) if ours == theirs => {
                self.path.file_name().map(PathBuf::from).unwrap_or_default()
            }
            _ => std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()),
        };
        let path = toml_text(&path.display().to_string());
        output::note(&match &self.auth {
            None => format!(
                "{file} does not name this file yet. For its keys to count, it needs these lines:\n\n[auth]\nkeys = \
                 {path}\n\nThen restart the gateway. From then on, everybody needs a key."
            ),
            Some(AuthSettings { keys: None, .. }) => format!(
                "{file} does not name this file yet. For its keys to count, it needs this line below [auth]:\n\nkeys = \
                 {path}"
            ),
            Some(AuthSettings { keys: Some(other), .. }) => format!(
                "{file} has another file of keys, {}. For those of this file to count, it needs this line instead:\n\n\
                 keys = {path}",
                clean::line(&other.display().to_string())
            ),
        });
    }

    /// Says which scopes a key lacks that everybody needs.
    pub(super) fn say_missing_scopes(&self, scopes: &[String]) {
        let Some(settings) = self.auth.as_ref().map(|auth| &auth.scopes) else { return };
        let mut granted: Vec<&str> = Vec::new();
        let mut next: Vec<&str> = scopes.iter().map(String::as_str).collect();
        while let Some(scope) = next.pop() {
            if !granted.contains(&scope) {
                granted.push(scope);
                next.extend(settings.includes.get(scope).into_iter().flatten().map(String::as_str));
            }
        }
        let lacks = |scope: &&String| !granted.contains(&scope.as_str());
        let missing: Vec<&str> = settings.required.iter().filter(lacks).map(String::as_str).collect();
        if !missing.is_empty() {
            output::note(&format!(
                "warning: [auth] asks everybody for scopes that this key does not have: {}. Until it has them, it is \
                 refused everywhere.",
                clean::line(&missing.join(" "))
            ));
        }
    }

    /// The error with the name that may be meant.
    pub(super) fn clearer(&self, error: KeyFileError) -> Failure {
        let KeyFileError::NoSuchKey(wanted) = &error else { return error.into() };
        let file = KeyFile::read(&self.path);
        let names = file.as_ref().map(|file| file.keys()).unwrap_or_default().iter().map(|key| &*key.name);
        match near(wanted, names) {
            Some(meant) => Failure::usage(format!("{error}; did you mean {meant:?}?")),
            None => Failure::usage(&error).advise("tidegate keys list shows the keys."),
        }
    }
}

fn is_same(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| std::fs::canonicalize(path).or_else(|_| std::path::absolute(path)).ok();
    whole(one) == whole(other)
}

/// A text as TOML has it.
fn toml_text(text: &str) -> String {
    match text.contains(['\'', '"', '\\']) || text.chars().any(char::is_control) {
        true => format!("{text:?}"),
        false => format!("\"{text}\""),
    }
}
