//! Asking the client for its roots.

use serde::Deserialize;
use serde_json::Value;
use tidegate_protocol::Json;

use super::{Ask, Asked, Kind};
use crate::cx::Cx;

/// A directory or file that the client lets the server work in.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct Root {
    /// Where: a `file://` URI.
    pub uri: String,
    /// Its name for people.
    pub name: Option<String>,
}

impl Cx {
    /// Asks the client for its roots.
    pub fn roots(&self) -> Ask<Vec<Root>> {
        let asked = Asked { kind: Kind::Roots, params: Json::empty_object() };
        Ask::new(self, None, Ok(asked), |mut answer| {
            let roots = answer.get_mut("roots").map_or(Value::Null, Value::take);
            serde_json::from_value(roots).map_err(|e| format!("is no list of roots: {e}"))
        })
    }
}

pub(super) fn check(answer: &Value) -> Result<(), String> {
    let roots = answer.get("roots").and_then(Value::as_array).ok_or("must have an array of \"roots\"")?;
    if roots.iter().all(|root| root.get("uri").is_some_and(Value::is_string)) {
        Ok(())
    } else {
        Err("must have roots with a \"uri\" each".into())
    }
}
