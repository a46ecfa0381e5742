//! Request ids: strings or integers, echoed byte for byte.

use std::borrow::Cow;
use std::fmt;
use std::hash::{Hash, Hasher};

use bytestring::ByteString;

use crate::json::Json;

/// The longest id that a message may have, and the longest progress token: both are kept and echoed. Those of the
/// clients and servers there are have a few dozen bytes.
pub const LONGEST_ID: usize = 1024;

/// A JSON-RPC request id as it stood in the message.
///
/// Any string and any integer is an id, 0 and integers beyond 64 bits included. Two ids are equal if they mean the
/// same value, whatever their spelling (`"a"` and `"\u0061"`); a number never equals a string.
#[derive(Clone)]
pub struct Id(Json);

impl Id {
    /// The id of a raw value, or `None` if it is neither a string nor an integer.
    pub fn from_json(json: Json) -> Option<Id> {
        (json.is_string() || json.is_integer()).then_some(Id(json))
    }

    /// The id of a raw value that is known to be a string or an integer.
    pub(crate) fn trusted(json: Json) -> Id {
        Id(json)
    }

    /// The id as it stood in the message.
    pub fn as_json(&self) -> &str {
        self.0.as_str()
    }

    /// The id as JSON, sharing the buffer.
    pub fn to_json(&self) -> Json {
        self.0.clone()
    }

    /// A copy with a buffer of its own, so that keeping the id does not keep the whole message.
    pub fn detached(&self) -> Id {
        Id(Json::trusted(ByteString::from(self.as_json())))
    }

    /// What the id means, for comparison: the decoded string with its quote, or the number's text.
    fn meaning(&self) -> Cow<'_, str> {
        let text = self.as_json();
        if text.contains('\\') {
            match serde_json::from_str::<String>(text) {
                Ok(decoded) => return Cow::Owned(format!("\"{decoded}\"")),
                Err(_) => return Cow::Borrowed(text),
            }
        }
        Cow::Borrowed(if text == "-0" { "0" } else { text })
    }
}

impl PartialEq for Id {
    fn eq(&self, other: &Id) -> bool {
        self.as_json() == other.as_json() || self.meaning() == other.meaning()
    }
}

impl Eq for Id {}

impl Hash for Id {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.meaning().hash(state);
    }
}

impl From<i64> for Id {
    fn from(number: i64) -> Id {
        Id(Json::trusted(number.to_string()))
    }
}

impl From<&str> for Id {
    fn from(text: &str) -> Id {
        Id(Json::string(text))
    }
}

impl fmt::Debug for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_json())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &'static str) -> Option<Id> {
        Id::from_json(Json::trusted(text))
    }

    #[test]
    fn strings_and_integers_only() {
        for ok in ["0", "-7", "123456789012345678901234567890", r#""""#, r#""a""#] {
            assert_eq!(id(ok).unwrap().as_json(), ok);
        }
        for bad in ["null", "1.0", "1e3", "true", "[]", "{}"] {
            assert!(id(bad).is_none(), "{bad}");
        }
    }

    #[test]
    fn equal_by_meaning() {
        assert_eq!(id(r#""a""#), id(r#""\u0061""#));
        assert_ne!(id(r#""1""#), id("1"));
    }
}
