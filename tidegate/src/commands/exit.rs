//! What the process ends with. Scripts rely on these numbers, so they stay.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// It went well.
    Fine = 0,
    /// The tool says that it failed, or `doctor` found something broken.
    ToolError = 1,
    /// The command line, a file it names, or an argument is wrong. Nothing was sent.
    Usage = 2,
    /// The server cannot be reached or started.
    Unavailable = 3,
    /// The server refused, or broke the protocol.
    Refused = 4,
    /// The server wants a login.
    LoginNeeded = 5,
    /// It took too long.
    TimedOut = 6,
    /// Ctrl-C, or a signal that asks politely.
    Cancelled = 130,
}

impl Exit {
    /// The number.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }
}

/// The same for `--help`.
pub(crate) const HELP: &str = "\
Exit codes:
  0    it went well
  1    the tool reported an error; with doctor: something is broken
  2    the command line, a file that it names or an argument is wrong
  3    the server cannot be reached or started
  4    the server refused, or broke the protocol
  5    the server wants a login
  6    it took too long
  130  cancelled (Ctrl-C)";

/// How a server is named, for `--help`.
pub(crate) const TARGETS: &str = "\
TARGET is one of
  https://example.com/mcp      an address
  'npx -y some-server --flag'  a command line, quoted as one argument
  servers.json#github          an entry of an mcpServers file (just servers.json if it has only one)
  github                       an entry of a file of Claude Code, Claude Desktop, Cursor or VS Code
or leave TARGET out and put the command line behind two hyphens: -- npx -y some-server --flag";

/// Both, under the options of every command that talks to a server.
pub(crate) fn after_help() -> String {
    format!("{TARGETS}\n\n{HELP}")
}

/// Under the list of all commands.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tidegate tools 'npx -y @modelcontextprotocol/server-everything'
  tidegate call https://example.com/mcp search query='high tide'
  tidegate doctor
The help of each command names its exit codes.";
