//! [`Selection`]: what a rule is about.
//!
//! A pattern is for names of tools, unless it says otherwise: `prompt:review_*`, `resource:docs://*`, `method:vendor/*`,
//! `page:/memory`. `*` alone is everything of every kind, but for [pages of operators](Object::OPERATORS), which a rule has to name (`page:/api/*`, `page:*`) to allow them.

use crate::address::Spellings;
use tidegate_service::nearest_name;

use crate::object::{Object, ObjectKind};
use crate::patterns::Patterns;

/// What a rule is about.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Selection {
    /// Whether it is about everything.
    pub(crate) is_all: bool,
    /// Patterns by kind.
    by_kind: [Patterns; ObjectKind::COUNT],
    /// Only of these servers.
    servers: Option<Patterns>,
}

impl Selection {
    /// Reads patterns; says what is wrong with one of them.
    pub(crate) fn new(texts: &[String], servers: Option<Patterns>) -> Result<Selection, String> {
        let mut sorted: [Vec<String>; ObjectKind::COUNT] = Default::default();
        let mut is_all = false;
        for text in texts {
            if text.trim().is_empty() {
                return Err("has an empty pattern: \"*\" is everything".to_owned());
            }
            if text == "*" {
                is_all = true;
                continue;
            }
            if let Some(rest) = text.strip_prefix('!') {
                return Err(format!(
                    "has {text:?}, and a pattern cannot be negated: put {rest:?} into a rule of its own"
                ));
            }
            if text.contains(char::is_whitespace) {
                return Err(format!("has {text:?}, and no name has a space in it"));
            }
            if let Some(word) = unknown_kind(text) {
                let meant = nearest_name(word, ObjectKind::ALL.map(ObjectKind::as_str));
                let hint = meant.map_or(String::new(), |meant| format!("; did you mean {meant:?}?"));
                let kinds = ObjectKind::ALL.map(|kind| format!("{}:", kind.as_str())).join(", ");
                return Err(format!(
                    "has {text:?}, and there is no kind {word:?}{hint} A pattern begins with one of {kinds} or with the name of a tool"
                ));
            }
            let (kind, pattern) = kind_of(text);
            if pattern.is_empty() {
                return Err(format!("has {text:?} without a name behind it: \"{text}*\" is all of them"));
            }
            sorted[kind.index()].push(pattern.to_owned());
        }
        let mut by_kind: [Patterns; ObjectKind::COUNT] = Default::default();
        for (patterns, texts) in by_kind.iter_mut().zip(sorted) {
            *patterns = Patterns::new(texts.iter().map(String::as_str)).map_err(|error| {
                let text = texts.get(error.index).map(String::as_str).unwrap_or_default();
                format!("has {text:?}, which is not a valid glob: {}", error.reason)
            })?;
        }
        Ok(Selection { is_all, by_kind, servers })
    }

    /// The kinds that it can be about.
    pub(crate) fn kinds(&self) -> impl Iterator<Item = ObjectKind> + '_ {
        let is_there = |kind: &ObjectKind| self.is_all || !self.by_kind[kind.index()].is_empty();
        // A page has no server.
        ObjectKind::ALL
            .into_iter()
            .filter(is_there)
            .filter(|kind| *kind != ObjectKind::Page || self.servers.is_none())
    }

    /// Whether it can be about something of a kind of a server.
    pub(crate) fn is_about(&self, kind: ObjectKind, server: &str) -> bool {
        let is_of_server = self.servers.as_ref().is_none_or(|servers| servers.matches(server));
        is_of_server && (self.is_all || !self.by_kind[kind.index()].is_empty())
    }

    /// Whether it is about all of a kind, of the servers that it is about.
    pub(crate) fn is_all_of(&self, kind: ObjectKind) -> bool {
        self.is_all || is_everything(&self.by_kind[kind.index()])
    }

    /// Why it is not about an object, in words.
    pub(crate) fn why_not(&self, object: &Object<'_>) -> String {
        let is_of_server = self.servers.as_ref().is_none_or(|servers| servers.matches(object.server));
        let what = format!("the {} {:?}", object.kind.as_str(), object.name);
        match object.kind {
            _ if !is_of_server && object.server.is_empty() => {
                format!("it is for certain servers, and {what} has none")
            }
            _ if !is_of_server => format!("it is for other servers than {:?}", object.server),
            ObjectKind::Resource if Spellings::of(object.name).may_lead_elsewhere => {
                format!("{what} has dots in its path, and may lead elsewhere")
            }
            _ => format!("it is not about {what}"),
        }
    }

    /// Whether it is about an object. `denies` says what is meant to come of it: see [`address`](crate::address).
    pub(crate) fn matches(&self, object: &Object<'_>, denies: bool) -> bool {
        if self.servers.as_ref().is_some_and(|servers| !servers.matches(object.server)) {
            return false;
        }
        let patterns = &self.by_kind[object.kind.index()];
        if is_everything(patterns) || self.is_all && (denies || !is_of_operators(object)) {
            return true;
        }
        if patterns.is_empty() {
            return false;
        }
        // Longer names are nobody's, and looking at them takes time.
        if object.name.len() > LONGEST_NAME {
            return denies;
        }
        if object.kind != ObjectKind::Resource {
            return patterns.matches(object.name);
        }
        let spellings = Spellings::of(object.name);
        match denies {
            true => spellings.may_be(|one| patterns.matches(one)),
            false => !spellings.may_lead_elsewhere && spellings.all.iter().all(|one| patterns.matches(one)),
        }
    }

    /// Whether this is about everything that another is about, as far as that can be told from the patterns.
    pub(crate) fn covers(&self, other: &Selection) -> bool {
        let servers = match (&self.servers, &other.servers) {
            (None, _) => true,
            (Some(own), Some(others)) => others.iter().all(|other| covered(own, other)),
            (Some(_), None) => false,
        };
        let covers = |kind: usize| other.by_kind[kind].iter().all(|text| covered(&self.by_kind[kind], text));
        servers && (self.is_all || !other.is_all && (0..ObjectKind::COUNT).all(covers))
    }
}

/// A word before a colon that looks like a kind and is none.
fn unknown_kind(text: &str) -> Option<&str> {
    let (word, _) = text.split_once(':')?;
    let is_word = !word.is_empty() && word.chars().all(|c| c.is_ascii_alphabetic());
    (is_word && !ObjectKind::ALL.iter().any(|kind| kind.as_str() == word)).then_some(word)
}

/// The pattern for names of tools that a text is, if it is one and not for everything.
pub(crate) fn tool_pattern(text: &str) -> Option<&str> {
    let (kind, pattern) = kind_of(text);
    (kind == ObjectKind::Tool && pattern != "*").then_some(pattern)
}

/// The kind of a pattern, and the pattern itself.
fn kind_of(text: &str) -> (ObjectKind, &str) {
    let said = ObjectKind::ALL.into_iter().find_map(|kind| {
        let pattern = text.strip_prefix(kind.as_str())?.strip_prefix(':')?;
        Some((kind, pattern))
    });
    said.unwrap_or((ObjectKind::Tool, text))
}

/// Whether it is a part of the admin API: what all callers do, and what changes the gateway.
fn is_of_operators(object: &Object<'_>) -> bool {
    object.kind == ObjectKind::Page && object.server == Object::OPERATORS
}

fn is_everything(patterns: &Patterns) -> bool {
    patterns.iter().any(|text| text == "*")
}

/// The longest name or address that rules look at.
const LONGEST_NAME: usize = 8 * 1024;

/// Whether what one pattern matches is matched by one of others. Only stars are understood: they match whatever stands in the
/// place of a star.
fn covered(patterns: &Patterns, text: &str) -> bool {
    let is_plain = |text: &String| is_plain(text);
    patterns.iter().any(|pattern| pattern == text)
        || self::is_plain(text) && patterns.iter().all(is_plain) && patterns.matches(text)
}

fn is_plain(text: &str) -> bool {
    !text.contains(['?', '[', ']', '{', '}', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(texts: &[&str]) -> Selection {
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        Selection::new(&texts, None).unwrap()
    }

    fn matches(texts: &[&str], kind: ObjectKind, name: &str) -> [bool; 2] {
        let object = Object { kind, name, server: "s" };
        [false, true].map(|denies| selection(texts).matches(&object, denies))
    }

    #[test]
    fn patterns_are_for_tools_unless_they_say_otherwise() {
        use ObjectKind::*;
        for (texts, kind, name, expected) in [
            (&["git_*"][..], Tool, "git_log", true),
            (&["git_*"], Prompt, "git_log", false),
            (&["tool:git_*"], Tool, "git_log", true),
            (&["prompt:git_*"], Prompt, "git_log", true),
            (&["prompt:git_*"], Tool, "git_log", false),
            (&["*"], Page, "/", true),
            (&["tool:*"], Prompt, "x", false),
            (&["tool:*"], Tool, "x", true),
            (&["method:vendor/*"], Method, "vendor/x", true),
            (&["resource:docs://*"], Resource, "docs://a/b", true),
            (&["page:/memory"], Page, "/memory", true),
            (&["page:/memory"], Page, "/", false),
        ] {
            assert_eq!(matches(texts, kind, name), [expected; 2], "{texts:?} {kind:?} {name}");
        }
    }

    #[test]
    fn an_address_is_allowed_only_if_each_spelling_is_and_denied_if_one_is() {
        use ObjectKind::Resource;
        let public = &["resource:file:///public/*"][..];
        assert_eq!(matches(public, Resource, "file:///public/a"), [true, true]);
        assert_eq!(matches(public, Resource, "file:///public/../etc/passwd"), [false, true]);
        assert_eq!(matches(public, Resource, "file:///public/%2e%2e/etc"), [false, true]);
        let secret = &["resource:file:///secret/*"][..];
        assert_eq!(matches(secret, Resource, "FILE:///secret/a"), [false, true]);
        assert_eq!(matches(secret, Resource, "file:///%73ecret/a"), [false, true]);
        assert_eq!(matches(secret, Resource, "file:////secret//a"), [false, true]);
        assert_eq!(matches(secret, Resource, "file:///open/a"), [false, false]);
        assert_eq!(matches(&["resource:*"], Resource, "file:///a/../b"), [true, true]);
    }

    #[test]
    fn what_covers_what() {
        for (one, other, covers) in [
            (&["*"][..], &["prompt:x", "git_*"][..], true),
            (&["git_*"], &["git_get_*"], true),
            (&["git_*"], &["git_log", "git_x"], true),
            (&["git_get_*"], &["git_*"], false),
            (&["git_*"], &["prompt:git_x"], false),
            (&["git_?"], &["git_x"], false),
            (&["git_?"], &["git_?"], true),
            (&["tool:*"], &["*"], false),
        ] {
            assert_eq!(selection(one).covers(&selection(other)), covers, "{one:?} {other:?}");
        }
    }

    #[test]
    fn bad_patterns_are_named() {
        for (text, said) in [
            ("", "empty pattern"),
            ("prompt:", "\"prompt:*\""),
            ("a[", "not a valid glob"),
            ("resources:demo://*", "did you mean \"resource\"?"),
            ("prompts:*", "did you mean \"prompt\"?"),
            ("!git_push", "cannot be negated"),
            ("tool : x", "no name has a space"),
        ] {
            let error = Selection::new(&[text.to_owned()], None).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
    }
}
