//! [`SourceText`]: a text that was given, fetched or read from a file, and what is known of where it came from.

use url::Url;

use super::kind::Kind;
use super::{check_text, decode, html, title_of};
use crate::error::Result;

/// A text that was taken in.
#[derive(Debug, Clone)]
pub(crate) struct SourceText {
    pub(crate) text: String,
    pub(crate) kind: Kind,
    /// Which page or file it is, if it is one: the same one replaces its older version.
    pub(crate) origin: Option<String>,
    /// Where it came from, for people.
    pub(crate) source: String,
    /// What it is called there.
    pub(crate) name: Option<String>,
    /// The address that its links are relative to.
    pub(crate) base: Option<Url>,
}

impl SourceText {
    /// A text that a caller gave, which may be said to be code.
    pub(crate) fn from_text(text: &str, is_code: bool) -> Result<SourceText> {
        let text = decode::tidy("text", text)?;
        let kind = match Kind::of_text(&text) {
            Kind::Plain | Kind::Markdown if is_code => Kind::Code,
            kind => kind,
        };
        Ok(SourceText { text, kind, origin: None, source: "text".to_owned(), name: None, base: None })
    }

    /// HTML as the text that it shows.
    pub(crate) fn readable(mut self, field: &str, max: usize) -> Result<SourceText> {
        if self.kind == Kind::Html {
            let page = html::read(&self.text, self.base.as_ref());
            self.text = page.text;
            self.name = page.title.or(self.name);
        }
        check_text(field, &self.text, max)?;
        Ok(self)
    }

    /// What it is called: the title of a page, its first heading, the name of a file, or its first words.
    pub(crate) fn title(&self) -> String {
        let heading = match self.kind {
            Kind::Markdown => self.text.lines().find_map(|line| line.trim_start().strip_prefix("# ")),
            _ => None,
        };
        let first = || self.text.lines().find(|line| !line.trim().is_empty());
        let words = |line: &str| title_of(&line.chars().take(100).collect::<String>());
        let named = || self.name.as_deref().and_then(title_of);
        let title = match self.kind {
            Kind::Html => named(),
            _ => heading.and_then(title_of).or_else(named),
        };
        title.or_else(|| first().and_then(words)).unwrap_or_else(|| "Untitled".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_is_found_for_everything() {
        let titled = |text: &str, name: Option<&str>| {
            let taken = SourceText::from_text(text, false).unwrap();
            SourceText { name: name.map(str::to_owned), ..taken }.readable("text", 1_000).unwrap().title()
        };
        assert_eq!(titled("intro\n# The book\n", Some("a.md")), "The book");
        assert_eq!(titled("<html><title>Page</title><h1>Other</h1>", Some("a.html")), "Page");
        assert_eq!(titled("some words", Some("notes.txt")), "notes.txt");
        assert_eq!(titled("\n\n first   line \nsecond", None), "first line");
        assert_eq!(titled("\u{1b}\u{8}", None), "Untitled");
    }
}
