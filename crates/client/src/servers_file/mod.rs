//! [`ServersFile`]: the files of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Gemini CLI, Codex, Zed, Cline and
//! others. They agree on the idea, a map from names to commands or addresses, and on little else.

mod description;
mod dialect;
mod entry;
mod env_file;
mod error;
mod expand;
mod jsonc;
mod parse;
mod resolve;
#[cfg(test)]
mod tests;
mod well_known;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tidegate_service::nearest_name;

use crate::target::Target;
use expand::Surroundings;

pub use description::{Description, EntrySettings};
pub use env_file::{parse as parse_env_file, parse_lines as parse_env_lines};
pub use error::{MissingVariable, ServersFileError};
pub use expand::fill_in;
pub use resolve::ResolvedTarget;
pub use well_known::{is_project_file, well_known_files};

/// A file that names MCP servers, in any of the forms in which today's programs write it.
///
/// What is understood:
///
/// - the map of servers: under `mcpServers`, under `servers` (with `inputs`), under `mcp.servers` in a settings file
///   of VS Code, under `context_servers` (Zed), under `projects.<this directory>.mcpServers` in `~/.claude.json`, or bare;
///   and `[mcp_servers.NAME]` in a file whose name ends in `.toml` (Codex);
/// - programs: `command`, `args`, `env`, `envFile`, `cwd`;
/// - addresses: `url`, `serverUrl` (Windsurf) or `httpUrl` (Gemini CLI), and `headers`;
/// - `type` or `transport`: `stdio`, `http`, `streamable-http`, `sse`. Without it an address is tried as Streamable
///   HTTP first and as HTTP+SSE then, whichever program the file belongs to;
/// - `disabled` and `enabled`;
/// - which tools are offered and how long things may take: `includeTools`, `excludeTools` and `timeout` (Gemini CLI),
///   `disabledTools` (Windsurf), `enabled_tools`, `disabled_tools`, `startup_timeout_sec`, `tool_timeout_sec` (Codex);
/// - where headers and variables come from in a file of Codex: `bearer_token_env_var`, `env_http_headers`, `env_vars`;
/// - comments and trailing commas;
/// - variables in commands, arguments, variables, addresses and headers:
///
/// | written | becomes | from |
/// |---|---|---|
/// | `${NAME}` | the environment variable | Claude Code, Gemini CLI |
/// | `${NAME:-default}` | the same, or the default if it is not set | Claude Code |
/// | `${env:NAME}` | the environment variable | Cursor, VS Code, Windsurf |
/// | `${userHome}` | the home directory | Cursor, VS Code |
/// | `${workspaceFolder}` | the folder that the file belongs to | Cursor, VS Code |
/// | `${workspaceFolderBasename}` | the name of that folder | Cursor, VS Code |
/// | `${pathSeparator}`, `${/}` | `/`, or `\` on Windows | Cursor, VS Code |
/// | `${input:ID}` | the environment variable `ID`, because nobody can be asked | VS Code |
/// | `$NAME` | the environment variable, only in files under `.gemini` | Gemini CLI |
///
/// Anything else is left aside and named in [`Entry::notes`]. An entry is read when it is asked for, so that a broken
/// one spoils no other.
#[derive(Clone)]
pub struct ServersFile {
    origin: PathBuf,
    servers: BTreeMap<String, Value>,
    inputs: Vec<Input>,
}

/// One server of a [`ServersFile`].
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Entry {
    /// Its name in the file.
    pub name: String,
    /// What to connect to, with all variables filled in.
    pub target: Target,
    /// Whether the file says not to use it.
    pub disabled: bool,
    /// How it is to be used, as far as the file says so.
    pub settings: EntrySettings,
    /// What the file says about it that has no effect here, one sentence each.
    pub notes: Vec<String>,
}

/// Something that VS Code would ask its user for.
#[derive(Debug, Clone)]
struct Input {
    id: String,
    description: Option<String>,
    default: Option<String>,
}

/// No such file is larger: some programs keep all else that they know in theirs.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

impl ServersFile {
    /// Reads a file.
    pub fn load(path: impl AsRef<Path>) -> Result<ServersFile, ServersFileError> {
        let path = path.as_ref();
        let text = crate::read_regular_text(path, MAX_BYTES)
            .map_err(|error| ServersFileError::Read { file: path.to_owned(), reason: error.to_string() })?;
        ServersFile::parse(&text, path)
    }

    /// Reads the text of a file. Messages name `origin`, and relative paths and `${workspaceFolder}` start from there.
    pub fn parse(text: &str, origin: impl AsRef<Path>) -> Result<ServersFile, ServersFileError> {
        parse::parse(text, origin.as_ref(), &Surroundings::here())
    }

    /// Where it came from.
    pub fn origin(&self) -> &Path {
        &self.origin
    }

    /// The names of its servers, in alphabetical order.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        self.servers.keys().map(String::as_str)
    }

    /// All its servers, each read for itself.
    pub fn entries(&self) -> impl Iterator<Item = (&str, Result<Entry, ServersFileError>)> {
        self.servers
            .iter()
            .map(|(name, value)| (name.as_str(), entry::read(self, name, value, &Surroundings::here())))
    }

    /// The same with variables from elsewhere than the environment of this process.
    pub fn entries_with(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> impl Iterator<Item = (&str, Result<Entry, ServersFileError>)> {
        self.servers.iter().map(move |(name, value)| {
            let around = Surroundings { variable, ..Surroundings::here() };
            (name.as_str(), entry::read(self, name, value, &around))
        })
    }

    /// A server as the file describes it, with its variables still in place.
    pub fn describe(&self, name: &str) -> Result<Description, ServersFileError> {
        let value = self.servers.get(name).ok_or_else(|| self.unknown(name))?;
        Description::read(value).map_err(|reason| ServersFileError::Entry {
            file: self.origin.clone(),
            server: name.to_owned(),
            reason,
        })
    }

    /// Fills in whatever the file's program takes for a variable in a text: see [`fill_in`].
    pub fn fill_in<E>(
        &self,
        text: &str,
        mut value: impl FnMut(&str) -> Result<Option<String>, E>,
    ) -> Result<String, E> {
        expand::walk(text, expand::has_dollars(&self.origin), &mut value)
    }

    /// What the file says about a server, in the form that Claude and Cursor use: nothing is filled in, and nothing is
    /// hidden.
    pub fn raw(&self, name: &str) -> Option<&Value> {
        self.servers.get(name)
    }

    /// The folder that the file belongs to, which relative paths in it start from.
    pub fn folder(&self) -> PathBuf {
        Surroundings::here().workspace(&self.origin)
    }

    /// One server.
    pub fn get(&self, name: &str) -> Result<Entry, ServersFileError> {
        self.get_in(name, &Surroundings::here())
    }

    /// The one server that the file has.
    pub fn only(&self) -> Result<Entry, ServersFileError> {
        let mut names = self.names();
        match (names.next(), names.next()) {
            (Some(name), None) => self.get(name),
            _ => Err(ServersFileError::WhichOne { file: self.origin.clone(), names: self.owned_names() }),
        }
    }

    fn get_in(&self, name: &str, around: &Surroundings<'_>) -> Result<Entry, ServersFileError> {
        match self.servers.get(name) {
            Some(value) => entry::read(self, name, value, around),
            None => Err(self.unknown(name)),
        }
    }

    fn unknown(&self, name: &str) -> ServersFileError {
        ServersFileError::Unknown {
            file: self.origin.clone(),
            name: name.to_owned(),
            near: nearest_name(name, self.names()).map(str::to_owned),
            names: self.owned_names(),
        }
    }

    fn owned_names(&self) -> Vec<String> {
        self.servers.keys().cloned().collect()
    }
}

impl std::fmt::Debug for ServersFile {
    /// Names only: the rest holds secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServersFile")
            .field("origin", &self.origin)
            .field("names", &self.servers.keys().collect::<Vec<_>>())
            .finish_non_exhaustive()
    }
}
