//! From what another program wrote to what we write: references stay references, and paths mean the same from elsewhere.

use std::path::Path;

use tidegate_client::{Description, ServersFile};

use crate::entry::ServerEntry;
use crate::secrets::is_variable;
use tidegate_policy::Patterns;

/// The server as it is to be written.
pub(super) fn entry(file: &ServersFile, server: &Description) -> ServerEntry {
    let text = |text: &String| translated(file, text);
    let path = |path: &String| match translated(file, path) {
        path if path.starts_with("~/") || path.starts_with("${") => path,
        path => file.folder().join(path).to_string_lossy().into_owned(),
    };
    let map = |map: &std::collections::BTreeMap<String, String>| {
        map.iter().map(|(name, value)| (name.clone(), text(value))).collect()
    };
    let exact = |names: &[String]| names.iter().map(|name| Patterns::exact(name)).collect();
    ServerEntry {
        command: server.program.as_ref().map(text),
        args: server.args.iter().map(text).collect(),
        env: map(&server.env),
        env_file: server.env_file.as_ref().map(path),
        cwd: server.cwd.as_ref().map(path),
        url: server.url.as_ref().map(text),
        headers: map(&server.headers),
        sse: server.sse,
        allow: exact(&server.settings.include),
        deny: exact(&server.settings.exclude),
        timeout: server.settings.timeout,
        start_timeout: server.settings.start_timeout,
        disabled: server.disabled,
        ..ServerEntry::default()
    }
}

/// The text with its references as we write them: only variables stay references, because places such as the folder of a
/// project mean nothing elsewhere.
fn translated(file: &ServersFile, text: &str) -> String {
    let name_of = |path: &Path| path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let translate = |inner: &str| {
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        Ok::<_, std::convert::Infallible>(Some(match inner {
            "userHome" => std::env::home_dir().unwrap_or_default().to_string_lossy().into_owned(),
            "workspaceFolder" => file.folder().to_string_lossy().into_owned(),
            "workspaceFolderBasename" => name_of(&file.folder()),
            "pathSeparator" | "/" => std::path::MAIN_SEPARATOR_STR.to_owned(),
            _ if inner.starts_with("input:") => format!("${{{}}}", variable(&inner["input:".len()..])),
            // In a default, too, nothing may become a reference that was none.
            _ if is_variable(name) => match default {
                Some(default) => format!("${{{name}:-{}}}", translated(file, default)),
                None => format!("${{{name}}}"),
            },
            // To the other program it is no reference, so it must not become one.
            _ => format!("$${{{inner}}}"),
        }))
    };
    match file.fill_in(text, translate) {
        Ok(text) => text,
        Err(never) => match never {},
    }
}

/// A name for the variable that a value could be put in.
pub(super) fn variable(name: &str) -> String {
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if is_variable(&name) { name } else { format!("_{name}") }
}
