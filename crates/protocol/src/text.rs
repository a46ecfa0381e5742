//! Makes text that others wrote safe to show: on a terminal ([`lines`], [`line()`], [`first_line`]) and in a log
//! ([`escaped`]).
//!
//! A terminal obeys escape sequences: they can clear the screen, rewrite what was shown before, set the title or the
//! clipboard. Marks that turn the direction of writing can make a text read differently from what it is. And a line
//! break in a log line makes two of it, of which the second says whatever somebody wanted it to say.

use std::borrow::Cow;
use std::fmt::Write;

/// A text of several lines: keeps line breaks and tabs, drops escape sequences and every other control character.
///
/// ```
/// assert_eq!(tidegate_protocol::text::lines("one\n\x1b[31mtwo\x1b[0m"), "one\ntwo");
/// ```
pub fn lines(dirty: &str) -> String {
    if is_plain(dirty, is_harmful) {
        return dirty.to_owned();
    }
    let mut out = String::with_capacity(dirty.len());
    let mut rest = dirty;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '\u{1b}' | '\u{9b}' | '\u{9d}' | '\u{90}' => sequence(rest),
            c => {
                if !is_harmful(c) {
                    out.push(c);
                }
                c.len_utf8()
            }
        };
        rest = &rest[length..];
    }
    out
}

/// A text that must stay on one line: the same, with every run of white space as one space.
pub fn line(dirty: &str) -> String {
    lines(dirty).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first line that says anything.
pub fn first_line(dirty: &str) -> String {
    lines(dirty).lines().map(str::trim).find(|line| !line.is_empty()).map(line).unwrap_or_default()
}

/// A text as part of a log line: everything that could end the line, drive a terminal or turn the direction of writing
/// is shown instead of done, as `\n` or `\u{1b}`.
///
/// ```
/// assert_eq!(tidegate_protocol::text::escaped("a\nb"), "a\\nb");
/// ```
pub fn escaped(dirty: &str) -> Cow<'_, str> {
    if is_plain(dirty, breaks_a_log) {
        return Cow::Borrowed(dirty);
    }
    let mut out = String::with_capacity(dirty.len() + 16);
    for c in dirty.chars() {
        match c {
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            // Writing to a string does not fail.
            c if breaks_a_log(c) => _ = write!(out, "\\u{{{:x}}}", u32::from(c)),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// JSON text whose strings hold nothing that a terminal would obey: what JSON itself lets pass (the second set of
/// control characters, the marks that turn the direction of writing) is written as `\u009b`. To a reader of JSON it is
/// the same.
pub fn escaped_json(json: &str) -> Cow<'_, str> {
    if is_plain(json, is_harmful) {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if is_harmful(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                _ = write!(out, "\\u{unit:04x}");
            }
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Whether none of its characters is such a one. Most texts are plain ASCII, and that is seen quickly.
fn is_plain(text: &str, is_bad: impl Fn(char) -> bool) -> bool {
    // Chunk by chunk and without a branch for each byte, which is many of them at once.
    let is_ascii = |chunk: &[u8]| chunk.iter().fold(true, |plain, byte| plain & matches!(byte, b' '..=b'~'));
    text.as_bytes().chunks(64).all(is_ascii) || !text.contains(is_bad)
}

fn breaks_a_log(c: char) -> bool {
    matches!(c, '\n' | '\t') || is_harmful(c)
}

/// Control characters but line break and tab, and the marks that turn the direction of writing.
fn is_harmful(c: char) -> bool {
    match c {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{061c}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        // Two more that break lines, and ones that are not seen at all.
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{200b}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    }
}

/// How long the escape sequence is that the text starts with. One that does not end is only its introducer, so that
/// nothing disappears that a terminal would show.
fn sequence(text: &str) -> usize {
    let mut chars = text.char_indices();
    let (introducer, start) = match (chars.next(), chars.clone().next()) {
        (Some((_, '\u{1b}')), Some((at, next))) if next.is_ascii() && !next.is_ascii_control() => {
            (next, at + 1)
        }
        (Some((_, '\u{1b}')), _) => return 1,
        (Some((_, '\u{9b}')), _) => ('[', 2),
        _ => (']', 2),
    };
    let rest = &text[start..];
    let end = match introducer {
        '[' => rest
            .char_indices()
            .find(|(_, c)| !matches!(c, '\u{20}'..='\u{3f}'))
            .filter(|(_, c)| matches!(c, '\u{40}'..='\u{7e}'))
            .map(|(at, c)| at + c.len_utf8()),
        ']' | 'P' | 'X' | '^' | '_' => ["\u{7}", "\u{1b}\\", "\u{9c}"]
            .iter()
            .filter_map(|end| rest.find(end).map(|at| at + end.len()))
            .min(),
        // The introducer and one more, as in "ESC ( B".
        '(' | ')' | '#' | ' ' => rest.chars().next().filter(char::is_ascii).map(char::len_utf8),
        _ => Some(0),
    };
    start + end.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_controls_go() {
        for (dirty, clean) in [
            ("plain äöü 漢字 🙂", "plain äöü 漢字 🙂"),
            ("two\nlines\tand a tab", "two\nlines\tand a tab"),
            ("a\r\nb\rc", "a\nbc"),
            ("\u{1b}[31mred\u{1b}[0m", "red"),
            ("\u{1b}[2J\u{1b}[1;1Hgone", "gone"),
            ("\u{1b}]0;title\u{7}x", "x"),
            ("\u{1b}]52;c;aGk=\u{1b}\\x", "x"),
            ("\u{1b}P1$r\u{9c}x", "x"),
            ("\u{9b}31mred", "red"),
            ("\u{9d}0;title\u{7}x", "x"),
            ("\u{1b}(Bx\u{1b}cy", "xy"),
            ("\u{1b}]0;never ends", "0;never ends"),
            ("\u{1b}", ""),
            ("\u{1b}[", ""),
            ("\u{1b}[31", "31"),
            ("\u{1b}[ä", "ä"),
            ("\u{1b}ä", "ä"),
            ("\u{1b}\u{1b}[31mx", "x"),
            ("a\u{8}\u{7f}\0b\u{85}c", "abc"),
            ("user\u{202e}txt.exe", "usertxt.exe"),
            ("a\u{200b}b\u{feff}c", "abc"),
        ] {
            assert_eq!(lines(dirty), clean, "{dirty:?}");
            assert_eq!(lines(&lines(dirty)), clean, "{dirty:?}");
        }
    }

    #[test]
    fn lines_are_single() {
        assert_eq!(line(" a\n\t b\u{1b}[0m  c\r\n"), "a b c");
        assert_eq!(first_line("\n  \n first  one \nsecond"), "first one");
        assert_eq!(first_line(""), "");
    }

    #[test]
    fn nothing_forges_a_log_line() {
        for (dirty, want) in [
            ("plain äöü", "plain äöü"),
            ("a\r\nERROR forged\tx", "a\\r\\nERROR forged\\tx"),
            ("\u{1b}[2Jx\u{9b}31m\u{7f}", "\\u{1b}[2Jx\\u{9b}31m\\u{7f}"),
            ("a\u{202e}b\u{2028}c", "a\\u{202e}b\\u{2028}c"),
        ] {
            assert_eq!(escaped(dirty), want);
        }
        let json = serde_json::Value::from("a\n\u{1b}\u{9b}\u{202e}\u{e0041}\u{7f}ä").to_string();
        let safe = escaped_json(&json);
        assert_eq!(safe, "\"a\\n\\u001b\\u009b\\u202e\\udb40\\udc41\\u007fä\"");
        assert_eq!(
            serde_json::from_str::<String>(&safe).unwrap(),
            serde_json::from_str::<String>(&json).unwrap()
        );
    }
}
