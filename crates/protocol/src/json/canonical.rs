//! The canonical form of a value: one spelling for everything that is the same.
//!
//! As in RFC 8785: members sorted, no white space, strings and numbers in their shortest form. What that cannot tell
//! apart is meant to be the same; whatever else differs is a change. An object with a key twice has no canonical form
//! (readers disagree which of the two counts), so it stays as it is spelled, and every change of it is one. The same
//! goes for what nests deeper than messages may.
//!
//! Digests of what is pinned and of what calls are bound to are over this form, so it cannot change.

use std::borrow::Cow;
use std::cmp::Ordering;

use super::scan::{Limits, Scan, Scanner};
use super::special::find_special;
use super::text::Json;
use super::write::write_str;

const LIMITS: Limits = Limits { max_depth: 127, max_bytes: usize::MAX };

impl Json {
    /// This value in its canonical form.
    ///
    /// ```
    /// use tidegate_protocol::Json;
    ///
    /// let one = Json::trusted(r#"{"name": "\u0041dd", "arguments": {"n": 1.0}}"#);
    /// let other = Json::trusted(r#"{"arguments":{"n":1},"name":"Add"}"#);
    /// assert_eq!(one.canonical(), other.canonical());
    /// ```
    pub fn canonical(&self) -> Json {
        // Most arguments are few, and written by programs: nothing about them has to change.
        if is_canonical(self.as_str().as_bytes()) {
            return self.clone();
        }
        let mut out = Vec::with_capacity(self.len());
        write_canonical(self.as_str(), &mut out);
        Json::from_written(out)
    }

    /// This value without the white space between its parts.
    pub fn compact(&self) -> Json {
        let mut out = Vec::with_capacity(self.len());
        write_compact(self.as_str(), &mut out);
        Json::from_written(out)
    }
}

/// Appends a well-formed value in its canonical form.
fn write_canonical(text: &str, out: &mut Vec<u8>) {
    let before = out.len();
    let mut writer = Writer { scanner: Scanner::new(text, &LIMITS), out };
    if writer.value(0).is_err() {
        out.truncate(before);
        write_compact(text, out);
    }
}

/// Appends a value without the white space between its parts.
fn write_compact(text: &str, out: &mut Vec<u8>) {
    let mut scanner = Scanner::new(text, &LIMITS);
    while let Some(next) = scanner.next_token() {
        let from = scanner.at;
        // What is no string is copied byte by byte: there is little of it between two strings.
        if next != b'"' || scanner.string().is_err() {
            scanner.at = from + 1;
        }
        out.extend_from_slice(&text.as_bytes()[from..scanner.at]);
    }
}

/// Whether a well-formed value surely is in its canonical form. What is rare is not looked at closely, and counts as if it were not.
fn is_canonical(text: &[u8]) -> bool {
    skip_canonical(text, 0, 0) == Some(text.len())
}

/// How deep it looks.
const SHALLOW: usize = 8;

/// Where a value ends that begins here and surely is in its canonical form.
fn skip_canonical(text: &[u8], at: usize, depth: usize) -> Option<usize> {
    match *text.get(at)? {
        b'"' => skip_plain_string(text, at),
        b'{' if depth < SHALLOW => skip_canonical_object(text, at, depth),
        b'[' if depth < SHALLOW => {
            if text.get(at + 1) == Some(&b']') {
                return Some(at + 2);
            }
            let mut at = at;
            loop {
                at = skip_canonical(text, at + 1, depth + 1)?;
                match text.get(at)? {
                    b',' => {}
                    b']' => return Some(at + 1),
                    _ => return None,
                }
            }
        }
        b't' | b'n' => Some(at + 4),
        b'f' => Some(at + 5),
        b'-' | b'0'..=b'9' => {
            let digits = text[at + 1..].iter().take_while(|byte| byte.is_ascii_digit()).count();
            let end = at + 1 + digits;
            let is_whole = !matches!(text.get(end), Some(b'.' | b'e' | b'E')) && &text[at..end] != b"-0";
            is_whole.then_some(end)
        }
        _ => None,
    }
}

/// An object whose names are in order, each once.
fn skip_canonical_object(text: &[u8], at: usize, depth: usize) -> Option<usize> {
    if text.get(at + 1) == Some(&b'}') {
        return Some(at + 2);
    }
    let mut before: &[u8] = &[];
    let mut at = at;
    loop {
        let from = at + 1;
        let to = skip_plain_string(text, from)?;
        let name = &text[from + 1..to - 1];
        // Beyond ASCII, the order is that of UTF-16.
        if !name.is_ascii() || name.is_empty() || name <= before {
            return None;
        }
        before = name;
        if text.get(to) != Some(&b':') {
            return None;
        }
        at = skip_canonical(text, to + 1, depth + 1)?;
        match text.get(at)? {
            b',' => {}
            b'}' => return Some(at + 1),
            _ => return None,
        }
    }
}

/// Where a string ends that begins here and has no escapes.
fn skip_plain_string(text: &[u8], at: usize) -> Option<usize> {
    if text.get(at) != Some(&b'"') {
        return None;
    }
    let end = at + 1 + find_special(&text[at + 1..]);
    (text.get(end) == Some(&b'"')).then_some(end + 1)
}

/// Reads a value once and writes it as it goes. It is as deep as the scanner allows, and no deeper.
struct Writer<'t, 'o> {
    scanner: Scanner<'t>,
    out: &'o mut Vec<u8>,
}

impl<'t> Writer<'t, '_> {
    fn value(&mut self, depth: usize) -> Scan<()> {
        match self.scanner.next_token() {
            Some(b'{') => return self.object(depth + 1),
            Some(b'[') => return self.array(depth + 1),
            Some(b'"') => {
                let raw = self.string()?;
                match decoded(raw) {
                    // Without escapes there is only one spelling, and a lone surrogate has no other.
                    Some(Cow::Borrowed(_)) | None => self.out.extend_from_slice(raw.as_bytes()),
                    Some(Cow::Owned(content)) => write_str(self.out, &content),
                }
            }
            _ => {
                let from = self.scanner.at;
                self.scanner.value(depth)?;
                let raw = &self.scanner.text[from..self.scanner.at];
                self.out.extend_from_slice(number(raw).as_deref().unwrap_or(raw).as_bytes());
            }
        }
        Ok(())
    }

    /// Consumes a string and gives it as it is spelled.
    fn string(&mut self) -> Scan<&'t str> {
        let from = self.scanner.at;
        self.scanner.string()?;
        Ok(&self.scanner.text[from..self.scanner.at])
    }

    fn array(&mut self, depth: usize) -> Scan<()> {
        self.begin(depth, b'[')?;
        if self.scanner.next_token() == Some(b']') {
            return self.end(b']');
        }
        loop {
            self.value(depth)?;
            if self.scanner.next_token() != Some(b',') {
                return self.end(b']');
            }
            self.scanner.at += 1;
            self.out.push(b',');
        }
    }

    fn object(&mut self, depth: usize) -> Scan<()> {
        let (read_from, written_from) = (self.scanner.at, self.out.len());
        self.begin(depth, b'{')?;
        if self.scanner.next_token() == Some(b'}') {
            return self.end(b'}');
        }
        // Names, and where their members stand in what is written.
        let mut members: Vec<(Cow<'t, str>, usize, usize)> = Vec::new();
        loop {
            if self.scanner.next_token() != Some(b'"') {
                return self.scanner.unexpected();
            }
            let raw = self.string()?;
            let name = decoded(raw);
            self.scanner.colon()?;
            let from = self.out.len();
            match &name {
                Some(name) => write_str(self.out, name),
                // A lone surrogate has no other spelling.
                None => self.out.extend_from_slice(raw.as_bytes()),
            }
            let name = name.unwrap_or(Cow::Borrowed(&raw[1..raw.len() - 1]));
            self.out.push(b':');
            self.value(depth)?;
            members.push((name, from, self.out.len()));
            if self.scanner.next_token() != Some(b',') {
                break;
            }
            self.scanner.at += 1;
            self.out.push(b',');
        }
        self.end(b'}')?;
        if members.is_sorted_by(|a, b| order(&a.0, &b.0) == Ordering::Less) {
            return Ok(());
        }
        members.sort_by(|a, b| order(&a.0, &b.0));
        if members.is_sorted_by(|a, b| a.0 != b.0) {
            let written = self.out.split_off(written_from);
            self.out.push(b'{');
            for (index, (_, from, to)) in members.iter().enumerate() {
                if index > 0 {
                    self.out.push(b',');
                }
                self.out.extend_from_slice(&written[from - written_from..to - written_from]);
            }
            self.out.push(b'}');
        } else {
            self.out.truncate(written_from);
            write_compact(&self.scanner.text[read_from..self.scanner.at], self.out);
        }
        Ok(())
    }

    fn begin(&mut self, depth: usize, opens: u8) -> Scan<()> {
        if depth > LIMITS.max_depth {
            return self.scanner.unexpected();
        }
        self.scanner.at += 1;
        self.out.push(opens);
        Ok(())
    }

    fn end(&mut self, closes: u8) -> Scan<()> {
        self.out.push(closes);
        self.scanner.expect(closes)
    }
}

/// The content of a string, quotes and all; `None` if it cannot be decoded.
fn decoded(raw: &str) -> Option<Cow<'_, str>> {
    let inner = &raw[1..raw.len() - 1];
    match memchr::memchr(b'\\', inner.as_bytes()) {
        None => Some(Cow::Borrowed(inner)),
        Some(_) => serde_json::from_str(raw).ok().map(Cow::Owned),
    }
}

/// RFC 8785 sorts names by their UTF-16 units.
fn order(a: &str, b: &str) -> Ordering {
    a.encode_utf16().cmp(b.encode_utf16())
}

/// The shortest spelling of a number; `None` if it has to stay as it is, or is none.
fn number(text: &str) -> Option<String> {
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return None;
    }
    // Whole numbers stay exact, however many digits they have.
    if !text.contains(['.', 'e', 'E']) {
        return (text == "-0").then(|| "0".to_owned());
    }
    let value: f64 = text.parse().ok()?;
    let exact = value.fract() == 0.0 && value.abs() < 9_007_199_254_740_992.0;
    match exact {
        true => Some((value as i64).to_string()),
        false => serde_json::Number::from_f64(value).map(|number| number.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        Json::trusted(text.to_owned()).canonical().as_str().to_owned()
    }

    #[test]
    fn one_spelling_for_what_is_the_same() {
        for (text, want) in [
            (r#"{ "b" : 1, "a":[ true , null ] }"#, r#"{"a":[true,null],"b":1}"#),
            (r#"{"\u0061":"\u0041\/\n"}"#, r#"{"a":"A/\n"}"#),
            (
                "[1.0, 1e0, 1E+0, 1e2, -0, -0.0, 0.50, 1E-7, 12345678901234567890, -7]",
                "[1,1,1,100,0,0,0.5,1e-7,12345678901234567890,-7]",
            ),
            (
                r#"{"c":{"z":{},"y":[ ]},"b":"x","a":{"e":[{"g":1,"f":2}]}}"#,
                r#"{"a":{"e":[{"f":2,"g":1}]},"b":"x","c":{"y":[],"z":{}}}"#,
            ),
            // UTF-16 puts what is beyond the first plane before the end of it.
            ("{\"\u{ff61}\":1,\"\u{1f600}\":2}", "{\"\u{1f600}\":2,\"\u{ff61}\":1}"),
            (r#"{"\ud800": 1}"#, r#"{"\ud800":1}"#),
            (r#"{"\\ud800": 1}"#, r#"{"\\ud800":1}"#),
            (r#"{"a":{"k": 1,"k":2},"b":"\ud800"}"#, r#"{"a":{"k":1,"k":2},"b":"\ud800"}"#),
            (
                r#"{"b":{"k": 1.0, "k": {"d":1,"c" : "x y"}},"a":1}"#,
                r#"{"a":1,"b":{"k":1.0,"k":{"d":1,"c":"x y"}}}"#,
            ),
            (r#" "a" "#, r#""a""#),
            ("1e400", "1e400"),
        ] {
            assert_eq!(canonical(text), want);
            assert_eq!(canonical(want), want, "it is canonical already");
        }
    }

    #[test]
    fn what_is_canonical_already_is_left_alone() {
        let written = |text: &str| {
            let mut out = Vec::new();
            write_canonical(text, &mut out);
            String::from_utf8(out).unwrap()
        };
        for text in [
            r#"{"a":1,"b":"x y","c":[true,false,null,-7],"d":{"e":{}}}"#,
            "[]",
            "{}",
            r#"{"message":"hällo"}"#,
            "12345678901234567890",
        ] {
            assert!(is_canonical(text.as_bytes()), "{text}");
            assert_eq!(written(text), text);
        }
        for text in [
            r#"{"b":1,"a":1}"#,
            r#"{"a":1,"a":1}"#,
            r#"{"a": 1}"#,
            r#" {}"#,
            "{} ",
            r#"{"a":"\n"}"#,
            "1.0",
            "-0",
            "1e2",
            r#"{"é":1}"#,
            "[1 ,2]",
            "[[[[[[[[[[1]]]]]]]]]]",
        ] {
            assert!(!is_canonical(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn what_differs_stays_different() {
        for (a, b) in [
            ("1", "\"1\""),
            ("[1,2]", "[2,1]"),
            ("{\"a\":1}", "{\"a\":2}"),
            ("{\"a\":1}", "{\"a\":1,\"b\":null}"),
            ("9007199254740993", "9007199254740992"),
            ("\"a\"", "\"A\""),
            (r#"{"k":1,"k":2}"#, r#"{"k":2,"k":1}"#),
        ] {
            assert_ne!(canonical(a), canonical(b));
        }
    }

    #[test]
    fn what_nests_too_deep_stays_as_it_is_spelled() {
        let deep =
            |inner: &str, levels: usize| format!("{}{inner}{}", "[".repeat(levels), "]".repeat(levels));
        assert_eq!(canonical(&deep("{\"b\":1,\"a\":1}", 126)), deep("{\"a\":1,\"b\":1}", 126));
        assert_eq!(canonical(&deep("{\"b\": 1,\"a\":1}", 127)), deep("{\"b\":1,\"a\":1}", 127));
    }

    #[test]
    fn compact_touches_only_what_is_between() {
        let text = Json::trusted(r#"{"a": "x \" y", "b": "\\" , "c": [1.0 , true]}"#);
        assert_eq!(text.compact().as_str(), r#"{"a":"x \" y","b":"\\","c":[1.0,true]}"#);
    }
}
