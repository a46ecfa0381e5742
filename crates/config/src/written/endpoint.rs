//! An endpoint with a selection: `[endpoints.NAME]`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Mode, Texts};

/// An endpoint with a selection of what all servers offer.
#[derive(Deserialize, JsonSchema, Default)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Endpoint {
    /// The servers, by name: patterns such as "git*". Default all.
    pub(crate) servers: Option<Vec<String>>,
    /// The tools: patterns such as "github_*" for names as clients see them; an empty list for none. Default all of these
    /// servers.
    pub(crate) tools: Option<Vec<String>>,
    /// The prompts: patterns for names as clients see them; an empty list for none. Default all of these servers.
    pub(crate) prompts: Option<Vec<String>>,
    /// The resources and resource templates: patterns for URIs as clients see them; an empty list for none. Default all of
    /// these servers.
    pub(crate) resources: Option<Vec<String>>,
    /// What clients are told about how to use it, in place of what the gateway says.
    pub(crate) instructions: Option<String>,
    /// "all" or "search", as mode of [tools]. Default: that mode.
    pub(crate) mode: Option<Mode>,
    /// Which audience (aud) access tokens for it must have: one, or a list of which one is enough. Default: the URL of the
    /// endpoint.
    pub(crate) audience: Option<Texts>,
}
