//! Breaking lines at words, counted in columns of the terminal.

use unicode_width::UnicodeWidthStr;

/// How many columns a text takes.
pub(crate) fn columns(text: &str) -> usize {
    text.width()
}

/// The lines of a text, none wider than `width` unless a single word is. Line breaks of the text stay.
pub(crate) fn wrap(text: &str, width: Option<usize>) -> Vec<String> {
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        match width {
            Some(width) if columns(paragraph) > width => break_up(paragraph, width, &mut lines),
            _ => lines.push(paragraph.to_owned()),
        }
    }
    if lines.is_empty() {
        lines.push(String::new());
    }
    lines
}

fn break_up(paragraph: &str, width: usize, lines: &mut Vec<String>) {
    let mut line = String::new();
    for word in paragraph.split_whitespace() {
        if !line.is_empty() && columns(&line) + 1 + columns(word) > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    lines.push(line);
}

/// Puts `indent` before each line of a text, wrapped so that it all fits.
pub(crate) fn indented(text: &str, indent: &str, width: Option<usize>) -> String {
    let inner = width.map(|width| width.saturating_sub(columns(indent)).max(MIN_WIDTH));
    let lines: Vec<String> = wrap(text, inner)
        .into_iter()
        .map(|line| if line.is_empty() { line } else { format!("{indent}{line}") })
        .collect();
    lines.join("\n")
}

/// Narrower columns are unreadable; then the terminal may break the line.
pub(crate) const MIN_WIDTH: usize = 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn term_wrapping() {
        assert_eq!(wrap("one two three", Some(7)), ["one two", "three"]);
        assert_eq!(wrap("one two three", None), ["one two three"]);
        assert_eq!(wrap("a\n\nb", Some(80)), ["a", "", "b"]);
        assert_eq!(wrap("unbreakable x", Some(4)), ["unbreakable", "x"]);
        assert_eq!(wrap("漢字 漢字", Some(5)), ["漢字", "漢字"]);
        assert_eq!(wrap("", Some(5)), [""]);
        assert_eq!(indented("a\n\nb", "  ", None), "  a\n\n  b");
    }
}
