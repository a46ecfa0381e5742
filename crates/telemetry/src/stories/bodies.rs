//! [`Body`]: arguments and results in a story, where the configuration wants them. What looks like a secret is masked before it is kept.

use serde_json::Value;
use tidegate_protocol::json::ObjectWriter;
use tidegate_service::secrets::{hide_in_json, mask};

/// What is larger is not looked at: nothing of it is kept.
const LARGEST: usize = 256 << 10;
/// The arguments or the result of a call, as much of them as is kept.
#[derive(Debug)]
pub(super) struct Body {
    text: Box<str>,
    /// How large it was.
    bytes: usize,
    /// Whether that is all of it.
    is_whole: bool,
}

impl Body {
    /// At most so many bytes of a JSON text.
    pub(super) fn of(json: &str, most: usize) -> Option<Body> {
        let bytes = json.len();
        if bytes > LARGEST {
            return Some(Body { text: "".into(), bytes, is_whole: false });
        }
        let mut value: Value = serde_json::from_str(json).ok()?;
        hide_in_json(&mut value);
        let text = value.to_string();
        let text = mask(&text);
        let is_whole = text.len() <= most;
        let ends = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end));
        Some(Body { text: text[..ends.unwrap_or_default()].into(), bytes, is_whole })
    }

    pub(super) fn size(&self) -> usize {
        self.text.len()
    }

    /// As JSON if it is whole, else as the text of its beginning.
    pub(super) fn write(&self, out: &mut ObjectWriter, name: &str) {
        let mut body = ObjectWriter::new();
        body.value("bytes", &self.bytes);
        match self.is_whole {
            true => body.raw("json", &self.text),
            false => body.str("beginning", &self.text),
        };
        out.json(name, &body.finish());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(json: &str, most: usize) -> String {
        let mut out = ObjectWriter::new();
        Body::of(json, most).unwrap().write(&mut out, "b");
        out.finish().as_str().to_owned()
    }

    #[test]
    fn secrets_are_hidden() {
        assert_eq!(
            shown(r#"{"password":"hunter22"}"#, 4096),
            r#"{"b":{"bytes":23,"json":{"password":"***"}}}"#
        );
    }

    #[test]
    fn they_are_bounded() {
        assert_eq!(shown(r#"{"a":"ééé"}"#, 4096), r#"{"b":{"bytes":14,"json":{"a":"ééé"}}}"#);
        assert_eq!(shown(r#"{"a":"ééé"}"#, 7), r#"{"b":{"bytes":14,"beginning":"{\"a\":\""}}"#);
        let large = format!("[\"{}\"]", "x".repeat(LARGEST));
        assert_eq!(shown(&large, 64), format!(r#"{{"b":{{"bytes":{},"beginning":""}}}}"#, large.len()));
    }
}
