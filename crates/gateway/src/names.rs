//! Names: under which name an entry of a server is offered, and whose it is.
//!
//! A name is a row of a table, never something to take apart again. How it comes about is fixed, so that the same
//! configuration and the same servers give the same names, whichever server answers first:
//!
//! 1. the name that the configuration gives, or the prefix and the server's own name,
//! 2. in which characters that models' interfaces refuse are replaced, and which is cut if it is too long;
//! 3. a name that is taken becomes `<server>_<name>`, then `<server>_<name>_2` and so on.
//!
//! Names that the configuration gives come first, then servers with longer prefixes, then servers in the order of the
//! configuration; what nobody has approved yet (`pin = "locked"`) comes after all that is on offer. While it is not known
//! what a server lists, whatever comes after it and could have one of its names is offered under the names of step 3.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use sha2::{Digest, Sha256};
use tidegate_config::NameStyle;

/// Letters of a digest that tell names apart which had to be cut.
const MARK: usize = 8;

/// Hands out names and remembers which are taken.
#[derive(Debug)]
pub(crate) struct Names {
    style: NameStyle,
    /// How long names may be that had to be changed.
    length: usize,
    /// The server of each name.
    taken: HashMap<ByteString, ByteString>,
    /// The names that the configuration gives: to which server, and to what it calls how.
    given: HashMap<String, (String, String)>,
    /// From which number on there may be a free one, by what the number follows.
    numbers: HashMap<String, usize>,
    /// Servers that are said to wait for another.
    waiting: HashSet<String>,
    /// A sentence for each name that could not stay as it was.
    pub(crate) reports: Vec<Report>,
}

/// A sentence about something that a server lists.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Report {
    pub(crate) server: String,
    pub(crate) sentence: String,
}

impl Report {
    pub(crate) fn new(server: &str, sentence: String) -> Report {
        Report { server: server.to_owned(), sentence }
    }
}

/// Whose names are handed out.
pub(crate) struct Owner<'a> {
    pub(crate) server: &'a str,
    pub(crate) prefix: &'a str,
    /// Servers before it of which nobody knows yet what they list, each with its prefix.
    pub(crate) unknown: Vec<(&'a str, &'a str)>,
}

/// Something to be named: what its server calls it, and the name that the configuration gives it.
pub(crate) struct Unnamed<'a> {
    pub(crate) own: &'a str,
    pub(crate) given: Option<&'a str>,
}

impl Names {
    pub(crate) fn new(style: NameStyle, length: usize) -> Names {
        Names {
            style,
            length,
            taken: HashMap::new(),
            given: HashMap::new(),
            numbers: HashMap::new(),
            waiting: HashSet::new(),
            reports: Vec::new(),
        }
    }

    /// Keeps a name for the gateway itself.
    pub(crate) fn reserve(&mut self, name: &'static str) {
        self.taken.insert(name.into(), "tidegate".into());
    }

    /// Keeps a name that the configuration gives. The first one to be given it keeps it.
    pub(crate) fn keep(&mut self, server: &str, own: &str, name: &str) {
        let whose = || (server.to_owned(), own.to_owned());
        self.given.entry(name.to_owned()).or_insert_with(whose);
    }

    /// The names for what a server lists. They do not depend on the order of its list.
    pub(crate) fn give(&mut self, owner: &Owner<'_>, entries: &[Unnamed<'_>]) -> Vec<ByteString> {
        let mut names: Vec<Option<ByteString>> = vec![None; entries.len()];
        let mut rest = Vec::new();
        for (at, entry) in entries.iter().enumerate() {
            let whole = whole(owner, entry);
            if self.fitted(&whole) == whole && self.obstacle(owner, entry, &whole).is_none() {
                names[at] = Some(self.take(owner, whole));
            } else {
                rest.push(at);
            }
        }
        rest.sort_by_key(|&at| entries[at].own);
        for at in rest {
            names[at] = Some(self.another(owner, &entries[at]));
        }
        names.into_iter().map(Option::unwrap_or_default).collect()
    }

    /// A name for an entry that cannot have the one that it would have.
    fn another(&mut self, owner: &Owner<'_>, entry: &Unnamed<'_>) -> ByteString {
        let whole = whole(owner, entry);
        let name = self.fitted(&whole).into_owned();
        let (server, own) = (owner.server, entry.own);
        let Some(obstacle) = self.obstacle(owner, entry, &name) else {
            self.report(
                server,
                format!(
                    "{own:?} of {server:?} is offered as {name:?}: not every model accepts the name {whole:?}"
                ),
            );
            return self.take(owner, name);
        };
        let qualified = self.fitted(&format!("{server}_{own}")).into_owned();
        let other = self.numbered(owner, entry, &qualified);
        match obstacle {
            Obstacle::Taken(by) => self.report(
                server,
                format!(
                    "{own:?} of {server:?} is offered as {other:?}: the name {name:?} is already used by {by:?}"
                ),
            ),
            // Said once, because it may be about all that the server has.
            Obstacle::Unknown(before) => {
                if self.waiting.insert(server.to_owned()) {
                    let what = format!(
                        "names of {server:?} begin with \"{server}_\" until {before:?} has answered, which may have the same \
                         names"
                    );
                    self.report(server, what);
                }
            }
        }
        self.take(owner, other)
    }

    /// Notes something that people should know about a server.
    pub(crate) fn report(&mut self, server: &str, sentence: String) {
        self.reports.push(Report::new(server, sentence));
    }

    /// The name, or the name with the first number that is free.
    fn numbered(&mut self, owner: &Owner<'_>, entry: &Unnamed<'_>, name: &str) -> String {
        if self.is_free(owner, entry, name) {
            return name.to_owned();
        }
        let mut number = self.numbers.get(name).copied().unwrap_or(2);
        loop {
            let suffix = format!("_{number}");
            let room = match self.style {
                NameStyle::Portable => self.length - suffix.len(),
                NameStyle::Exact => name.len(),
            };
            let candidate = format!("{}{suffix}", start(name, room));
            number += 1;
            if self.is_free(owner, entry, &candidate) {
                self.numbers.insert(name.to_owned(), number);
                return candidate;
            }
        }
    }

    /// Why an entry cannot have this name.
    fn obstacle(&self, owner: &Owner<'_>, entry: &Unnamed<'_>, name: &str) -> Option<Obstacle> {
        if let Some(by) = self.taken.get(name) {
            return Some(Obstacle::Taken(by.to_string()));
        }
        match self.given.get(name) {
            // It is the entry's own, and nobody else gets it, whatever they list.
            Some((server, own)) if server == owner.server && own == entry.own => return None,
            Some((server, _)) => return Some(Obstacle::Taken(server.clone())),
            None => {}
        }
        let qualified = format!("{}_{}", owner.server, entry.own);
        let unknown = owner.unknown.iter().filter(|_| name != self.fitted(&qualified));
        let mut could = unknown.filter(|(_, prefix)| name.starts_with(prefix));
        could.next().map(|(server, _)| Obstacle::Unknown((*server).to_owned()))
    }

    fn is_free(&self, owner: &Owner<'_>, entry: &Unnamed<'_>, name: &str) -> bool {
        let mine = |(server, own): &(String, String)| server == owner.server && own == entry.own;
        !self.taken.contains_key(name) && self.given.get(name).is_none_or(mine)
    }

    fn take(&mut self, owner: &Owner<'_>, name: String) -> ByteString {
        let name = ByteString::from(name);
        self.taken.insert(name.clone(), owner.server.into());
        name
    }

    /// The name as it may be offered.
    fn fitted<'a>(&self, whole: &'a str) -> Cow<'a, str> {
        match self.style {
            NameStyle::Exact => Cow::Borrowed(whole),
            NameStyle::Portable => match portable(whole) {
                name if name.len() > self.length => Cow::Owned(shortened(&name, whole, self.length)),
                name => name,
            },
        }
    }
}

/// Why a name cannot be had.
enum Obstacle {
    /// This server has it.
    Taken(String),
    /// This server may have it, and nobody knows yet.
    Unknown(String),
}

/// The name that an entry would have if it were the only one.
fn whole(owner: &Owner<'_>, entry: &Unnamed<'_>) -> String {
    entry.given.map_or_else(|| format!("{}{}", owner.prefix, entry.own), str::to_owned)
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
    format!("{}_{mark}", start(name, length - MARK - 1))
}

/// The beginning of a text, at most so many bytes.
fn start(text: &str, most: usize) -> &str {
    let mut end = text.len().min(most);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

#[cfg(test)]
mod tests {
    use tidegate_config::{LONGEST_NAMES, ROOMY_NAMES};

    use super::*;

    fn names() -> Names {
        Names::new(NameStyle::Portable, LONGEST_NAMES)
    }

    /// What a server's entries are called.
    fn give(names: &mut Names, server: &str, prefix: &str, own: &[&str]) -> Vec<String> {
        give_while(names, server, prefix, own, &[])
    }

    /// The same while nobody knows what servers before it list.
    fn give_while(
        names: &mut Names,
        server: &str,
        prefix: &str,
        own: &[&str],
        unknown: &[(&str, &str)],
    ) -> Vec<String> {
        let entries: Vec<Unnamed<'_>> = own.iter().map(|own| Unnamed { own, given: None }).collect();
        let owner = Owner { server, prefix, unknown: unknown.to_vec() };
        names.give(&owner, &entries).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn names_are_prefixed_and_else_left_alone() {
        let mut names = names();
        assert_eq!(give(&mut names, "gh", "gh_", &["create_issue"]), ["gh_create_issue"]);
        assert_eq!(give(&mut names, "echo", "", &["echo"]), ["echo"]);
        names.keep("old", "old", "new");
        let owner = Owner { server: "old", prefix: "old_", unknown: Vec::new() };
        assert_eq!(names.give(&owner, &[Unnamed { own: "old", given: Some("new") }]), ["new"]);
        assert!(names.reports.is_empty(), "{:?}", names.reports);
    }

    #[test]
    fn what_models_refuse_is_replaced_and_reported() {
        let mut some = names();
        assert_eq!(give(&mut some, "s", "s_", &["a.b/c d"]), ["s_a_b_c_d"]);
        let long = "x".repeat(100);
        let short = give(&mut some, "s", "s_", &[&long]).remove(0);
        assert_eq!(short.len(), LONGEST_NAMES);
        assert!(short.starts_with("s_xxx"));
        assert_eq!(some.reports.len(), 2);
        assert_eq!(give(&mut names(), "s", "s_", &[&long]), [short], "the same each time");
        let mut exact = Names::new(NameStyle::Exact, LONGEST_NAMES);
        assert_eq!(give(&mut exact, "s", "", &["a.b/c"]), ["a.b/c"]);
    }

    #[test]
    fn names_leave_room_where_that_is_wanted() {
        let own = "a_tool_that_does_something_in_a_few_words_more";
        let whole = format!("s_{own}");
        assert_eq!(
            give(&mut names(), "s", "s_", &[own]),
            std::slice::from_ref(&whole),
            "as it was always called"
        );
        let mut roomy = Names::new(NameStyle::Portable, ROOMY_NAMES);
        assert_eq!(give(&mut roomy, "s", "s_", &[own]), [whole], "48 are not too many");
        let short = give(&mut roomy, "server", "server_", &[own]).remove(0);
        assert!(short.len() == ROOMY_NAMES && short.starts_with("server_a_tool_that"), "{short}");
        let other = give(&mut roomy, "server", "server_", &[&format!("{own}_again")]).remove(0);
        assert!(other.len() == ROOMY_NAMES && other != short, "{other}");
    }

    #[test]
    fn names_that_collide_are_readable() {
        let mut some = names();
        assert_eq!(give(&mut some, "a", "", &["echo"]), ["echo"]);
        assert_eq!(give(&mut some, "b", "", &["echo", "other"]), ["b_echo", "other"]);
        let said = r#""echo" of "b" is offered as "b_echo": the name "echo" is already used by "a""#;
        assert_eq!(some.reports, [Report::new("b", said.to_owned())]);
        // Somebody has the second name too.
        assert_eq!(give(&mut some, "c", "", &["d_echo", "d_echo_2"]), ["d_echo", "d_echo_2"]);
        assert_eq!(give(&mut some, "d", "", &["echo"]), ["d_echo_3"]);
        // What would be too long is cut.
        let long = "x".repeat(LONGEST_NAMES);
        assert_eq!(give(&mut some, "e", "", &[&long]), std::slice::from_ref(&long));
        let cut = give(&mut some, "f", "", &[&long]).remove(0);
        assert!(cut.starts_with("f_xxx") && cut.len() == LONGEST_NAMES, "{cut}");
        let mut exact = Names::new(NameStyle::Exact, LONGEST_NAMES);
        give(&mut exact, "a", "", &["x.y"]);
        assert_eq!(give(&mut exact, "b", "", &["x.y"]), ["b_x.y"]);
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_a_list() {
        for own in [["x.y", "x/y", "x_y", "d_x_y"], ["d_x_y", "x_y", "x/y", "x.y"]] {
            let given: HashMap<&str, String> =
                own.into_iter().zip(give(&mut names(), "d", "", &own)).collect();
            assert_eq!((&*given["x_y"], &*given["d_x_y"]), ("x_y", "d_x_y"));
            assert_eq!((&*given["x.y"], &*given["x/y"]), ("d_x_y_2", "d_x_y_3"));
        }
    }

    #[test]
    fn what_the_configuration_says_comes_first() {
        let mut some = names();
        some.keep("b", "shout", "echo");
        assert_eq!(give(&mut some, "a", "", &["echo"]), ["a_echo"]);
        let owner = Owner { server: "b", prefix: "", unknown: Vec::new() };
        assert_eq!(some.give(&owner, &[Unnamed { own: "shout", given: Some("echo") }]), ["echo"]);
    }

    #[test]
    fn a_server_that_has_not_answered_keeps_its_names() {
        let unknown = [("a", "")];
        let mut some = names();
        // What is called by its server anyway is called so.
        assert_eq!(give_while(&mut some, "c", "c_", &["echo"], &unknown), ["c_echo"]);
        assert!(some.reports.is_empty(), "{:?}", some.reports);
        assert_eq!(give_while(&mut some, "b", "", &["echo", "say"], &unknown), ["b_echo", "b_say"]);
        assert_eq!(some.reports.len(), 1, "said once: {:?}", some.reports);
        // A server with a prefix could have no other names.
        assert_eq!(give_while(&mut names(), "b", "", &["echo", "a_x"], &[("a", "a_")]), ["echo", "b_a_x"]);
    }

    #[test]
    fn very_many_names_that_collide_take_no_long() {
        let own: Vec<String> =
            (0..20_000).map(|n| format!("{}é", char::from_u32(0x4E00 + n).unwrap())).collect();
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let given = give(&mut names(), "s", "", &own);
        assert_eq!(given.iter().collect::<std::collections::HashSet<_>>().len(), own.len());
    }
}
