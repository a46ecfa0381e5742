//! [`Patterns`]: globs on the names of tools.

use std::fmt;
use std::ops::Deref;

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// Patterns such as `read_*` or `{get,list}_*`, compiled. No pattern matches nothing. As a slice they are the texts.
#[derive(Clone, Default)]
pub struct Patterns {
    texts: Vec<String>,
    /// Those that stand for themselves: comparing a few costs a fraction of what the set does.
    names: Vec<String>,
    /// The others, if there are any.
    set: Option<GlobSet>,
}

/// What makes a pattern more than a name.
const SPECIAL: [char; 9] = ['*', '?', '[', ']', '{', '}', '\\', '!', ','];

/// From how many on the set is quicker.
const MANY: usize = 16;

impl Patterns {
    /// Compiles patterns: `*` and `?` stand for any characters, `[a-z]` for one of these, `{a,b}` for either. A
    /// backslash takes the meaning away from the character behind it.
    pub fn new(texts: impl IntoIterator<Item = impl Into<String>>) -> Result<Patterns, PatternError> {
        let texts: Vec<String> = texts.into_iter().map(Into::into).collect();
        let (mut builder, mut names, mut is_set) = (GlobSetBuilder::new(), Vec::new(), false);
        for (index, text) in texts.iter().enumerate() {
            if names.len() < MANY && !text.contains(SPECIAL) {
                names.push(text.clone());
                continue;
            }
            is_set = true;
            let wrong = |error: globset::Error| PatternError { index, reason: error.kind().to_string() };
            builder.add(GlobBuilder::new(text).backslash_escape(true).build().map_err(wrong)?);
        }
        let set =
            builder.build().map_err(|error| PatternError { index: 0, reason: error.kind().to_string() })?;
        Ok(Patterns { texts, names, set: is_set.then_some(set) })
    }

    /// The pattern that matches this name and no other.
    pub fn exact(name: &str) -> String {
        let special = |c: char| SPECIAL.contains(&c);
        name.chars().flat_map(|c| special(c).then_some('\\').into_iter().chain([c])).collect()
    }

    /// Whether any of them matches.
    pub fn matches(&self, name: &str) -> bool {
        self.names.iter().any(|known| known == name)
            || self.set.as_ref().is_some_and(|set| set.is_match(name))
    }
}

impl Deref for Patterns {
    type Target = [String];

    fn deref(&self) -> &[String] {
        &self.texts
    }
}

impl fmt::Debug for Patterns {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.texts.fmt(f)
    }
}

impl PartialEq for Patterns {
    fn eq(&self, other: &Patterns) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Patterns {}

/// A pattern that is none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PatternError {
    /// Which of them, counted from 0.
    pub index: usize,
    /// What is wrong with it.
    pub reason: String,
}

impl fmt::Display for PatternError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "pattern {} is not a valid glob: {}", self.index + 1, self.reason)
    }
}

impl std::error::Error for PatternError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_whole_names() {
        for (pattern, name, fits) in [
            ("read_*", "read_file", true),
            ("read_*", "unread_file", false),
            ("*", "a/b.c", true),
            ("{get,list}_?", "list_x", true),
            ("[a-c]", "d", false),
            (r"a\*", "a*", true),
            (r"a\*", "ab", false),
            ("Read", "read", false),
        ] {
            assert_eq!(Patterns::new([pattern]).unwrap().matches(name), fits, "{pattern} {name}");
        }
        assert!(!Patterns::default().matches("anything"));
        for name in ["read_file", "a*b?[c]{d,e}\\!", "a/b.c"] {
            assert!(Patterns::new([Patterns::exact(name)]).unwrap().matches(name), "{name}");
        }
        assert!(!Patterns::new([Patterns::exact("a*")]).unwrap().matches("ab"));
        assert_eq!(Patterns::new(["a", "b*"]).unwrap().to_vec(), ["a", "b*"]);
        let many = Patterns::new((0..2 * MANY).map(|n| format!("name{n}"))).unwrap();
        assert!((0..2 * MANY).all(|n| many.matches(&format!("name{n}"))));
        assert!(!many.matches("name") && !many.matches("name32") && !many.matches("Name1"));
    }

    #[test]
    fn a_pattern_that_is_none_is_named_by_its_place() {
        let error = Patterns::new(["fine", "a[", "{"]).unwrap_err();
        assert_eq!(error.index, 1);
        assert!(error.to_string().starts_with("pattern 2 is not a valid glob: "), "{error}");
    }
}
