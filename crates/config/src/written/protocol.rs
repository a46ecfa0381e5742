//! What is said about the protocol that a server speaks.

use schemars::JsonSchema;
use serde::Deserialize;

/// Whose error numbers are meant.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Errors {
    /// Those of the specification.
    Standard,
    /// -32000 to -32006 as the GBIF server has them.
    Gbif,
    /// -32000 to -32003 as the Percolate server has them.
    Percolate,
    /// -32000 to -32003 as the Docling client has them.
    Docling,
    /// -32800 to -32802 as DevFlow has them.
    Devflow,
}

/// How a conversation begins.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Handshake {
    /// As the server's era wants it.
    Auto,
    /// initialize, notifications/initialized and tools/list before any tool is called.
    ThreeStep,
}

/// A capability that a server declares.
#[derive(Deserialize, JsonSchema, Clone, Copy)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Requirement {
    Tools,
    Resources,
    Prompts,
    Completions,
    Logging,
}

/// What a server is told about its client.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClientInfo {
    /// The name of the client.
    pub(crate) name: String,
    /// Its version. Default "1.0.0".
    #[serde(default)]
    pub(crate) version: Option<String>,
}
