//! A short piece of what a program has printed, fit for a log line or an error message.

use tidegate_protocol::text;
use tidegate_service::secrets::mask;

/// How many characters are shown.
const MOST: usize = 200;

/// The beginning of a line, on one line and without anything that a terminal obeys.
pub(super) fn excerpt(line: &[u8]) -> String {
    excerpt_of(line, MOST)
}

/// The same with at most so many characters.
pub(super) fn excerpt_of(line: &[u8], most: usize) -> String {
    // Before anything of it is left out: half of a secret is not recognised.
    let text = String::from_utf8_lossy(line);
    let text = mask(&text);
    let text = text::lines(text.trim());
    let mut shown = text.chars().filter(|c| !c.is_control());
    let mut excerpt: String = shown.by_ref().take(most).collect();
    if shown.next().is_some() {
        excerpt.push('…');
    }
    excerpt
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_and_plain() {
        assert_eq!(excerpt(b" a\x1b[2J\tb\xff \r"), "ab\u{fffd}");
        assert_eq!(excerpt("é".repeat(200).as_bytes()), "é".repeat(200));
        assert_eq!(excerpt("é".repeat(201).as_bytes()), "é".repeat(200) + "…");
        assert_eq!(excerpt("x".repeat(5000).as_bytes()).chars().count(), 201);
        tidegate_service::secrets::register("sk-excerpt\u{1}-0001");
        let line = format!("{}sk-excerpt\u{1}-0001", "x".repeat(190));
        assert_eq!(excerpt(line.as_bytes()), "x".repeat(190) + "***");
    }
}
