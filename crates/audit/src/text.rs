//! Text of others as a record has it: a JSON string that is not long, on one line, without anything that a terminal obeys.

use tidegate_protocol::json::write_str;

/// How much of a text a record has, in characters.
const LONGEST: usize = 256;

/// Appends `,"name":"value"` if there is a value. The name is a literal, so that it is copied in one piece with what is around it: there are
/// some fifteen members in the record of each call.
macro_rules! member {
    ($out:expr, $name:literal, $value:expr) => {
        if let Some(value) = Option::<&str>::from($value) {
            $crate::text::text($out, concat!(",\"", $name, "\":\"").as_bytes(), value);
        }
    };
}

/// The same for a value of ours, which has nothing to escape.
macro_rules! own {
    ($out:expr, $name:literal, $value:expr) => {
        $crate::text::plain($out, concat!(",\"", $name, "\":\"").as_bytes(), $value)
    };
}

/// Appends `,"name":12`.
macro_rules! number {
    ($out:expr, $name:literal, $value:expr) => {
        $crate::text::key!($out, $name);
        $crate::chain::write_number($out, $value);
    };
}

/// Appends `,"name":`.
macro_rules! key {
    ($out:expr, $name:literal) => {
        $out.extend_from_slice(concat!(",\"", $name, "\":").as_bytes())
    };
}

pub(crate) use {key, member, number, own};

/// Appends what comes before a string, and the string. That already has its first quote.
#[inline]
pub(crate) fn text(out: &mut Vec<u8>, before: &[u8], value: &str) {
    // Nearly everything is short and plain.
    if value.len() <= LONGEST && is_plain(value.as_bytes()) {
        return quoted(out, before, value);
    }
    out.extend_from_slice(&before[..before.len() - 1]);
    string(out, value);
}

#[inline]
pub(crate) fn plain(out: &mut Vec<u8>, before: &[u8], value: &str) {
    debug_assert!(is_plain(value.as_bytes()), "{value:?}");
    quoted(out, before, value);
}

/// Appends a JSON string.
pub(crate) fn string(out: &mut Vec<u8>, value: &str) {
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

#[inline]
fn quoted(out: &mut Vec<u8>, before: &[u8], value: &str) {
    out.reserve(before.len() + value.len() + 1);
    out.extend_from_slice(before);
    out.extend_from_slice(value.as_bytes());
    out.push(b'"');
}

/// Whether a string has all of these bytes as they are: printable ASCII without quotes and backslashes. Eight at a time.
fn is_plain(value: &[u8]) -> bool {
    let (words, rest) = value.as_chunks::<8>();
    let words = words.iter().fold(0, |odd, word| odd | odd_bytes(u64::from_le_bytes(*word)));
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    (words | odd_bytes(u64::from_le_bytes(last))) == 0
}

/// Not zero if one of these bytes is none of those. A byte that is fine may be marked only beside one that is not.
#[inline]
fn odd_bytes(word: u64) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * EACH;
    let is = |byte: u8| {
        let other = word ^ (EACH * u64::from(byte));
        other.wrapping_sub(EACH) & !other
    };
    let is_below_space = word.wrapping_sub(EACH * u64::from(b' ')) & !word;
    (word | is_below_space | is(b'"') | is(b'\\') | is(0x7f)) & HIGH
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
        member!(&mut out, "a", value);
        String::from_utf8(out).unwrap().strip_prefix(",\"a\":").unwrap().to_owned()
    }

    #[test]
    fn every_byte_is_plain_or_not_wherever_it_stands() {
        for byte in 0..=u8::MAX {
            let is_fine = matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\');
            for (length, at) in [(1, 0), (7, 6), (8, 0), (8, 7), (9, 8), (20, 3), (20, 19)] {
                let mut value = vec![b'a'; length];
                value[at] = byte;
                assert_eq!(is_plain(&value), is_fine, "{byte:#x} at {at} of {length}");
            }
        }
        assert!(is_plain(b""));
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
