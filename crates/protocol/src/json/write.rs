//! Writing JSON text: strings with their escapes, and objects member by member.

use super::special::find_special;
use super::text::Json;

/// Appends `content` as a JSON string.
pub fn write_str(out: &mut Vec<u8>, content: &str) {
    let mut rest = content.as_bytes();
    out.push(b'"');
    loop {
        let clean = find_special(rest);
        out.extend_from_slice(&rest[..clean]);
        let Some(&special) = rest.get(clean) else { break };
        match special {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            0x08 => out.extend_from_slice(b"\\b"),
            0x0c => out.extend_from_slice(b"\\f"),
            control => {
                const HEX: &[u8; 16] = b"0123456789abcdef";
                out.extend_from_slice(b"\\u00");
                out.push(HEX[usize::from(control >> 4)]);
                out.push(HEX[usize::from(control & 15)]);
            }
        }
        rest = &rest[clean + 1..];
    }
    out.push(b'"');
}

/// Writes one JSON object into a buffer, member by member.
///
/// ```
/// use tidegate_protocol::json::ObjectWriter;
///
/// let mut w = ObjectWriter::new();
/// w.str("name", "echo").raw("size", "3");
/// assert_eq!(w.finish().as_str(), r#"{"name":"echo","size":3}"#);
/// ```
#[derive(Debug)]
pub struct ObjectWriter {
    out: Vec<u8>,
    empty: bool,
}

impl Default for ObjectWriter {
    fn default() -> Self {
        Self::new()
    }
}

impl ObjectWriter {
    /// An object without members.
    pub fn new() -> Self {
        Self::with_capacity(64)
    }

    /// An object that is expected to take about `bytes`.
    pub fn with_capacity(bytes: usize) -> Self {
        let mut out = Vec::with_capacity(bytes);
        out.push(b'{');
        ObjectWriter { out, empty: true }
    }

    fn key(&mut self, name: &str) {
        if !self.empty {
            self.out.push(b',');
        }
        self.empty = false;
        write_str(&mut self.out, name);
        self.out.push(b':');
    }

    /// A member whose value is a string.
    pub fn str(&mut self, name: &str, value: &str) -> &mut Self {
        self.key(name);
        write_str(&mut self.out, value);
        self
    }

    /// A member whose value is JSON text already.
    pub fn raw(&mut self, name: &str, value: &str) -> &mut Self {
        self.key(name);
        self.out.extend_from_slice(value.as_bytes());
        self
    }

    /// A member whose value is a [`Json`].
    pub fn json(&mut self, name: &str, value: &Json) -> &mut Self {
        self.raw(name, value.as_str())
    }

    /// A member whose value is written by `write`, which must append exactly one JSON value.
    pub fn with(&mut self, name: &str, write: impl FnOnce(&mut Vec<u8>)) -> &mut Self {
        self.key(name);
        write(&mut self.out);
        self
    }

    /// A member whose value is serialised. A value that cannot be serialised is written as `null`.
    pub fn value<T: serde::Serialize + ?Sized>(&mut self, name: &str, value: &T) -> &mut Self {
        self.key(name);
        let before = self.out.len();
        if serde_json::to_writer(&mut self.out, value).is_err() {
            self.out.truncate(before);
            self.out.extend_from_slice(b"null");
        }
        self
    }

    /// Whether nothing was written yet.
    pub fn is_empty(&self) -> bool {
        self.empty
    }

    /// The finished object.
    pub fn finish(mut self) -> Json {
        self.out.push(b'}');
        Json::from_written(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_match_serde_json() {
        for text in
            ["", "plain", "quote \" back \\ nl \n cr \r tab \t bell \u{7} nul \0 é 世界", "\u{8}\u{c}\u{1f}"]
        {
            let mut out = Vec::new();
            write_str(&mut out, text);
            assert_eq!(String::from_utf8(out).unwrap(), serde_json::to_string(text).unwrap());
        }
    }
}
