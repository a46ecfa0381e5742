//! One server of a file, with everything filled in.

use std::collections::BTreeMap;

use http::{HeaderName, HeaderValue};
use serde_json::Value;

use super::expand::{Expander, Surroundings};
use super::{Description, Entry, ServersFile, ServersFileError, env_file};
use crate::target::{Command, Remote, Target, TargetError};

/// Reads the description of a server and fills in its variables.
pub(super) fn read(
    file: &ServersFile,
    name: &str,
    value: &Value,
    around: &Surroundings<'_>,
) -> Result<Entry, ServersFileError> {
    let expand = Expander::new(around, &file.origin, &file.inputs);
    let entry = || {
        let description = Description::read(value)?;
        let target = target(&description, &expand)?;
        let Description { disabled, settings, notes, .. } = description;
        Ok(Entry { name: name.to_owned(), target, disabled, settings, notes })
    };
    let read = entry();
    // What is missing is said before anything that may only be wrong because of it.
    let missing = expand.into_missing();
    if !missing.is_empty() {
        return Err(ServersFileError::Unset { file: file.origin.clone(), server: name.to_owned(), missing });
    }
    read.map_err(|reason| ServersFileError::Entry {
        file: file.origin.clone(),
        server: name.to_owned(),
        reason,
    })
}

fn target(description: &Description, expand: &Expander<'_>) -> Result<Target, String> {
    match &description.url {
        Some(url) => remote(description, url, expand).map(Target::Url),
        None => command(description, expand).map(Target::Command),
    }
}

fn command(description: &Description, expand: &Expander<'_>) -> Result<Command, String> {
    let program = expand.program(description.program.as_deref().unwrap_or_default())?;
    let args = description.args.iter().map(|arg| expand.text("args", arg)).collect::<Result<_, _>>()?;
    let cwd = description.cwd.as_deref().map(|cwd| expand.path("cwd", cwd)).transpose()?;
    let mut env = variables_of_file(description, expand)?;
    env.extend(filled("env", &description.env, expand)?);
    Ok(Command { program, args, env, cwd })
}

fn remote(description: &Description, url: &str, expand: &Expander<'_>) -> Result<Remote, String> {
    let key = description.url_key;
    let address = expand.text(key, url);
    let headers = filled("headers", &description.headers, expand)?;
    let mut remote = Remote::parse(&address?).map_err(|error| match error {
        TargetError::Url(reason) => format!("its {key:?} is not a valid URL ({reason})"),
        _ => format!("its {key:?} must start with http:// or https://"),
    })?;
    for (name, value) in &headers {
        if HeaderName::from_bytes(name.as_bytes()).is_err() {
            return Err(format!("{name:?} is not a valid name for an HTTP header"));
        }
        if HeaderValue::from_str(value).is_err() {
            return Err(format!(
                "the value of the header {name:?} has characters that are not allowed in a header, such as line breaks"
            ));
        }
    }
    remote.headers = headers;
    remote.sse = description.sse;
    Ok(remote)
}

fn filled(
    field: &str,
    map: &BTreeMap<String, String>,
    expand: &Expander<'_>,
) -> Result<BTreeMap<String, String>, String> {
    map.iter()
        .map(|(name, value)| Ok((name.clone(), expand.text(&format!("{field}.{name}"), value)?)))
        .collect()
}

fn variables_of_file(
    description: &Description,
    expand: &Expander<'_>,
) -> Result<BTreeMap<String, String>, String> {
    let Some(path) = &description.env_file else { return Ok(BTreeMap::new()) };
    let path = expand.path("envFile", path)?;
    if !expand.is_complete() {
        return Ok(BTreeMap::new());
    }
    let text = crate::read_regular_text(&path, super::MAX_BYTES)
        .map_err(|error| format!("its \"envFile\" {} cannot be read: {error}", path.display()))?;
    env_file::parse(&text)
        .map_err(|line| format!("line {line} of its \"envFile\" {} is not NAME=value", path.display()))
}
