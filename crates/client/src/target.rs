//! [`Target`]: what to connect to.

mod error;
mod name;
mod program;
mod show;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

use tidegate_service::{BoxDoor, Door};
use url::Url;

pub use error::TargetError;
pub use program::ProgramError;

use crate::transport::Streams;

/// A server to connect to.
///
/// Its `Display` and `Debug` are fit for logs: they leave out the values of variables and headers, what looks like a
/// secret among the arguments, and user, password and query of an address.
#[derive(Clone)]
#[non_exhaustive]
pub enum Target {
    /// A program that is started and spoken to over its standard streams.
    Command(Command),
    /// An address: Streamable HTTP, or HTTP+SSE where that is all the server has.
    Url(Remote),
    /// A server behind a pair of streams.
    Streams(Streams),
    /// A service in this very process.
    Local(BoxDoor),
}

/// A program to start.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Command {
    /// The program, looked up in `PATH`.
    pub program: String,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables that it gets on top of the few that every child gets (see [`Command::environment`]).
    pub env: BTreeMap<String, String>,
    /// Where it runs; here if not set.
    pub cwd: Option<PathBuf>,
}

/// A server behind an address.
#[derive(Clone, PartialEq, Eq)]
pub struct Remote {
    /// Its address.
    pub url: Url,
    /// Headers that go with every request, for example `Authorization`.
    pub headers: BTreeMap<String, String>,
    /// Whether the address is known to be one of the old HTTP+SSE transport (`"type": "sse"`), so that nothing else
    /// is tried.
    pub sse: bool,
}

impl Target {
    /// Reads an address (`https://…`) or a command line, which is split as a POSIX shell does it; leading
    /// `NAME=value` words become variables of the program. No shell runs, so there are no pipes, globs or `$NAME`.
    ///
    /// What the command line of Tidegate takes knows more than that: see [`Target::resolve`].
    ///
    /// ```
    /// use tidegate_client::Target;
    ///
    /// let target = Target::parse("DEBUG=1 npx -y '@modelcontextprotocol/server-everything'")?;
    /// assert_eq!(target.name(), "@modelcontextprotocol/server-everything");
    /// assert_eq!(Target::parse("https://example.com/mcp")?.name(), "example.com");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn parse(text: &str) -> Result<Target, TargetError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(TargetError::Empty);
        }
        if scheme(text).is_some() {
            return Target::url(text);
        }
        let mut words = shlex::split(text).ok_or(TargetError::Quotes)?.into_iter().peekable();
        let mut env = BTreeMap::new();
        while let Some((name, value)) = words.peek().and_then(|word| assignment(word)) {
            env.insert(name.to_owned(), value.to_owned());
            words.next();
        }
        let program = words.next().filter(|word| !word.is_empty()).ok_or(TargetError::NoProgram)?;
        Ok(Target::Command(Command { program, args: words.collect(), env, cwd: None }))
    }

    /// A program and its arguments.
    pub fn command(program: impl Into<String>, args: impl IntoIterator<Item = impl Into<String>>) -> Target {
        let args = args.into_iter().map(Into::into).collect();
        Target::Command(Command { program: program.into(), args, ..Command::default() })
    }

    /// An `http` or `https` address.
    pub fn url(address: &str) -> Result<Target, TargetError> {
        Remote::parse(address).map(Target::Url)
    }

    /// A short name for logs: the host of an address, the package that `npx`, `uvx` or `docker` runs, the script of an
    /// interpreter, else the file name of the program.
    pub fn name(&self) -> String {
        match self {
            Target::Command(command) => name::of_command(&command.program, &command.args),
            Target::Url(remote) => name::of_url(&remote.url),
            Target::Streams(_) => "streams".to_owned(),
            Target::Local(_) => "local".to_owned(),
        }
    }
}

impl Remote {
    /// A server at an address, without headers, over whichever transport it turns out to have.
    pub fn new(url: Url) -> Remote {
        Remote { url, headers: BTreeMap::new(), sse: false }
    }

    /// The same, from text.
    pub fn parse(address: &str) -> Result<Remote, TargetError> {
        let address = address.trim();
        if address.contains(char::is_whitespace) {
            return Err(TargetError::Url("it contains spaces".to_owned()));
        }
        let url = Url::parse(address).map_err(|error| TargetError::Url(error.to_string()))?;
        match url.scheme() {
            "http" | "https" => Ok(Remote::new(url)),
            other => Err(TargetError::Scheme(other.to_owned())),
        }
    }
}

impl From<Command> for Target {
    fn from(command: Command) -> Target {
        Target::Command(command)
    }
}

impl From<Remote> for Target {
    fn from(remote: Remote) -> Target {
        Target::Url(remote)
    }
}

impl FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Target, TargetError> {
        Target::parse(text)
    }
}

/// The scheme of something that starts like an address: letters before `://`.
fn scheme(text: &str) -> Option<&str> {
    let (scheme, _) = text.split_once("://")?;
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.');
    (scheme.starts_with(|c: char| c.is_ascii_alphabetic()) && scheme.chars().all(fits)).then_some(scheme)
}

/// Splits `NAME=value` if that is what the word is.
fn assignment(word: &str) -> Option<(&str, &str)> {
    word.split_once('=').filter(|(name, _)| is_variable(name))
}

/// Whether this can be the name of an environment variable in a shell.
pub(crate) fn is_variable(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

impl Target {
    /// A service in this very process, for example a server of the framework.
    pub fn from_door(door: impl Door) -> Target {
        Target::Local(door.boxed())
    }
}

impl TryFrom<&str> for Target {
    type Error = TargetError;

    fn try_from(text: &str) -> Result<Target, TargetError> {
        Target::parse(text)
    }
}

impl TryFrom<String> for Target {
    type Error = TargetError;

    fn try_from(text: String) -> Result<Target, TargetError> {
        Target::parse(&text)
    }
}
