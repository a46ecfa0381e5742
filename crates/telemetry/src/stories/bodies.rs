//! [`Body`]: arguments and results in a story, where the configuration wants them. What looks like a secret is masked before it is kept.

use serde_json::Value;
use tidegate_protocol::json::ObjectWriter;
use tidegate_service::secrets::mask;

use super::secret_names::{HIDDEN, hidden_in, is_secret};

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
        hide(&mut value, 0);
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

/// How deep texts are read that hold JSON in turn.
const NESTED: usize = 3;

/// What the name of a pair is called, whose other half is its `value`.
const NAMES: [&str; 6] = ["name", "Name", "key", "Key", "header", "field"];

/// Hides the values of names that say that they are secret.
fn hide(value: &mut Value, depth: usize) {
    match value {
        Value::Object(members) => {
            // {"name": "api_key", "value": …}
            let is_named =
                NAMES.iter().any(|name| members.get(*name).and_then(Value::as_str).is_some_and(is_secret));
            for (name, value) in members {
                let is_secret =
                    |name: &str| is_secret(name) || (is_named && name.eq_ignore_ascii_case("value"));
                match is_secret(name) && !matches!(value, Value::Null | Value::Bool(_)) {
                    true => *value = HIDDEN.into(),
                    false => hide(value, depth),
                }
            }
        }
        Value::Array(values) => values.iter_mut().for_each(|value| hide(value, depth)),
        Value::String(text) => hide_in_text(text, depth),
        _ => {}
    }
}

/// Many tools answer with JSON in a text. What is none may still have a header in it.
fn hide_in_text(text: &mut String, depth: usize) {
    if depth < NESTED
        && text.trim_start().starts_with(['{', '['])
        && let Ok(mut inner) = serde_json::from_str::<Value>(text)
    {
        hide(&mut inner, depth + 1);
        *text = inner.to_string();
        return;
    }
    if let Some(hidden) = hidden_in(text) {
        *text = hidden;
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
    fn secrets_are_hidden_wherever_they_are() {
        tidegate_service::secrets::register("sk-bodies-0001");
        for json in [
            r#"{"password":"hunter22"}"#,
            r#"{"a":[{"Api-Key":"hunter22"}]}"#,
            r#"{"x_auth_token":{"deep":"hunter22"}}"#,
            r#"{"clientSecret":["hunter22"]}"#,
            r#"{"pwd":4711,"text":"hunter22 is not here: sk-bodies-0001"}"#,
            r#"{"text":"{\"token\":\"hunter22\"}"}"#,
            r#"{"text":"GET /\nAuthorization: Bearer hunter22\n\nok"}"#,
            r#"{"text":"password=hunter22"}"#,
            r#"["curl -H 'X: Bearer hunter22'"]"#,
            r#"{"headers":[{"name":"X-Api-Key","value":"hunter22"}]}"#,
            r#"{"env":[{"key":"DB_PASSWORD","value":"hunter22"}]}"#,
            r#"{"url":"https://api.example/v1?api_key=hunter22&page=2"}"#,
            r#"{"jwt":"hunter22","pin":4711}"#,
        ] {
            let said = shown(json, 4096);
            assert!(said.contains("***"), "{said}");
            assert!(json.contains("not here") || !said.contains("hunter22"), "{said}");
            assert!(!said.contains("sk-bodies-0001") && !said.contains("4711"), "{said}");
        }
        let plain = r#"{"max_tokens":100,"progressToken":"p","text":"time: now","keys":["a"],"name":"x","value":"y"}"#;
        assert!(!shown(plain, 4096).contains("***"), "{}", shown(plain, 4096));
    }

    #[test]
    fn they_are_bounded() {
        assert_eq!(shown(r#"{"a":"ééé"}"#, 4096), r#"{"b":{"bytes":14,"json":{"a":"ééé"}}}"#);
        assert_eq!(shown(r#"{"a":"ééé"}"#, 7), r#"{"b":{"bytes":14,"beginning":"{\"a\":\""}}"#);
        let large = format!("[\"{}\"]", "x".repeat(LARGEST));
        assert_eq!(shown(&large, 64), format!(r#"{{"b":{{"bytes":{},"beginning":""}}}}"#, large.len()));
    }
}
