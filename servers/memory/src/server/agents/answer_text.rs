//! [`AnswerText`]: finds the text of an answer while a model writes the JSON around it.
//!
//! An answer is a JSON object. What people want to read while it is written is the value of its main text field, without
//! quotes and escapes. An answer without one is shown as the JSON that it is.

use serde_json::Value;

use crate::models::ANSWER;

/// Names that a main text field usually has, the likeliest first.
const USUAL: [&str; 9] =
    ["answer", "response", "text", "message", "content", "summary", "result", "output", "reply"];
/// How deep objects and lists may be nested; deeper ones are not looked into.
const DEEPEST: usize = 128;
/// Longest name of a member that is looked at, in characters.
const MAX_KEY: usize = 200;

/// The member of an answer that has its text: one with a usual name, else the first text that is required, else any.
pub(super) fn main_text(schema: &Value) -> Option<String> {
    let properties = schema["properties"].as_object()?;
    let is_text = |name: &&str| {
        let property = properties.get(*name);
        let kind = property.map(|property| &property["type"]);
        let texts = kind.is_some_and(|kind| {
            kind == "string" || kind.as_array().is_some_and(|all| all.contains(&"string".into()))
        });
        texts
            && property
                .is_some_and(|property| property.get("enum").is_none() && property.get("const").is_none())
    };
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let all = USUAL.into_iter().chain(required).chain(properties.keys().map(String::as_str));
    all.into_iter().find(is_text).map(str::to_owned)
}

/// Finds the text in what is written, character by character.
pub(super) struct AnswerText {
    /// The member that is wanted; all of the JSON if there is none.
    wanted: Option<String>,
    /// What was read last outside of an object: it may be a mark of thoughts, which are no answer.
    prose: String,
    is_thinking: bool,
    /// The objects (`true`) and lists that are open.
    open: Vec<bool>,
    /// The names of the members that are being read, on the two outermost levels.
    keys: [String; 2],
    /// Whether the next text in an object is the name of a member.
    names: bool,
    text: Option<JsonText>,
    /// Whether the answer is complete: what follows it is something else.
    is_done: bool,
}

/// A JSON text that is being read.
#[derive(Default)]
struct JsonText {
    is_name: bool,
    is_wanted: bool,
    escape: Option<Escape>,
    /// The first half of a character that is written as two escapes.
    half: Option<u16>,
}

enum Escape {
    Begun,
    Hex(String),
}

impl AnswerText {
    pub(super) fn new(wanted: Option<String>) -> AnswerText {
        AnswerText {
            wanted,
            prose: String::new(),
            is_thinking: false,
            open: Vec::new(),
            keys: Default::default(),
            names: false,
            text: None,
            is_done: false,
        }
    }

    /// Takes more of what is written. What of the answer's text is in it goes to `out`.
    pub(super) fn take(&mut self, piece: &str, out: &mut String) {
        for c in piece.chars() {
            if self.is_done {
                return;
            }
            let inside = !self.open.is_empty();
            match (inside, self.text.is_some()) {
                (false, _) => self.outside(c),
                (true, true) => self.in_text(c, out),
                (true, false) => self.in_object(c),
            }
            if self.wanted.is_none() && (inside || !self.open.is_empty()) {
                out.push(c);
            }
        }
    }

    fn outside(&mut self, c: char) {
        self.prose.push(c);
        if self.prose.ends_with("<think>") {
            self.is_thinking = true;
        } else if self.prose.ends_with("</think>") {
            self.is_thinking = false;
        }
        if self.prose.len() > 64 {
            let keep = self.prose.char_indices().rev().nth(8).map_or(0, |(at, _)| at);
            self.prose.drain(..keep);
        }
        if c == '{' && !self.is_thinking {
            (self.open, self.names) = (vec![true], true);
        }
    }

    fn in_object(&mut self, c: char) {
        let in_object = self.open.last() == Some(&true);
        match c {
            '"' => {
                let is_name = in_object && self.names;
                if let Some(key) = self.keys.get_mut(self.open.len() - 1).filter(|_| is_name) {
                    key.clear();
                }
                let is_wanted = !is_name && in_object && self.is_wanted();
                self.text = Some(JsonText { is_name, is_wanted, ..JsonText::default() });
            }
            '{' | '[' if self.open.len() < DEEPEST => {
                self.open.push(c == '{');
                self.names = c == '{';
            }
            '{' | '[' => self.is_done = true,
            '}' | ']' => {
                self.open.pop();
                self.names = false;
            }
            ',' => self.names = in_object,
            ':' => self.names = false,
            c if c.is_whitespace() => {}
            // What looked like an object is none.
            _ if self.names => self.open.clear(),
            _ => {}
        }
    }

    /// Whether the member that is being read is the wanted one: of the answer, or of an object that has the answer in it.
    fn is_wanted(&self) -> bool {
        let Some(wanted) = &self.wanted else { return false };
        match self.open.len() {
            1 => self.keys[0] == *wanted,
            2 => self.keys[0] == ANSWER && self.keys[1] == *wanted,
            _ => false,
        }
    }

    fn in_text(&mut self, c: char, out: &mut String) {
        let Some(text) = &mut self.text else { return };
        let read = match &mut text.escape {
            None if c == '"' => {
                // The text of an answer is one: what comes after it is other members.
                self.is_done = text.is_wanted;
                self.text = None;
                return;
            }
            None if c == '\\' => {
                text.escape = Some(Escape::Begun);
                return;
            }
            None => c,
            Some(Escape::Begun) if c == 'u' => {
                text.escape = Some(Escape::Hex(String::new()));
                return;
            }
            Some(Escape::Begun) => {
                text.escape = None;
                match c {
                    'n' => '\n',
                    't' => '\t',
                    'r' => '\r',
                    'b' => '\u{8}',
                    'f' => '\u{c}',
                    other => other,
                }
            }
            Some(Escape::Hex(digits)) => {
                digits.push(c);
                if digits.len() < 4 {
                    return;
                }
                let unit = u16::from_str_radix(digits, 16).unwrap_or(0xFFFD);
                text.escape = None;
                let units = text.half.take().into_iter().chain([unit]);
                match char::decode_utf16(units).last() {
                    Some(Ok(c)) => c,
                    _ if (0xD800..0xDC00).contains(&unit) => {
                        text.half = Some(unit);
                        return;
                    }
                    _ => char::REPLACEMENT_CHARACTER,
                }
            }
        };
        match (text.is_name, text.is_wanted) {
            (true, _) => {
                if let Some(key) = self.keys.get_mut(self.open.len() - 1).filter(|key| key.len() < MAX_KEY) {
                    key.push(read);
                }
            }
            (false, true) => out.push(read),
            (false, false) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn spoken(wanted: Option<&str>, written: &str) -> String {
        let mut whole = String::new();
        AnswerText::new(wanted.map(str::to_owned)).take(written, &mut whole);
        // However it is cut, it is the same.
        let (mut spoken, mut pieces) = (AnswerText::new(wanted.map(str::to_owned)), String::new());
        written.chars().for_each(|c| spoken.take(c.encode_utf8(&mut [0; 4]), &mut pieces));
        assert_eq!(whole, pieces, "{written}");
        whole
    }

    #[test]
    fn the_main_text_is_chosen_by_the_schema() {
        let text = json!({"type": "string"});
        for (schema, name) in [
            (json!({"properties": {"a": text, "answer": text}, "required": ["a"]}), Some("answer")),
            (json!({"properties": {"a": text, "b": text}, "required": ["b"]}), Some("b")),
            (json!({"properties": {"n": {"type": "integer"}, "z": {"type": ["string", "null"]}}}), Some("z")),
            (json!({"properties": {"answer": {"type": "string", "enum": ["yes", "no"]}}}), None),
            (json!({"properties": {"answer": {"type": "array"}}}), None),
            (json!({}), None),
        ] {
            assert_eq!(main_text(&schema).as_deref(), name, "{schema}");
        }
    }

    #[test]
    fn the_text_is_found_in_the_json() {
        for (written, text) in [
            (r#"{"answer": "Tea."}"#, "Tea."),
            (
                r#"{"tags": ["answer", {"answer": "no"}], "answer": "a \"b\"\n\u00fc \ud83e\udd80", "x": 1}"#,
                "a \"b\"\nü 🦀",
            ),
            (
                r#"Sure! {so} <think>{"answer": "no"}</think> ```{"answer": "yes"}``` {"answer": "again"}"#,
                "yes",
            ),
            (r#"{"answer": {"answer": "within", "b": 2}}"#, "within"),
            (r#"{"tool": "search", "arguments": {"answer": "no"}}"#, ""),
            (r#"{"answer": "cut o"#, "cut o"),
            ("no object", ""),
            (r#"{"a": "\ud83e", "answer": "\ud83ex"}"#, "x"),
        ] {
            assert_eq!(spoken(Some("answer"), written), text, "{written}");
        }
        assert_eq!(spoken(None, r#"Here: {"n": [1, {"a": "}"}]} done"#), r#"{"n": [1, {"a": "}"}]}"#);
        assert_eq!(spoken(Some("a"), &"[{".repeat(100_000)), "");
    }
}
