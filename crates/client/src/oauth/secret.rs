//! [`Secret`]: text that must not show up in logs.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A token, a client secret or a key. Its `Debug` shows nothing of it, and it has no `Display`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Secret(String);

impl Secret {
    /// Wraps a text, which no log line and no error shows from now on.
    pub fn new(text: impl Into<String>) -> Secret {
        let text = text.into();
        tidegate_service::secrets::register(&text);
        Secret(text)
    }

    /// The text itself, for where it has to be sent.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Secret {
        Secret::new(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Secret {
        Secret::new(text)
    }
}
