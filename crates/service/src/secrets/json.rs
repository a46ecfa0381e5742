//! JSON without what its names say is secret, for lines and stories.

use serde_json::{Map, Value};

use super::names::{hide_in_text, is_count, is_secret};
use super::{HIDDEN, mask};

/// How deep texts are read that hold JSON in turn.
const NESTED: usize = 3;
/// What the name of a pair is called, and its other half.
const NAMES: [&str; 5] = ["name", "key", "header", "field", "variable"];
const VALUES: [&str; 4] = ["value", "val", "content", "data"];

/// Hides the values of names that say that they are secret, in members, in pairs such as `{"name": "api_key", "value": "…"}`, after options
/// and within texts, and the secrets that are known.
pub fn hide_in_json(value: &mut Value) {
    hide(value, 0);
}

fn hide(value: &mut Value, depth: usize) {
    match value {
        Value::Object(members) => object(members, depth),
        Value::Array(values) => array(values, depth),
        Value::String(text) => string(text, depth),
        _ => {}
    }
}

fn object(members: &mut Map<String, Value>, depth: usize) {
    let is = |name: &str, words: &[&str]| words.iter().any(|word| name.eq_ignore_ascii_case(word));
    let is_named =
        members.iter().any(|(name, value)| is(name, &NAMES) && value.as_str().is_some_and(is_secret));
    for (name, value) in members.iter_mut() {
        let is_hidden = match value {
            Value::Null | Value::Bool(_) => false,
            Value::Number(_) => is_secret(name) && !is_count(name),
            // A schema says what a secret looks like, and not what it is.
            Value::Object(inner) if is_schema(inner) => false,
            _ => is_secret(name) || (is_named && is(name, &VALUES)),
        };
        match is_hidden {
            true => *value = HIDDEN.into(),
            false => hide(value, depth),
        }
    }
    if members.keys().any(|name| shown(name) != *name) {
        let all = std::mem::take(members);
        members.extend(all.into_iter().map(|(name, value)| (shown(&name), value)));
    }
}

fn is_schema(members: &Map<String, Value>) -> bool {
    const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
    members.get("type").and_then(Value::as_str).is_some_and(|kind| TYPES.contains(&kind))
}

/// A text as it may be shown.
fn shown(text: &str) -> String {
    mask(&hide_in_text(text)).into_owned()
}

fn array(values: &mut [Value], depth: usize) {
    let is_pair = values.len() == 2;
    let mut is_next = false;
    for value in values {
        let is_hidden = std::mem::take(&mut is_next) && value.is_string();
        if let Value::String(text) = &*value {
            let is_option = text.starts_with('-') && !text.contains(['=', ':']);
            is_next = !is_hidden && (is_option || is_pair) && text.len() <= 64 && is_secret(text);
        }
        match is_hidden {
            true => *value = HIDDEN.into(),
            false => hide(value, depth),
        }
    }
}

/// Many tools answer with JSON in a text.
fn string(text: &mut String, depth: usize) {
    if depth < NESTED
        && text.trim_start().starts_with(['{', '['])
        && let Ok(mut inner) = serde_json::from_str::<Value>(text)
    {
        hide(&mut inner, depth + 1);
        *text = inner.to_string();
        return;
    }
    let hidden = shown(text);
    if hidden != *text {
        *text = hidden;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hidden(json: &str) -> String {
        let mut value = serde_json::from_str(json).unwrap();
        hide_in_json(&mut value);
        value.to_string()
    }

    #[test]
    fn secrets_are_hidden_wherever_they_are() {
        crate::secrets::register("sk-bodies-0001 it's \"quoted\"");
        for json in [
            r#"{"password":"hunter22"}"#,
            r#"{"a":[{"Api-Key":"hunter22"}]}"#,
            r#"{"x_auth_token":{"deep":"hunter22"}}"#,
            r#"{"clientSecret":["hunter22"]}"#,
            r#"{"tokens":["hunter22"]}"#,
            r#"{"pwd":4711,"text":"it is: sk-bodies-0001 it's \"quoted\""}"#,
            r#"{"text":"{\"token\":\"hunter22\"}"}"#,
            r#"{"text":"GET /\nAuthorization: Bearer hunter22\n\nok"}"#,
            r#"["curl -H 'X: Bearer hunter22'"]"#,
            r#"{"headers":[{"name":"X-Api-Key","value":"hunter22"}]}"#,
            r#"{"env":[{"KEY":"DB_PASSWORD","Value":"hunter22"}]}"#,
            r#"{"env":[{"name":"DB_PASSWORD","content":"hunter22"}]}"#,
            r#"{"url":"https://api.example/v1?api_key=hunter22&page=2"}"#,
            r#"{"jwt":"hunter22","pin":4711}"#,
            r#"["mysql","--password","hunter22"]"#,
            r#"[["X-Api-Key","hunter22"]]"#,
            r#"{"password=hunter22":1}"#,
        ] {
            let said = hidden(json);
            assert!(said.contains("***"), "{said}");
            for secret in ["hunter22", "sk-bodies-0001", "4711"] {
                assert!(!said.contains(secret), "{said}");
            }
        }
        let plain = r#"{"max_tokens":100,"progressToken":"p","text":"time: now","keys":["a"],"name":"x","value":"y","tokenizer":{"a":"b"},"pass":3,"token":null}"#;
        assert!(!hidden(plain).contains("***"), "{}", hidden(plain));
    }
}
