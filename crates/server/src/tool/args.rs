//! Reading a tool's arguments: one pass from text to tree, duplicate keys refused at any depth.
//!
//! The text was checked when its envelope was split, so this reader spends nothing on proving the grammar again: a
//! long string is one search for its end and one copy. It still never panics on text that is not JSON.

use serde_json::{Map, Number, Value};

/// Deeper than any message that the edges let through.
const MAX_DEPTH: usize = 128;

/// Why arguments cannot be read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum ArgsFault {
    /// One object has two members of this name.
    Duplicate(String),
    /// Nested too deeply.
    TooDeep,
    /// A string or number that JSON allows and Rust cannot hold, or no JSON at all.
    Unreadable(usize),
}

impl std::fmt::Display for ArgsFault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ArgsFault::Duplicate(name) => write!(f, "the key {name:?} appears twice in one object"),
            ArgsFault::TooDeep => write!(f, "nested more than {MAX_DEPTH} levels deep"),
            ArgsFault::Unreadable(at) => write!(f, "a value at byte {at} cannot be read"),
        }
    }
}

/// The value that `text` holds.
pub(crate) fn parse(text: &str) -> Result<Value, ArgsFault> {
    parse_and_look(text).map(|(value, _)| value)
}

/// The value that `text` holds, and whether there is a `null` anywhere in it.
pub(super) fn parse_and_look(text: &str) -> Result<(Value, bool), ArgsFault> {
    let mut reader = Reader { text, at: 0, has_null: false };
    let value = reader.value(0)?;
    match reader.peek() {
        None => Ok((value, reader.has_null)),
        Some(_) => reader.unreadable(),
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    has_null: bool,
}

impl Reader<'_> {
    fn unreadable<T>(&self) -> Result<T, ArgsFault> {
        Err(ArgsFault::Unreadable(self.at))
    }

    /// The next byte that is not white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\t' | b'\n' | b'\r') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    fn take(&mut self, wanted: u8) -> Result<(), ArgsFault> {
        if self.peek() != Some(wanted) {
            return self.unreadable();
        }
        self.at += 1;
        Ok(())
    }

    fn value(&mut self, depth: usize) -> Result<Value, ArgsFault> {
        if depth > MAX_DEPTH {
            return Err(ArgsFault::TooDeep);
        }
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Value::String),
            Some(b't') => self.word("true", Value::Bool(true)),
            Some(b'f') => self.word("false", Value::Bool(false)),
            Some(b'n') => {
                self.has_null = true;
                self.word("null", Value::Null)
            }
            _ => self.number(),
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, ArgsFault> {
        if !self.text.as_bytes()[self.at..].starts_with(word.as_bytes()) {
            return self.unreadable();
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Value, ArgsFault> {
        let mut map = Map::new();
        self.take(b'{')?;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Value::Object(map));
        }
        loop {
            self.peek();
            let key = self.string()?;
            self.take(b':')?;
            let value = self.value(depth + 1)?;
            match map.entry(key) {
                serde_json::map::Entry::Vacant(place) => place.insert(value),
                serde_json::map::Entry::Occupied(taken) => {
                    return Err(ArgsFault::Duplicate(taken.key().clone()));
                }
            };
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => return self.take(b'}').map(|()| Value::Object(map)),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<Value, ArgsFault> {
        let mut items = Vec::new();
        self.take(b'[')?;
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Value::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            match self.peek() {
                Some(b',') => self.at += 1,
                _ => return self.take(b']').map(|()| Value::Array(items)),
            }
        }
    }

    fn string(&mut self) -> Result<String, ArgsFault> {
        let open = self.at;
        self.take(b'"')?;
        let mut end = self.at;
        let mut escaped = false;
        loop {
            let Some(found) = memchr::memchr2(b'"', b'\\', &self.text.as_bytes()[end..]) else {
                return self.unreadable();
            };
            end += found;
            if self.text.as_bytes()[end] == b'"' {
                break;
            }
            escaped = true;
            end += 2;
            if end > self.text.len() {
                return self.unreadable();
            }
        }
        let text = if escaped {
            // Lone surrogates are JSON and no Rust string.
            serde_json::from_str(&self.text[open..=end]).or_else(|_| self.unreadable())?
        } else {
            self.text[self.at..end].to_owned()
        };
        self.at = end + 1;
        Ok(text)
    }

    fn number(&mut self) -> Result<Value, ArgsFault> {
        let rest = &self.text.as_bytes()[self.at..];
        let len = rest.iter().position(|b| !matches!(b, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'));
        let text = &self.text[self.at..self.at + len.unwrap_or(rest.len())];
        let number = match text.parse::<u64>() {
            Ok(plain) if !text.starts_with('+') => Number::from(plain),
            _ => serde_json::from_str(text).or_else(|_| self.unreadable())?,
        };
        self.at += text.len();
        Ok(Value::Number(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_serde_json_reads() {
        for text in [
            "{}",
            " { } ",
            r#"{"a":[1,-2,3.5,1e3,-0,0],"b":{"c":null,"d":[true,false,[]]}}"#,
            r#"{"s":"é 世界","t":"a\"b\\c\n\u00e9","":""}"#,
            "18446744073709551615",
            "18446744073709551616",
            "-9223372036854775808",
            r#"  [ 1 , { "x" : "y" } ]  "#,
        ] {
            assert_eq!(parse(text).unwrap(), serde_json::from_str::<Value>(text).unwrap(), "{text}");
        }
    }

    #[test]
    fn nulls_are_seen_at_any_depth_and_not_in_texts() {
        for (text, has_null) in [
            ("null", true),
            (r#"{"a":[1,{"b":null}]}"#, true),
            (r#"{"null":"null","a":["null"]}"#, false),
            ("{}", false),
        ] {
            assert_eq!(parse_and_look(text).unwrap().1, has_null, "{text}");
        }
    }

    #[test]
    fn duplicates_are_refused_at_any_depth_and_in_any_spelling() {
        for text in [r#"{"a":1,"a":2}"#, r#"{"x":[{"y":{"a":1,"a":1}}]}"#, r#"{"a":1,"\u0061":2}"#] {
            assert_eq!(parse(text), Err(ArgsFault::Duplicate("a".into())), "{text}");
        }
    }

    #[test]
    fn text_that_is_no_json_is_refused_without_panic() {
        for text in [
            "",
            "{",
            "{\"a\"",
            "{\"a\":}",
            "[1,]",
            "\"abc",
            "\"\\",
            "tru",
            "+1",
            "1.",
            "{} x",
            r#""\ud800""#,
            "é",
        ] {
            assert!(matches!(parse(text), Err(ArgsFault::Unreadable(_))), "{text}");
        }
        assert_eq!(parse(&"[".repeat(1000)), Err(ArgsFault::TooDeep));
    }
}
