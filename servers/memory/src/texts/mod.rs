//! Texts: from bytes of any origin to chunks that can be found. Nothing here knows of a store or of a server.
//!
//! [`fetch`] and [`file`] bring bytes, [`decode`] makes text of them, [`html`] what a page shows, [`kind`] says what kind of
//! text it is, and [`chunk`] cuts it.

pub(crate) mod chunk;
pub(crate) mod decode;
mod fetch;
pub(crate) mod file;
mod html;
pub(crate) mod kind;
mod source;

use crate::error::{Fault, Result};

pub(crate) use fetch::Fetcher;
pub(crate) use source::SourceText;

/// How large a document may be if nothing else is said, in bytes.
pub(crate) const MAX_BYTES: usize = 10_000_000;
/// Longest title, in characters.
pub(crate) const MAX_TITLE: usize = 200;

/// As much of what was given as fits in a sentence.
pub(crate) fn abbreviated(given: &str) -> String {
    given.chars().take(80).collect()
}

/// A title out of any text: its first words, on one line.
pub(crate) fn title_of(text: &str) -> Option<String> {
    let text = text.chars().filter(|c| c.is_whitespace() || !c.is_control()).collect::<String>();
    let words: Vec<_> = text.split_whitespace().collect();
    let title: String = words.join(" ").chars().take(MAX_TITLE).collect();
    let title = title.trim().to_owned();
    (!title.is_empty()).then_some(title)
}

/// A text that says something and is not too long.
pub(crate) fn check_text(field: &str, text: &str, max: usize) -> Result<()> {
    if text.len() > max {
        return Err(file::too_large(field, max));
    }
    match text.trim().is_empty() {
        true => Err(Fault::input(field, "has no text")),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_fit_on_a_line() {
        assert_eq!(title_of(" a\n\u{7} b  "), Some("a b".to_owned()));
        assert_eq!(title_of("\n "), None);
        assert_eq!(title_of(&"ü".repeat(500)).unwrap().chars().count(), MAX_TITLE);
    }
}
