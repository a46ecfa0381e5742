//! Small helpers for JSON text that this crate writes itself.

use serde_json::Value;
use tidegate_protocol::Json;

/// What the JSON writers wrote, which is always UTF-8.
pub(crate) fn json(written: Vec<u8>) -> Json {
    Json::trusted(String::from_utf8(written).expect("the writers write UTF-8"))
}

/// One spelling for equal values: members sorted by name, whatever order they came in.
pub(crate) fn canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut members: Vec<_> = map.iter().collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (name, value) in members {
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                canonical(value, out);
                out.push(',');
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for item in items {
                canonical(item, out);
                out.push(',');
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut out, byte| {
        let _ = write!(out, "{byte:02x}");
        out
    })
}

/// Random bytes that nobody can guess.
pub(crate) fn random<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    // Without the system's randomness nothing that is handed out could be trusted.
    getrandom::fill(&mut bytes).expect("the operating system provides random bytes");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_does_not_matter_and_values_do() {
        let text = |json: &str| {
            let mut out = String::new();
            canonical(&serde_json::from_str(json).unwrap(), &mut out);
            out
        };
        assert_eq!(text(r#"{"b":1,"a":{"d":[1,2],"c":"x"}}"#), text(r#"{"a":{"c":"x","d":[1,2]},"b":1}"#));
        assert_ne!(text(r#"{"a":[1,2]}"#), text(r#"{"a":[2,1]}"#));
        assert_ne!(text(r#"{"a":"b"}"#), text(r#"{"a":{"b":1}}"#));
    }
}
