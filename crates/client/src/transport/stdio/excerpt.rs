//! A short piece of what a program has printed, fit for a log line or an error message.

use tidegate_protocol::text;

/// How many characters are shown.
const MOST: usize = 200;

/// The beginning of a line, on one line and without anything that a terminal obeys.
pub(super) fn excerpt(line: &[u8]) -> String {
    excerpt_of(line, MOST)
}

/// The same with at most so many characters.
pub(super) fn excerpt_of(line: &[u8], most: usize) -> String {
    // No character has more than four bytes.
    let text = String::from_utf8_lossy(&line[..line.len().min(4 * (most + 1))]);
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
    }
}
