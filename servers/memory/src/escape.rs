//! Texts as they stand in addresses.

use std::fmt::Write;

/// A text as it may stand in an address, whatever is in it: only what can mean nothing else stays as it is.
pub(crate) fn escaped(text: &str) -> String {
    escaped_but(text, "")
}

/// The same, and these characters stay as they are, too.
pub(crate) fn escaped_but(text: &str, plain: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                escaped.push(char::from(byte))
            }
            _ if plain.as_bytes().contains(&byte) => escaped.push(char::from(byte)),
            _ => _ = write!(escaped, "%{byte:02X}"),
        }
    }
    escaped
}

/// The text that is written so in an address, or what is wrong with it.
pub(crate) fn unescaped(text: &str) -> Result<String, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let (byte, next) = match (first, after) {
            (b'%', [high, low, next @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                (digit(*high) << 4 | digit(*low), next)
            }
            (b'%', _) => {
                let shown: String = String::from_utf8_lossy(rest).chars().take(3).collect();
                return Err(format!("{shown:?} in it is no escaped byte: a percent sign is written %25"));
            }
            (other, next) => (other, next),
        };
        bytes.push(byte);
        rest = next;
    }
    String::from_utf8(bytes).map_err(|_| "the escaped bytes in it are no text in UTF-8".to_owned())
}

/// The value of a hexadecimal digit.
fn digit(digit: u8) -> u8 {
    match digit {
        b'0'..=b'9' => digit - b'0',
        letter => (letter | 0x20) - b'a' + 10,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_comes_back() {
        assert_eq!(escaped("Ann-1_b.c~"), "Ann-1_b.c~");
        assert_eq!(escaped("a b/ü"), "a%20b%2F%C3%BC");
        assert_eq!(escaped_but("a@b|c", "@"), "a@b%7Cc");
        for text in ["", "100%", "%41", "a/b?c#d&e=f", "日本 🦀", "../..", "a+b", "\"<>\\^`{|}"] {
            assert_eq!(unescaped(&escaped(text)).as_deref(), Ok(text));
        }
        assert_eq!(unescaped("%c3%BC+").as_deref(), Ok("ü+"));
    }

    #[test]
    fn what_is_no_escape_is_said() {
        for (bad, shown) in [("100%", "\"%\""), ("%zz", "\"%zz\""), ("a%4", "\"%4\""), ("%ü", "%ü")] {
            let why = unescaped(bad).unwrap_err();
            assert!(why.contains(shown) && why.contains("%25"), "{why}");
        }
        assert!(unescaped("%FF").unwrap_err().contains("UTF-8"));
    }
}
