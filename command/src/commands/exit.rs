//! What the process ends with. Scripts rely on these numbers, so they stay.

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Success.
    Fine = 0,
    /// The tool says that it failed, or `doctor` found something broken.
    ToolError = 1,
    /// The command line, a file it names, or an argument is wrong. Nothing was sent.
    Usage = 2,
    /// The server cannot be reached or started.
    Unavailable = 3,
    /// The server rejected the request, or violated the protocol.
    Refused = 4,
    /// The server requires a login.
    LoginNeeded = 5,
    /// Timeout.
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
  0    success
  1    the tool reported an error; with doctor: something is broken
  2    the command line, a file or an argument is wrong
  3    the server cannot be reached or started
  4    the server rejected the request, or violated the protocol
  5    the server requires a login
  6    timeout
  130  cancelled (Ctrl-C)";

/// How a server is named, for `--help`.
pub(crate) const TARGETS: &str = "\
TARGET is one of
  https://example.com/mcp      a URL
  'npx -y some-server --flag'  a command line, quoted as one argument
  github                       a server of tidegate.toml, else of Claude Code, Cursor, VS Code, ...
  servers.json#github          an entry of an mcpServers file or a tidegate.toml
Or leave out TARGET and put the command line after two hyphens: -- npx -y some-server --flag";

/// Both, under the options of every command that talks to a server.
pub(crate) fn after_help() -> String {
    format!("{TARGETS}\n\n{HELP}")
}

/// Under the list of all commands.
pub(crate) const EXAMPLES: &str = "\
Examples:
  tidegate add time -- uvx mcp-server-time                        add a server to the gateway
  tidegate call https://example.com/mcp search query='high tide'  call a tool of any server
  tidegate doctor                                                 find out what is wrong with yours

Run tidegate COMMAND --help for the options and exit codes of a command.";
