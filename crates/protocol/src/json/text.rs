//! [`Json`]: a piece of JSON text that is known to be well formed.

use std::fmt;

use bytes::Bytes;
use bytestring::ByteString;
use serde::{Serialize, de::DeserializeOwned};

use super::scan::{Fault, FaultKind, Limits, Scanner};
use super::write::write_str;

/// One JSON value as text, sharing the buffer it came in. Cloning is a reference count.
///
/// Equality and hashing are those of the text: `1.0` and `1` differ.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Json(ByteString);

impl Json {
    /// Checks that `text` is one JSON value and takes it, without white space around it.
    pub fn parse(text: impl Into<ByteString>, limits: &Limits) -> Result<Json, Fault> {
        let text = text.into();
        if text.len() > limits.max_bytes {
            return Err(Fault { kind: FaultKind::TooLong(limits.max_bytes), at: limits.max_bytes });
        }
        let mut scanner = Scanner::new(&text, limits);
        scanner.next_token();
        let start = scanner.at;
        scanner.value(0).map_err(|fault| *fault)?;
        let end = scanner.at;
        scanner.finish().map_err(|fault| *fault)?;
        Ok(Json(text.slice_ref(&text[start..end])))
    }

    /// Takes text that the caller wrote itself and so knows to be one JSON value.
    ///
    /// Nothing is checked in release builds. Text from outside goes through [`Json::parse`].
    pub fn trusted(text: impl Into<ByteString>) -> Json {
        let json = Json(text.into());
        debug_assert!(serde_json::from_str::<serde::de::IgnoredAny>(&json.0).is_ok(), "not JSON: {}", json.0);
        json
    }

    /// A value as JSON text. Fails only for types whose `Serialize` fails (maps with keys that are not strings).
    pub fn of<T: Serialize + ?Sized>(value: &T) -> Result<Json, serde_json::Error> {
        serde_json::to_string(value).map(|text| Json(text.into()))
    }

    /// A JSON string with this content.
    pub fn string(content: &str) -> Json {
        let mut out = Vec::with_capacity(content.len() + 2);
        write_str(&mut out, content);
        Json::from_written(out)
    }

    /// `{}`.
    pub const fn empty_object() -> Json {
        Json(ByteString::from_static("{}"))
    }

    /// `null`.
    pub const fn null() -> Json {
        Json(ByteString::from_static("null"))
    }

    /// Text made by [`ObjectWriter`](super::ObjectWriter) and [`write_str`](super::write_str), which write nothing but
    /// UTF-8. Panics if something else did.
    pub fn from_written(out: Vec<u8>) -> Json {
        Json(ByteString::try_from(Bytes::from(out)).expect("the writers write UTF-8"))
    }

    pub(crate) fn from_span(text: &ByteString, start: usize, end: usize) -> Json {
        Json(text.slice_ref(&text[start..end]))
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The text, owned.
    pub fn into_text(self) -> ByteString {
        self.0
    }

    /// The text, shared.
    pub fn text(&self) -> &ByteString {
        &self.0
    }

    /// Length of the text in bytes.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Never: a JSON value has at least one character.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the value is an object.
    pub fn is_object(&self) -> bool {
        self.0.starts_with('{')
    }

    /// Whether the value is `null`.
    pub fn is_null(&self) -> bool {
        &*self.0 == "null"
    }

    /// Whether the value is a string.
    pub fn is_string(&self) -> bool {
        self.0.starts_with('"')
    }

    /// Whether the value is a number written without fraction and exponent.
    pub fn is_integer(&self) -> bool {
        matches!(self.0.as_bytes().first(), Some(b'-' | b'0'..=b'9'))
            && !self.0.as_bytes().iter().any(|b| matches!(b, b'.' | b'e' | b'E'))
    }

    /// The content of a string value.
    pub fn to_str(&self) -> Option<std::borrow::Cow<'_, str>> {
        let inner = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inner.contains('\\') {
            serde_json::from_str::<String>(&self.0).ok().map(Into::into)
        } else {
            Some(inner.into())
        }
    }

    /// The value as a Rust type.
    pub fn to<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }
}

impl fmt::Debug for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl From<serde_json::Value> for Json {
    fn from(value: serde_json::Value) -> Json {
        Json(value.to_string().into())
    }
}

impl From<&serde_json::Value> for Json {
    fn from(value: &serde_json::Value) -> Json {
        Json(value.to_string().into())
    }
}

impl Serialize for Json {
    /// Inside a larger value this costs a copy; the hot path uses the writers instead.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::value::RawValue::from_string(self.0.to_string())
            .map_err(serde::ser::Error::custom)?
            .serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Json {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Json, D::Error> {
        let raw = Box::<serde_json::value::RawValue>::deserialize(deserializer)?;
        Ok(Json(String::from(Box::<str>::from(raw)).into()))
    }
}
