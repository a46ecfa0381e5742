//! What a tool says about its own behaviour.

use serde::{Deserialize, Serialize};

/// Hints about what a tool does (since 2025-03-26). Clients must not trust those of servers they do not trust.
///
/// ```
/// use tidegate_protocol::content::ToolAnnotations;
///
/// let hints = ToolAnnotations::new().read_only(true).open_world(false);
/// assert_eq!(serde_json::to_string(&hints).unwrap(), r#"{"readOnlyHint":true,"openWorldHint":false}"#);
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ToolAnnotations {
    /// A name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// It changes nothing. Default: it may.
    #[serde(rename = "readOnlyHint", default, skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// What it changes may be lost. Default: it may.
    #[serde(rename = "destructiveHint", default, skip_serializing_if = "Option::is_none")]
    pub destructive: Option<bool>,
    /// Calling it again with the same arguments changes nothing more. Default: it may.
    #[serde(rename = "idempotentHint", default, skip_serializing_if = "Option::is_none")]
    pub idempotent: Option<bool>,
    /// It reaches beyond a closed set of things, like the web. Default: it does.
    #[serde(rename = "openWorldHint", default, skip_serializing_if = "Option::is_none")]
    pub open_world: Option<bool>,
}

impl ToolAnnotations {
    /// No hints yet.
    pub fn new() -> ToolAnnotations {
        ToolAnnotations::default()
    }

    /// A name for people.
    pub fn title(mut self, title: impl Into<String>) -> ToolAnnotations {
        self.title = Some(title.into());
        self
    }

    /// Whether it changes nothing.
    pub fn read_only(mut self, yes: bool) -> ToolAnnotations {
        self.read_only = Some(yes);
        self
    }

    /// Whether what it changes may be lost.
    pub fn destructive(mut self, yes: bool) -> ToolAnnotations {
        self.destructive = Some(yes);
        self
    }

    /// Whether calling it again changes nothing more.
    pub fn idempotent(mut self, yes: bool) -> ToolAnnotations {
        self.idempotent = Some(yes);
        self
    }

    /// Whether it reaches beyond a closed set of things.
    pub fn open_world(mut self, yes: bool) -> ToolAnnotations {
        self.open_world = Some(yes);
        self
    }

    /// Whether nothing is said.
    pub fn is_empty(&self) -> bool {
        *self == ToolAnnotations::default()
    }
}
