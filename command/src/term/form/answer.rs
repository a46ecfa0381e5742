//! What the user said.

use serde_json::{Map, Value};

/// What the user wants to happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Goes along with it.
    Accept,
    /// Says no.
    Decline,
    /// Goes away without saying either.
    Cancel,
}

/// The result of an elicitation.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    /// What the user wants to happen.
    pub(crate) action: Action,
    /// What the user filled in; only with [`Action::Accept`], and only for forms.
    pub(crate) content: Option<Map<String, Value>>,
}

impl Answer {
    /// An answer without content.
    pub(crate) fn bare(action: Action) -> Answer {
        Answer { action, content: None }
    }

    /// An accepted form.
    pub(crate) fn accept(content: Map<String, Value>) -> Answer {
        Answer { action: Action::Accept, content: Some(content) }
    }

    /// As it goes over the wire: `{"action": …, "content": …}`.
    #[cfg(test)]
    pub(crate) fn to_json(&self) -> Value {
        let action = match self.action {
            Action::Accept => "accept",
            Action::Decline => "decline",
            Action::Cancel => "cancel",
        };
        match &self.content {
            Some(content) => serde_json::json!({"action": action, "content": content}),
            None => serde_json::json!({"action": action}),
        }
    }
}
