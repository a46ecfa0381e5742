//! Text of others as a record has it: a JSON string that is not long, on one line, without anything that a terminal obeys.

use tidegate_protocol::json::write_str;

/// How much of a text a record has, in characters.
const LONGEST: usize = 256;

/// Appends `,"name":"value"`. `name` is one of ours.
pub(crate) fn member(out: &mut Vec<u8>, name: &str, value: &str) {
    key(out, name);
    string(out, value);
}

/// The same for a value of ours, which has nothing to escape.
pub(crate) fn own(out: &mut Vec<u8>, name: &str, value: &str) {
    debug_assert!(is_plain(value), "{value:?}");
    key(out, name);
    quoted(out, value);
}

/// Appends `,"name":"value"` if there is a value.
pub(crate) fn optional(out: &mut Vec<u8>, name: &str, value: Option<&str>) {
    if let Some(value) = value {
        member(out, name, value);
    }
}

/// Appends `,"name":`.
pub(crate) fn key(out: &mut Vec<u8>, name: &str) {
    out.extend_from_slice(b",\"");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a JSON string.
pub(crate) fn string(out: &mut Vec<u8>, value: &str) {
    // Nearly everything is short and plain.
    if value.len() <= LONGEST && is_plain(value) {
        return quoted(out, value);
    }
    let (short, is_cut) = match value.char_indices().nth(LONGEST) {
        Some((at, _)) => (&value[..at], true),
        None => (value, false),
    };
    write_str(out, "");
    out.pop();
    let mut from = 0;
    for (at, odd) in short.char_indices().filter(|(_, c)| is_odd(*c)) {
        inner(out, &short[from..at]);
        let mut units = [0; 2];
        for unit in odd.encode_utf16(&mut units) {
            out.extend_from_slice(format!("\\u{unit:04x}").as_bytes());
        }
        from = at + odd.len_utf8();
    }
    inner(out, &short[from..]);
    if is_cut {
        out.extend_from_slice("…".as_bytes());
    }
    out.push(b'"');
}

fn quoted(out: &mut Vec<u8>, value: &str) {
    out.push(b'"');
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// Which bytes a string has as they are: printable ASCII without quotes and backslashes. A table, because most texts are shorter than
/// what looking at several bytes at once pays for.
const PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0x20;
    while byte < 0x7f {
        plain[byte] = byte != b'"' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    plain
};

fn is_plain(value: &str) -> bool {
    value.bytes().fold(true, |plain, byte| plain & PLAIN[usize::from(byte)])
}

/// Appends the inside of a JSON string.
fn inner(out: &mut Vec<u8>, value: &str) {
    let before = out.len();
    write_str(out, value);
    out.pop();
    out.remove(before);
}

/// What readers take for the end of a line, terminals obey, or turns the direction of the text around. What JSON escapes anyway is not
/// among it.
fn is_odd(c: char) -> bool {
    let is_control = c.is_control() && c >= '\u{7f}';
    is_control
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn written(value: &str) -> String {
        let mut out = Vec::new();
        string(&mut out, value);
        String::from_utf8(out).unwrap()
    }

    proptest! {
        #[test]
        fn whatever_comes_is_one_string_on_one_line(value in "\\PC*|[\\x00-\\x{a0}\\u{2028}\\u{202e}\"\\\\a😀]{0,300}") {
            let text = written(&value);
            prop_assert!(!text.chars().any(char::is_control), "{text:?}");
            prop_assert!(!text.contains(['\u{2028}', '\u{202e}']), "{text:?}");
            let read: String = serde_json::from_str(&text).unwrap();
            match value.chars().count() > LONGEST {
                true => prop_assert_eq!(read, value.chars().take(LONGEST).chain(['…']).collect::<String>()),
                false => prop_assert_eq!(read, value),
            }
        }
    }

    #[test]
    fn examples() {
        for (value, expected) in [
            ("", r#""""#),
            ("demo_add", r#""demo_add""#),
            ("a\"b\\c\nd", r#""a\"b\\c\nd""#),
            ("\u{7f}\u{9b}2J", r#""\u007f\u009b2J""#),
            ("ä\u{2028}\"\u{202e}", r#""ä\u2028\"\u202e""#),
        ] {
            assert_eq!(written(value), expected);
        }
        let long = written(&"x".repeat(1000));
        assert_eq!(long, format!("\"{}…\"", "x".repeat(256)));
    }
}
