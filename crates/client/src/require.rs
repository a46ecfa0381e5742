//! [`ServerCapability`]: what a server may be required to have.

use tidegate_protocol::{Error, Symbol};

use crate::server_info::ServerInfo;

/// A capability that a server declares when it is first spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ServerCapability {
    /// Tools.
    Tools,
    /// Resources.
    Resources,
    /// Prompts.
    Prompts,
    /// Completion of arguments.
    Completions,
    /// Log messages.
    Logging,
}

impl ServerCapability {
    /// Its name in the protocol.
    pub const fn as_str(self) -> &'static str {
        match self {
            ServerCapability::Tools => "tools",
            ServerCapability::Resources => "resources",
            ServerCapability::Prompts => "prompts",
            ServerCapability::Completions => "completions",
            ServerCapability::Logging => "logging",
        }
    }
}

/// Refuses a server that lacks one of these.
pub(crate) fn require(server_info: &ServerInfo, required: &[ServerCapability]) -> Result<(), Error> {
    match required.iter().find(|capability| !server_info.has_capability(capability.as_str())) {
        Some(missing) => Err(lacks(missing.as_str())),
        None => Ok(()),
    }
}

/// What is said of a server that lacks a capability.
pub(crate) fn lacks(capability: &str) -> Error {
    let what = format!("MCP server does not support {capability} capability");
    Error::new(Symbol::ServerCapabilityMissing, what).unexecuted()
}
