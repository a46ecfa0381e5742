//! Names: under which name an entry of a server is offered, and whose it is.
//!
//! A name is a row of a table, never something to take apart again. How it comes about is fixed, so that the same
//! configuration and the same servers give the same names: the prefix and the server's own name, or the name that the
//! configuration gives; then what models' interfaces refuse is replaced, then it is made to fit, then a name that is
//! taken gets a suffix. Servers come in the order of the configuration.

use std::borrow::Cow;
use std::collections::HashMap;

use bytestring::ByteString;
use sha2::{Digest, Sha256};
use tidegate_config::NameStyle;

/// Letters of a digest that tell names apart.
const MARK: usize = 8;

/// Hands out names and remembers which are taken.
#[derive(Debug)]
pub(crate) struct Names {
    style: NameStyle,
    /// How long names may be that had to be changed.
    length: usize,
    taken: HashMap<ByteString, ByteString>,
    /// A sentence for each name that could not stay as it was.
    pub(crate) reports: Vec<String>,
}

impl Names {
    pub(crate) fn new(style: NameStyle, length: usize) -> Names {
        Names { style, length, taken: HashMap::new(), reports: Vec::new() }
    }

    /// Keeps a name for the gateway itself.
    pub(crate) fn reserve(&mut self, name: &'static str) {
        self.taken.insert(name.into(), "tidegate".into());
    }

    /// The name for what `server` calls `own`; `wished` is the one that the configuration gives it, without a prefix.
    pub(crate) fn give(&mut self, server: &str, prefix: &str, own: &str, wished: Option<&str>) -> ByteString {
        let whole = wished.map_or_else(|| format!("{prefix}{own}"), str::to_owned);
        let name = match self.style {
            NameStyle::Portable => portable(&whole),
            NameStyle::Exact => Cow::Borrowed(whole.as_str()),
        };
        let mut name = match self.style {
            NameStyle::Portable if name.len() > self.length => shortened(&name, &whole, self.length),
            _ => name.into_owned(),
        };
        if name != whole {
            self.report(format!(
                "{own:?} of {server:?} is offered as {name:?}: {whole:?} is no name that all models take"
            ));
        }
        let mut tries = 0;
        while let Some(owner) = self.taken.get(name.as_str()) {
            let marked = shortened(&name, &format!("{server}\0{own}\0{tries}"), self.length);
            let what =
                format!("{own:?} of {server:?} is offered as {marked:?}: {name:?} is taken by {owner:?}");
            self.report(what);
            name = marked;
            tries += 1;
        }
        let name = ByteString::from(name);
        self.taken.insert(name.clone(), server.into());
        name
    }

    fn report(&mut self, what: String) {
        self.reports.push(what);
    }
}

/// With only the characters that models' interfaces take: letters, digits, `_` and `-`.
fn portable(name: &str) -> Cow<'_, str> {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !name.is_empty() && name.chars().all(fits) {
        return Cow::Borrowed(name);
    }
    let replaced: String = name.chars().map(|c| if fits(c) { c } else { '_' }).collect();
    Cow::Owned(if replaced.is_empty() { "_".to_owned() } else { replaced })
}

/// Cut to length, with a mark that depends on `whole` so that different names stay different.
fn shortened(name: &str, whole: &str, length: usize) -> String {
    let digest = Sha256::digest(whole);
    let mark: String = digest.iter().take(MARK / 2).map(|byte| format!("{byte:02x}")).collect();
    let mut end = name.len().min(length - MARK - 1);
    while !name.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}_{mark}", &name[..end])
}

#[cfg(test)]
mod tests {
    use tidegate_config::{LONGEST_NAMES, ROOMY_NAMES};

    use super::*;

    #[test]
    fn names_are_prefixed_and_else_left_alone() {
        let mut names = Names::new(NameStyle::Portable, LONGEST_NAMES);
        assert_eq!(names.give("gh", "gh_", "create_issue", None), "gh_create_issue");
        assert_eq!(names.give("gh", "gh_", "old", Some("new")), "new");
        assert_eq!(names.give("echo", "", "echo", None), "echo");
        assert!(names.reports.is_empty(), "{:?}", names.reports);
    }

    #[test]
    fn what_models_refuse_is_replaced_and_reported() {
        let mut names = Names::new(NameStyle::Portable, LONGEST_NAMES);
        assert_eq!(names.give("s", "s_", "a.b/c d", None), "s_a_b_c_d");
        let long = "x".repeat(100);
        let short = names.give("s", "s_", &long, None);
        assert_eq!(short.len(), LONGEST_NAMES);
        assert!(short.starts_with("s_xxx"));
        assert_eq!(names.reports.len(), 2);
        let mut again = Names::new(NameStyle::Portable, LONGEST_NAMES);
        assert_eq!(again.give("s", "s_", &long, None), short, "the same each time");
        let mut exact = Names::new(NameStyle::Exact, LONGEST_NAMES);
        assert_eq!(exact.give("s", "", "a.b/c", None), "a.b/c");
    }

    #[test]
    fn names_leave_room_where_that_is_wanted() {
        let own = "a_tool_that_does_something_in_a_few_words_more";
        let mut usual = Names::new(NameStyle::Portable, LONGEST_NAMES);
        assert_eq!(usual.give("s", "s_", own, None), format!("s_{own}"), "as it was always called");
        let mut roomy = Names::new(NameStyle::Portable, ROOMY_NAMES);
        assert_eq!(roomy.give("s", "s_", own, None), format!("s_{own}"), "48 are not too many");
        let short = roomy.give("server", "server_", own, None);
        assert!(short.len() == ROOMY_NAMES && short.starts_with("server_a_tool_that"), "{short}");
        let other = roomy.give("server", "server_", &format!("{own}_again"), None);
        assert!(other.len() == ROOMY_NAMES && other != short, "{other}");
    }

    #[test]
    fn names_that_collide_get_a_mark() {
        let mut names = Names::new(NameStyle::Portable, LONGEST_NAMES);
        assert_eq!(names.give("a", "", "echo", None), "echo");
        let other = names.give("b", "", "echo", None);
        assert!(other.starts_with("echo_") && other.len() == 13, "{other}");
        let third = names.give("c", "", "echo", None);
        assert_ne!(other, third);
        assert!(names.reports[0].contains("taken by \"a\""), "{:?}", names.reports);
        // Two names that differ only in what was replaced are still two.
        let (dot, slash) = (names.give("d", "", "x.y", None), names.give("d", "", "x/y", None));
        assert_eq!(dot, "x_y");
        assert_ne!(dot, slash);
    }
}
