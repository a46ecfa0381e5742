//! Changing a `tidegate.toml`: what stands there keeps its order and its comments.

use std::fmt;
use std::path::{Path, PathBuf};

use tidegate_service::nearest_name;
use toml_edit::visit_mut::{self, VisitMut};
use toml_edit::{DocumentMut, Item, Table};

use crate::entry::ServerEntry;
use crate::error::ConfigError;
use crate::settings::ROOMY_NAMES;
use crate::source_map::SourceMap;
use crate::{config, names, read_file, save, schema, serde_message};

/// The field that says whether a server is used.
const ENABLED: &str = "enabled";

/// Why a configuration was not changed.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum EditError {
    /// The file is no configuration that could be changed.
    Config(ConfigError),
    /// The name cannot be that of a server, and why.
    Name(&'static str),
    /// There is a server of that name.
    Exists {
        /// The file.
        file: PathBuf,
        /// The server.
        name: String,
    },
    /// There is no server of that name.
    Unknown {
        /// The file.
        file: PathBuf,
        /// The server.
        name: String,
        /// The name that may be meant.
        near: Option<String>,
        /// All names.
        names: Vec<String>,
    },
    /// The file is of another program, which this one does not write to.
    NotToml(PathBuf),
    /// The file cannot be written.
    Write {
        /// The file.
        file: PathBuf,
        /// What the system says.
        reason: String,
    },
}

/// Adds a server to a configuration, which is made if it does not exist. A server of the same name is an error, unless it
/// is to be replaced.
pub fn add(path: &Path, name: &str, entry: &ServerEntry, replace: bool) -> Result<(), EditError> {
    let mut open = OpenFile::read(path)?;
    open.add(name, entry, replace)?;
    open.save()
}

/// Takes a server out of a configuration, with the comments that stand right before it. Comments that a blank line
/// separates from it stay.
pub fn remove(path: &Path, name: &str) -> Result<(), EditError> {
    let mut open = OpenFile::read(path)?;
    open.remove(name)?;
    open.save()
}

/// Has a server of a configuration be used, or not for now. `false` if that is so already.
pub fn set_enabled(path: &Path, name: &str, is_enabled: bool) -> Result<bool, EditError> {
    let mut open = OpenFile::read(path)?;
    let is_changed = open.set_enabled(name, is_enabled)?;
    if is_changed {
        open.save()?;
    }
    Ok(is_changed)
}

/// A configuration that is being changed.
pub(crate) struct OpenFile {
    path: PathBuf,
    document: DocumentMut,
}

impl OpenFile {
    /// Reads a configuration. One that does not exist is a new one.
    pub(crate) fn read(path: &Path) -> Result<OpenFile, EditError> {
        if !config::is_toml(path) {
            return Err(EditError::NotToml(path.to_owned()));
        }
        let text = if path.exists() {
            read_file::text(path)
                .map_err(|reason| EditError::Config(ConfigError::whole(path, format!("the file {reason}"))))?
        } else {
            header()
        };
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let document = text.parse().map_err(|error: toml_edit::TomlError| {
            let problem =
                SourceMap::of_text(text).problem_at(error.span(), serde_message::syntax(error.message()));
            EditError::Config(ConfigError::new(path, vec![problem]))
        })?;
        Ok(OpenFile { path: path.to_owned(), document })
    }

    /// Whether there is a server of that name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.document.get("servers").and_then(|servers| servers.get(name)).is_some()
    }

    /// Where the gateway listens, if the configuration says so.
    pub(crate) fn listen(&self) -> Option<String> {
        self.document.get("listen").and_then(Item::as_str).map(str::to_owned)
    }

    pub(crate) fn add(&mut self, name: &str, entry: &ServerEntry, replace: bool) -> Result<(), EditError> {
        names::check_server(name).map_err(EditError::Name)?;
        let exists = self.has(name);
        if exists && !replace {
            return Err(EditError::Exists { file: self.path.clone(), name: name.to_owned() });
        }
        let mut table = entry.table();
        if !exists {
            table.decor_mut().set_prefix(self.take_trailing());
        }
        let servers = self.servers()?;
        match servers.get_mut(name).and_then(Item::as_table_mut) {
            // The place in the file and the comments before it stay.
            Some(old) => {
                *table.decor_mut() = old.decor().clone();
                table.set_position(old.position());
                *old = table;
            }
            None => drop(servers.insert(name, Item::Table(table))),
        }
        Ok(())
    }

    fn set_enabled(&mut self, name: &str, is_enabled: bool) -> Result<bool, EditError> {
        self.check_has(name)?;
        let file = self.path.clone();
        let server = self.servers()?.get_mut(name).and_then(Item::as_table_like_mut).ok_or_else(|| {
            EditError::Config(ConfigError::whole(&file, format!("servers.{name}: must be a table")))
        })?;
        let is_off = server.get(ENABLED).and_then(Item::as_bool) == Some(false);
        if is_off != is_enabled {
            return Ok(false);
        }
        match is_enabled {
            true => drop(server.remove(ENABLED)),
            // What stands around the value stays.
            false => match server.get_mut(ENABLED).and_then(Item::as_value_mut) {
                Some(value) => {
                    let decor = value.decor().clone();
                    *value = false.into();
                    *value.decor_mut() = decor;
                }
                None => drop(server.insert(ENABLED, toml_edit::value(false))),
            },
        }
        Ok(true)
    }

    fn check_has(&mut self, name: &str) -> Result<(), EditError> {
        if self.has(name) {
            return Ok(());
        }
        let names: Vec<String> = self.servers()?.iter().map(|(name, _)| name.to_owned()).collect();
        let near = nearest_name(name, names.iter().map(String::as_str)).map(str::to_owned);
        Err(EditError::Unknown { file: self.path.clone(), name: name.to_owned(), near, names })
    }

    fn remove(&mut self, name: &str) -> Result<(), EditError> {
        self.check_has(name)?;
        let removed = self.servers()?.remove(name);
        if let Some(table) = removed.as_ref().and_then(Item::as_table) {
            let before = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            if let Some((stays, _)) = before.rsplit_once("\n\n").filter(|(stays, _)| !stays.trim().is_empty())
            {
                self.put_before_next(table.position(), &format!("{stays}\n"));
            }
        }
        Ok(())
    }

    /// Puts comments before whatever follows a position in the file, or at its end.
    fn put_before_next(&mut self, position: Option<isize>, comments: &str) {
        let mut next = Next { after: position, found: None };
        next.visit_document_mut(&mut self.document);
        let mut put = Put { at: next.found, comments };
        match next.found {
            Some(_) => put.visit_document_mut(&mut self.document),
            None => {
                let trailing = self.document.trailing().as_str().unwrap_or_default();
                let trailing = format!("{comments}{trailing}");
                self.document.set_trailing(trailing);
            }
        }
    }

    /// The table of servers. It has no header of its own unless somebody gave it one.
    fn servers(&mut self) -> Result<&mut dyn toml_edit::TableLike, EditError> {
        let missing = || {
            let mut table = Table::new();
            table.set_implicit(true);
            Item::Table(table)
        };
        let file = &self.path;
        self.document.entry("servers").or_insert_with(missing).as_table_like_mut().ok_or_else(|| {
            EditError::Config(ConfigError::whole(file, "servers: must be a table, such as [servers.github]"))
        })
    }

    /// What is to stand between the end of the file as it is and something new: the comments at the end stay where they
    /// are, and a blank line follows.
    fn take_trailing(&mut self) -> String {
        let trailing = self.document.trailing().as_str().unwrap_or_default().trim_end().to_owned();
        self.document.set_trailing("");
        match (trailing.is_empty(), self.document.is_empty()) {
            (true, true) => String::new(),
            (true, false) => "\n".to_owned(),
            (false, _) => format!("{trailing}\n\n"),
        }
    }

    /// Writes the file as a whole, so that nobody ever reads half of it.
    pub(crate) fn save(&self) -> Result<(), EditError> {
        let text = self.document.to_string();
        save::replace(&self.path, &text, self.is_private())
            .map_err(|error| EditError::Write { file: self.path.clone(), reason: error.to_string() })
    }

    /// Whether any server has variables or headers.
    fn is_private(&self) -> bool {
        let servers = self.document.get("servers").and_then(Item::as_table_like);
        servers.is_some_and(|servers| {
            servers.iter().any(|(_, server)| server.get("env").is_some() || server.get("headers").is_some())
        })
    }
}

/// Finds the first table behind a position.
struct Next {
    after: Option<isize>,
    found: Option<isize>,
}

impl VisitMut for Next {
    fn visit_table_mut(&mut self, table: &mut Table) {
        let position = table.position().filter(|_| !table.is_implicit() && !table.is_dotted());
        if position > self.after && (self.found.is_none() || position < self.found) {
            self.found = position;
        }
        visit_mut::visit_table_mut(self, table);
    }
}

/// Puts comments before the table at a position.
struct Put<'a> {
    at: Option<isize>,
    comments: &'a str,
}

impl VisitMut for Put<'_> {
    fn visit_table_mut(&mut self, table: &mut Table) {
        if table.position() == self.at && !table.is_implicit() {
            let before = table.decor().prefix().and_then(|prefix| prefix.as_str()).unwrap_or_default();
            let before = format!("{}{before}", self.comments);
            table.decor_mut().set_prefix(before);
        }
        visit_mut::visit_table_mut(self, table);
    }
}

/// What a new file begins with.
fn header() -> String {
    format!(
        "#:schema {}\n\
         # The MCP servers behind Tidegate. Check this file with `tidegate check`.\n\
         # Secrets: ${{NAME}} is an environment variable (or one of .env beside this file), ${{file:/path}} a file.\n\
         \n\
         [tools]\n\
         # Models accept tool names of up to 64 characters, and clients add a prefix such as mcp__tidegate__.\n\
         name_length = {ROOMY_NAMES}\n",
        schema::ADDRESS
    )
}

impl fmt::Display for EditError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EditError::Config(error) => error.fmt(f),
            EditError::Name(sentence) => f.write_str(sentence),
            EditError::Exists { file, name } => {
                write!(f, "{} already has a server {name:?}", file.display())
            }
            EditError::Unknown { file, name, near, names } => {
                write!(f, "{} has no server {name:?}", file.display())?;
                match near {
                    Some(near) => write!(f, "; did you mean {near:?}?"),
                    None if names.is_empty() => f.write_str("; it has none"),
                    None => write!(f, "; it has {}", names.join(", ")),
                }
            }
            EditError::NotToml(file) => write!(
                f,
                "{} belongs to another program and is not changed; import it with tidegate import",
                file.display()
            ),
            EditError::Write { file, reason } => write!(f, "cannot write {}: {reason}", file.display()),
        }
    }
}

impl std::error::Error for EditError {}
