//! [`Document`]: what is told of a document, and what may be in one.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::{Code, Fault, Result};
use crate::texts::{MAX_TITLE, abbreviated};

/// Most tags of a document, and the longest, in characters.
const MAX_TAGS: usize = 50;
const MAX_TAG: usize = 100;
/// Longest metadata, in bytes of JSON.
const MAX_METADATA: usize = 16_384;
/// What the address of every document begins with.
pub(crate) const ADDRESS: &str = "memory://documents/";

/// Which shelf a document stands on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Base {
    /// Anything.
    General,
    /// Source code and what belongs to it.
    Codebase,
    /// Documents.
    Documents,
}

impl Base {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Base::General => "general",
            Base::Codebase => "codebase",
            Base::Documents => "documents",
        }
    }

    pub(crate) fn named(name: &str) -> Base {
        match name {
            "general" => Base::General,
            "codebase" => Base::Codebase,
            _ => Base::Documents,
        }
    }
}

/// A document without its text.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    /// What tools know it by.
    pub(crate) id: String,
    /// Its address as a resource.
    pub(crate) uri: String,
    /// Its title.
    pub(crate) title: String,
    /// Which shelf it stands on: general, codebase or documents.
    pub(crate) knowledge_base: String,
    /// Where it came from: an address, a file, or "text".
    pub(crate) source: String,
    /// What kind of text it is.
    pub(crate) mime_type: String,
    /// How long its text is, in bytes.
    pub(crate) bytes: i64,
    /// How long its text is, in characters.
    pub(crate) characters: i64,
    /// Into how many pieces it is cut.
    pub(crate) chunks: i64,
    /// Words to find it by.
    pub(crate) tags: Vec<String>,
    /// Anything else about it.
    pub(crate) metadata: Map<String, Value>,
    /// When it was first kept, in milliseconds since 1970.
    pub(crate) created_at: i64,
    /// When this version began, in milliseconds since 1970.
    pub(crate) updated_at: i64,
    /// Which version this is, from 1.
    pub(crate) version: i64,
}

/// The name of a document that has this number.
pub(crate) fn id(key: i64) -> String {
    format!("doc-{key}")
}

/// The address of a document that has this number.
pub(crate) fn uri(key: i64) -> String {
    format!("{ADDRESS}{}", id(key))
}

/// The number of a document, from its id or its address.
pub(crate) fn key(field: &str, given: &str) -> Result<i64> {
    let id = given.trim();
    let id = id.strip_prefix(ADDRESS).unwrap_or(id);
    let digits = id.strip_prefix("doc-").unwrap_or(id);
    let plain = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    match digits.parse() {
        Ok(key) if plain => Ok(key),
        _ => Err(Fault::input(
            field,
            format!(
                "must be an id such as \"doc-1\" or an address such as \"{ADDRESS}doc-1\", not {:?}; list_documents \
                 has them",
                abbreviated(given)
            ),
        )),
    }
}

/// The number of the document at an address, if that is one.
pub(crate) fn key_at(uri: &str) -> Option<i64> {
    let id = uri.strip_prefix(ADDRESS)?;
    key("id", id).ok()
}

pub(crate) fn none(key: i64) -> Fault {
    Fault::new(
        Code::NotFound,
        format!("There is no document {:?}; list_documents shows those that there are", id(key)),
    )
}

/// A title that can be one.
pub(crate) fn title(text: &str) -> Result<()> {
    line("title", text, MAX_TITLE)
}

pub(crate) fn tags(tags: &[String]) -> Result<()> {
    if tags.len() > MAX_TAGS {
        return Err(Fault::input("tags", format!("must be at most {MAX_TAGS}, and are {}", tags.len())));
    }
    tags.iter().enumerate().try_for_each(|(at, tag)| line(&format!("tags[{at}]"), tag, MAX_TAG))
}

pub(crate) fn metadata(metadata: &Map<String, Value>) -> Result<()> {
    let length = Value::from(metadata.clone()).to_string().len();
    match length > MAX_METADATA {
        true => Err(Fault::input(
            "metadata",
            format!("must be at most {MAX_METADATA} bytes of JSON, and is {length}"),
        )),
        false => Ok(()),
    }
}

/// A text that is not empty, on one line and not too long.
fn line(field: &str, text: &str, max: usize) -> Result<()> {
    let length = text.chars().count();
    if text.trim().is_empty() {
        Err(Fault::input(field, "must not be empty"))
    } else if length > max {
        Err(Fault::input(field, format!("must have at most {max} characters, and has {length}")))
    } else if text.chars().any(char::is_control) {
        Err(Fault::input(field, "must not have control characters or line breaks"))
    } else {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_addresses_are_read() {
        for good in ["doc-12", "12", " doc-12 ", "memory://documents/doc-12", "memory://documents/12"] {
            assert_eq!(key("id", good), Ok(12), "{good}");
        }
        for bad in ["", "doc-", "doc--1", "-1", "+1", "doc-1;", "memory://entities/1", "99999999999999999999"]
        {
            let why = key("id", bad).unwrap_err();
            assert!(why.message.starts_with("id: must be an id"), "{bad}: {why}");
        }
    }

    #[test]
    fn a_title_is_one_line() {
        assert!(title("a\nb").is_err());
    }
}
