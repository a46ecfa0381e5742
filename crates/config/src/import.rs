//! Taking over the servers of other programs.

use std::fmt;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use tidegate_client::{ServersFile, ServersFileError, fill_in, well_known_files};

use crate::edit::{EditError, Open};
use crate::entry::ServerEntry;
use crate::names;

/// The program, or the file, that servers are taken from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Claude Code (this project, the user) and Claude Desktop.
    Claude,
    /// Cursor (this project, the user).
    Cursor,
    /// VS Code (this project).
    VsCode,
    /// An `mcpServers` file.
    File(PathBuf),
}

/// What was taken over, or would be.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Imported {
    /// The files that were read.
    pub files: Vec<PathBuf>,
    /// The servers, with the names that they have now, in their order.
    pub servers: Vec<(String, ServerEntry)>,
    /// What was left out or should be looked at, one sentence each.
    pub notes: Vec<String>,
}

/// Why nothing was taken over.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportError {
    /// None of the program's files is there.
    Nowhere(Vec<PathBuf>),
    /// The file cannot be read.
    File(ServersFileError),
    /// The configuration cannot be changed.
    Edit(EditError),
}

impl Origin {
    /// Reads `claude`, `cursor`, `vscode`, or the path of a file.
    pub fn parse(text: &str) -> Origin {
        match text.to_ascii_lowercase().as_str() {
            "claude" | "claude-code" | "claude-desktop" => Origin::Claude,
            "cursor" => Origin::Cursor,
            "vscode" | "vs-code" | "code" => Origin::VsCode,
            _ => Origin::File(PathBuf::from(text)),
        }
    }

    fn files(&self) -> Vec<PathBuf> {
        let label = match self {
            Origin::Claude => "Claude",
            Origin::Cursor => "Cursor",
            Origin::VsCode => "VS Code",
            Origin::File(path) => return vec![path.clone()],
        };
        well_known_files()
            .into_iter()
            .filter(|(known, _)| known.starts_with(label))
            .map(|(_, path)| path)
            .collect()
    }
}

/// Adds the servers of another program to a configuration. References to variables stay references. A server whose name
/// is taken is left alone, unless it is to be replaced. With `dry_run` nothing is written.
pub fn import(path: &Path, from: &Origin, replace: bool, dry_run: bool) -> Result<Imported, ImportError> {
    let mut open = Open::read(path).map_err(ImportError::Edit)?;
    let candidates = from.files();
    let mut files = candidates.clone();
    if !matches!(from, Origin::File(_)) {
        files.retain(|file| file.is_file());
    }
    if files.is_empty() {
        return Err(ImportError::Nowhere(candidates));
    }
    let mut imported = Imported { files: files.clone(), ..Imported::default() };
    for file in &files {
        let file = ServersFile::load(file).map_err(ImportError::File)?;
        for name in file.names() {
            imported.take(&mut open, &file, name, replace).map_err(ImportError::Edit)?;
        }
    }
    if !dry_run && !imported.servers.is_empty() {
        open.save().map_err(ImportError::Edit)?;
    }
    Ok(imported)
}

impl Imported {
    fn take(
        &mut self,
        open: &mut Open,
        file: &ServersFile,
        name: &str,
        replace: bool,
    ) -> Result<(), EditError> {
        let fit = names::made_fit(name);
        if self.servers.iter().any(|(taken, _)| *taken == fit) {
            let file = file.origin().display();
            self.notes.push(format!("{name:?} of {file} is left out: an earlier file has {fit:?} too"));
            return Ok(());
        }
        if open.has(&fit) && !replace {
            self.notes.push(format!("{fit:?} is there already and stays as it is"));
            return Ok(());
        }
        let mut reader = Reader { file, notes: Vec::new() };
        let entry = match file.raw(name).and_then(Value::as_object).map(|members| reader.entry(members)) {
            Some(Ok(entry)) => entry,
            Some(Err(reason)) => {
                self.notes.push(format!("{name:?} is left out: {reason}"));
                return Ok(());
            }
            None => {
                self.notes.push(format!("{name:?} is left out: it is not an object"));
                return Ok(());
            }
        };
        if fit != name {
            self.notes.push(format!("{name:?} is called {fit:?} here"));
        }
        self.notes.extend(reader.notes.iter().map(|note| format!("{fit:?}: {note}")));
        for secret in entry.literal_secrets() {
            self.notes.push(format!(
                "{fit:?}: the value of {secret} looks like a secret and stands in the file in full; \
                 put it in a variable and write ${{{}}}",
                variable(secret)
            ));
        }
        open.add(&fit, &entry, true)?;
        self.servers.push((fit, entry));
        Ok(())
    }
}

/// Reads one server without filling in its variables.
struct Reader<'a> {
    file: &'a ServersFile,
    notes: Vec<String>,
}

impl Reader<'_> {
    fn entry(&mut self, members: &Map<String, Value>) -> Result<ServerEntry, String> {
        let kind =
            ["type", "transport"].iter().find_map(|key| members.get(*key)?.as_str()).unwrap_or_default();
        let kind = kind.to_ascii_lowercase();
        let address = ["httpUrl", "url", "serverUrl"].into_iter().find(|key| members.contains_key(*key));
        let is_program = match kind.as_str() {
            "" => members.contains_key("command"),
            kind => kind == "stdio",
        };
        let mut entry = ServerEntry {
            disabled: members.get("disabled") == Some(&Value::Bool(true))
                || members.get("enabled") == Some(&Value::Bool(false)),
            ..ServerEntry::default()
        };
        let mut known = vec!["type", "transport", "disabled", "enabled"];
        if is_program {
            known.extend(["command", "args", "env", "envFile", "cwd"]);
            entry.command = self.text(members, "command")?;
            if entry.command.as_deref().is_none_or(|command| command.trim().is_empty()) {
                return Err("it has no command".to_owned());
            }
            entry.args = self.texts(members)?;
            entry.env = self.map(members, "env")?;
            entry.env_file = self.path(members, "envFile")?;
            entry.cwd = self.path(members, "cwd")?;
        } else {
            let key = address.ok_or("it has neither a command nor a url")?;
            known.extend([key, "headers"]);
            entry.url = self.text(members, key)?;
            entry.headers = self.map(members, "headers")?;
            entry.sse = kind == "sse";
        }
        let ignored = members.keys().filter(|key| !known.contains(&key.as_str()));
        self.notes.extend(ignored.map(|key| format!("{key:?} is left out")));
        Ok(entry)
    }

    fn text(&self, members: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
        match members.get(key) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(self.translated(text))),
            Some(_) => Err(format!("its {key:?} must be a text")),
        }
    }

    /// A path that means the same from elsewhere.
    fn path(&self, members: &Map<String, Value>, key: &str) -> Result<Option<String>, String> {
        let path = self.text(members, key)?;
        Ok(path.map(|path| match path.starts_with("~/") || path.starts_with("${") {
            true => path,
            false => self.file.folder().join(path).to_string_lossy().into_owned(),
        }))
    }

    fn texts(&self, members: &Map<String, Value>) -> Result<Vec<String>, String> {
        let wrong = || "its \"args\" must be a list of texts".to_owned();
        match members.get("args") {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(items)) => {
                items.iter().map(|item| self.scalar(item).ok_or_else(wrong)).collect()
            }
            Some(_) => Err(wrong()),
        }
    }

    fn map(
        &self,
        members: &Map<String, Value>,
        key: &str,
    ) -> Result<std::collections::BTreeMap<String, String>, String> {
        let wrong = || format!("its {key:?} must map names to texts");
        match members.get(key) {
            None | Some(Value::Null) => Ok(Default::default()),
            Some(Value::Object(map)) => map
                .iter()
                .filter(|(_, value)| !value.is_null())
                .map(|(name, value)| Ok((name.clone(), self.scalar(value).ok_or_else(wrong)?)))
                .collect(),
            Some(_) => Err(wrong()),
        }
    }

    fn scalar(&self, value: &Value) -> Option<String> {
        match value {
            Value::String(text) => Some(self.translated(text)),
            Value::Number(_) | Value::Bool(_) => Some(value.to_string()),
            _ => None,
        }
    }

    /// The text with its references as we write them: only variables stay references, because places such as the folder
    /// of a project mean nothing elsewhere.
    fn translated(&self, text: &str) -> String {
        let home = || std::env::home_dir().unwrap_or_default().to_string_lossy().into_owned();
        let translate = |inner: &str| {
            let name = inner.split(":-").next().unwrap_or(inner);
            Ok::<_, std::convert::Infallible>(Some(match inner {
                "userHome" => home(),
                "workspaceFolder" => self.file.folder().to_string_lossy().into_owned(),
                "workspaceFolderBasename" => {
                    self.file.folder().file_name().unwrap_or_default().to_string_lossy().into_owned()
                }
                "pathSeparator" | "/" => std::path::MAIN_SEPARATOR_STR.to_owned(),
                _ if inner.starts_with("input:") => format!("${{{}}}", variable(&inner["input:".len()..])),
                _ if inner.starts_with("env:") => format!("${{{}}}", &inner["env:".len()..]),
                _ if crate::secrets::is_variable(name) => format!("${{{inner}}}"),
                // To the other program it is no reference, so it must not become one.
                _ => format!("$${{{inner}}}"),
            }))
        };
        match fill_in(text, translate) {
            Ok(text) => text,
            Err(never) => match never {},
        }
    }
}

/// A name for the variable that a value could be put in.
fn variable(name: &str) -> String {
    let name: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' }).collect();
    if crate::secrets::is_variable(&name) { name } else { format!("_{name}") }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ImportError::Nowhere(files) => {
                let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
                write!(f, "there is nothing to take over: none of {} is there", files.join(", "))
            }
            ImportError::File(error) => error.fmt(f),
            ImportError::Edit(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ImportError {}
