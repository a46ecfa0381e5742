//! [`EndpointSettings`]: an endpoint with a selection of what all servers offer.

use crate::settings::ToolMode;
use tidegate_policy::Patterns;

/// One endpoint beside the default one. What it does not select is not there for those who use it.
#[derive(Debug, Clone, PartialEq)]
pub struct EndpointSettings {
    /// Its name: lower-case letters, digits and `-`, at most 64 of them.
    pub name: String,
    /// Where it is: `/NAME` followed by the path of the default endpoint.
    pub path: String,
    /// Servers by their names; `None` for all.
    pub servers: Option<Patterns>,
    /// Tools by their exposed names; `None` for all of these servers.
    pub tools: Option<Patterns>,
    /// Prompts by their exposed names; `None` for all of these servers.
    pub prompts: Option<Patterns>,
    /// Resources and resource templates by their exposed addresses; `None` for all of these servers.
    pub resources: Option<Patterns>,
    /// What clients are told about how to use it, in place of what the gateway says.
    pub instructions: Option<String>,
    /// All tools, or a way to search for them; `None` for what the gateway does.
    pub mode: Option<ToolMode>,
    /// What `aud` of a token must have one of. None: the URL of the endpoint.
    pub audience: Vec<String>,
}

impl EndpointSettings {
    /// Where it is while the default endpoint is at `default`.
    pub fn path_beside(name: &str, default: &str) -> String {
        match default {
            "/" => format!("/{name}"),
            default => format!("/{name}{default}"),
        }
    }
}
