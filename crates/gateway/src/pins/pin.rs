//! [`Pin`]: a tool as a model saw it when it was approved.

use sha2::{Digest, Sha256};
use tidegate_protocol::Json;

use super::{canonical, diff};

/// What a model sees of a tool (name, title, description, schemas, annotations) in canonical form, and its digest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pin {
    pub(super) seen: Json,
    digest: String,
}

impl Pin {
    /// The pin of a definition, which may hold more than is pinned.
    pub fn of(definition: &Json) -> Pin {
        let seen = canonical::seen(definition);
        let digest = Sha256::digest(seen.as_str()).iter().map(|byte| format!("{byte:02x}")).collect();
        Pin { seen, digest }
    }

    /// SHA-256 of the canonical form, in hex.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// What is pinned, in canonical form.
    pub fn definition(&self) -> &Json {
        &self.seen
    }

    /// What is different in `now`, as a unified diff of about `most` bytes. What could be mistaken for something else
    /// on a terminal is escaped.
    ///
    /// ```
    /// use tidegate_gateway::Pin;
    /// use tidegate_protocol::Json;
    ///
    /// let before = Pin::of(&Json::trusted(r#"{"name":"add","description":"Adds"}"#));
    /// let now = Pin::of(&Json::trusted(r#"{"name":"add","description":"Subtracts"}"#));
    /// assert_eq!(before.diff(&now, 2000), "@@ description @@\n-Adds\n+Subtracts\n");
    /// ```
    pub fn diff(&self, now: &Pin, most: usize) -> String {
        diff::diff(self, now, most)
    }
}
