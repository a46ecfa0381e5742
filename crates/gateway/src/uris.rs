//! Addresses: whose a resource is, and what is done about addresses that two servers share.
//!
//! An address that only one server lists stays as it is. One that several list is offered once for each, qualified with
//! the server's name: `notes+file:///a` is `file:///a` of the server `notes`. Addresses of user interfaces must begin with
//! `ui://`, so there the name goes behind that. An address that begins with the name of a server as if it were qualified is
//! always qualified itself, so that no server speaks for another.
//!
//! Addresses of skills are another matter: two servers may well have a skill of the same name, and a host that takes one for
//! the other has been deceived (SEP-2640). As soon as there are two servers, the server's label is the first segment of every
//! `skill://` address, listed or not, and that segment alone says whose it is. Nothing of the rest is looked at, so nothing in
//! it leads to another server.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use tidegate_protocol::template::{MatchSteps, Template};

use crate::kind::Kind;
use crate::links;
use crate::snapshot::Source;

/// Which addresses belong to which server.
#[derive(Debug, Default)]
pub(crate) struct Uris {
    /// By the address as it is offered.
    listed: HashMap<ByteString, (usize, ByteString)>,
    templates: Vec<Offered>,
    /// The servers that have resources of a scheme.
    schemes: HashMap<String, HashSet<usize>>,
    servers: Vec<Server>,
    /// Whether there are several servers.
    is_union: bool,
}

/// A template as it is offered.
#[derive(Debug)]
struct Offered {
    server: usize,
    template: Template,
    qualified: bool,
}

/// What has to be known to change a server's addresses.
#[derive(Debug, Default)]
struct Server {
    /// Its name as it may stand in a scheme.
    label: String,
    /// Its addresses of skills, as it spells them.
    skills: HashSet<ByteString>,
    /// Addresses that others list too.
    shared: HashSet<ByteString>,
    /// Templates that others list too.
    shared_templates: Vec<Template>,
}

impl Uris {
    /// Takes what servers list.
    pub(crate) fn new(sources: &[Source<'_>]) -> Uris {
        let mut uris = Uris { is_union: sources.len() > 1, ..Uris::default() };
        let listed: Vec<Vec<ByteString>> = sources.iter().map(|source| uris.addresses(source)).collect();
        let templates = |source: &Source<'_>| -> Vec<ByteString> {
            source.entries(Kind::Templates).map(|entry| entry.key.clone()).collect()
        };
        let templates: Vec<Vec<ByteString>> = sources.iter().map(templates).collect();
        let shared = [&listed, &templates].map(|all| shared(all));
        let labels = labels(sources.iter().map(|source| source.settings.name.as_str()));
        let claims = |own: &str| uris.is_union && claims_a_label(own, &labels);
        let claiming: Vec<HashSet<ByteString>> = [&listed, &templates]
            .map(|all| all.iter().flatten().filter(|own| claims(own)).cloned().collect())
            .into();
        for (at, source) in sources.iter().enumerate() {
            let mut server = Server { label: labels[at].clone(), ..Server::default() };
            for own in &listed[at] {
                if uris.is_of_skill(own) {
                    server.skills.insert(own.clone());
                    continue;
                }
                uris.note_scheme(own, at);
                let qualified = shared[0].contains(own) || claiming[0].contains(own);
                if qualified {
                    server.shared.insert(own.clone());
                }
                let offered = if qualified { server.qualify(own) } else { own.clone() };
                uris.listed.entry(offered).or_insert((at, own.clone()));
            }
            for entry in source.entries(Kind::Templates) {
                let of_skill = uris.is_of_skill(&entry.key);
                if !of_skill {
                    uris.note_scheme(&entry.key, at);
                }
                let qualified =
                    of_skill || shared[1].contains(&entry.key) || claiming[1].contains(&entry.key);
                let offered = if qualified { server.qualify(&entry.key) } else { entry.key.clone() };
                if qualified && !of_skill {
                    server.shared_templates.extend(Template::parse(&entry.key));
                }
                match Template::parse(&offered) {
                    Ok(template) => uris.templates.push(Offered { server: at, template, qualified }),
                    Err(fault) => {
                        tracing::warn!(server = source.settings.name, template = %entry.key, %fault, "ignored an invalid resource template");
                    }
                }
            }
            uris.servers.push(server);
        }
        uris
    }

    /// The addresses that a server lists: of resources, of skills, and of the files of skills that are elsewhere than other
    /// skills are.
    fn addresses(&self, source: &Source<'_>) -> Vec<ByteString> {
        let mut all: Vec<ByteString> =
            source.entries(Kind::Resources).map(|entry| entry.key.clone()).collect();
        for skill in source.entries(Kind::Skills) {
            match self.is_of_skill(&skill.key) {
                true => all.push(skill.key.clone()),
                false => {
                    _ = links::in_skill(&skill.definition, &mut |uri| {
                        all.push(uri.into());
                        None
                    })
                }
            }
        }
        all
    }

    /// Whether the first segment of an address says whose it is: if it is one of a skill, and there are several servers.
    pub(crate) fn is_of_skill(&self, uri: &str) -> bool {
        self.is_union && split_skill(uri).is_some()
    }

    /// By what a server is called in addresses.
    pub(crate) fn label(&self, server: usize) -> &str {
        self.servers.get(server).map_or("", |server| &server.label)
    }

    fn note_scheme(&mut self, uri: &str, server: usize) {
        if let Some(scheme) = scheme(uri) {
            self.schemes.entry(scheme.to_owned()).or_default().insert(server);
        }
    }

    /// Whose an address is, and how its server spells it: by its first segment if it is one of a skill, else by list, then by
    /// the template that says most about it. One that says nothing about the scheme is asked for with [`Uris::find_any`].
    pub(crate) fn find(&self, uri: &str) -> Option<(usize, ByteString)> {
        if self.is_of_skill(uri) {
            let of = |(at, server): (usize, &Server)| Some((at, server.unqualify(uri)?));
            return self.servers.iter().enumerate().find_map(of).filter(|_| !has_dot_segment(uri));
        }
        if let Some((server, own)) = self.listed.get(uri) {
            return Some((*server, own.clone()));
        }
        self.fitting(uri, |offered| offered.names_scheme() || !self.is_union)
    }

    /// The same for templates that fit addresses of any scheme: who gave the address to the caller comes before them.
    pub(crate) fn find_any(&self, uri: &str) -> Option<(usize, ByteString)> {
        self.fitting(uri, |offered| !offered.names_scheme())
    }

    /// Whose template fits an address: the one that begins with most of it, among equals the first.
    fn fitting(&self, uri: &str, counts: impl Fn(&Offered) -> bool) -> Option<(usize, ByteString)> {
        let steps = &mut MatchSteps::default();
        let mut best: Option<&Offered> = None;
        for offered in self.templates.iter().filter(|offered| counts(offered)) {
            let says_more = best.is_none_or(|best| offered.literal().len() > best.literal().len());
            if says_more && offered.template.matches_within(uri, steps).is_some() {
                best = Some(offered);
            }
        }
        let best = best?;
        let own = match best.qualified {
            true => self.servers[best.server].unqualify(uri)?,
            false => uri.into(),
        };
        Some((best.server, own))
    }

    /// The templates of a server that an address fits, as they are offered.
    pub(crate) fn templates_of(&self, server: usize, uri: &str) -> Vec<&str> {
        let steps = &mut MatchSteps::default();
        let of_server = self.templates.iter().filter(|offered| offered.server == server);
        let fitting = of_server.filter(|offered| offered.template.matches_within(uri, steps).is_some());
        fitting.map(|offered| offered.template.as_str()).collect()
    }

    /// Whose a template is, and how its server spells it.
    pub(crate) fn find_template(&self, text: &str) -> Option<(usize, ByteString)> {
        let offered = self.templates.iter().find(|offered| offered.template.as_str() == text)?;
        let own = match offered.qualified {
            true => self.servers[offered.server].unqualify(text)?,
            false => text.into(),
        };
        Some((offered.server, own))
    }

    /// The only server with resources of this scheme.
    pub(crate) fn only_of_scheme(&self, uri: &str) -> Option<usize> {
        let servers = self.schemes.get(scheme(uri)?)?;
        servers.iter().next().copied().filter(|_| servers.len() == 1)
    }

    /// A qualified address, even if it is in no list: the server's name says whose it is.
    pub(crate) fn qualified(&self, uri: &str) -> Option<(usize, ByteString)> {
        self.servers.iter().enumerate().find_map(|(at, server)| {
            let own = server.unqualify(uri).filter(|own| server.is_shared(own))?;
            Some((at, own))
        })
    }

    /// Whether any address of this server has to be changed.
    pub(crate) fn changes(&self, server: usize) -> bool {
        self.servers.get(server).is_some_and(|s| !s.shared.is_empty() || !s.shared_templates.is_empty())
    }

    /// How an address of a server is offered; `None` as it is.
    pub(crate) fn offered(&self, server: usize, own: &str) -> Option<ByteString> {
        let server = self.servers.get(server)?;
        (self.is_of_skill(own) || server.is_shared(own)).then(|| server.qualify(own))
    }

    /// How a template of a server is offered; `None` as it is.
    pub(crate) fn offered_template(&self, server: usize, own: &str) -> Option<ByteString> {
        let server = self.servers.get(server)?;
        let is_shared = || server.shared_templates.iter().any(|t| t.as_str() == own);
        (self.is_of_skill(own) || is_shared()).then(|| server.qualify(own))
    }

    /// The servers that an address could be of, and what it is there: for the sentence that says so.
    pub(crate) fn candidates(&self, uri: &str) -> Vec<(usize, ByteString)> {
        let has = |server: &Server| server.skills.contains(uri) || server.is_shared(uri);
        let with = self.servers.iter().enumerate().filter(|(_, server)| has(server));
        with.map(|(at, server)| (at, server.qualify(uri))).collect()
    }
}

impl Offered {
    /// What every address that fits begins with.
    fn literal(&self) -> &str {
        let text = self.template.as_str();
        text.split('{').next().unwrap_or(text)
    }

    fn names_scheme(&self) -> bool {
        scheme(self.literal()).is_some()
    }
}

impl Server {
    fn is_shared(&self, own: &str) -> bool {
        let steps = &mut MatchSteps::default();
        self.shared.contains(own)
            || self.shared_templates.iter().any(|t| t.matches_within(own, steps).is_some())
    }

    fn qualify(&self, own: &str) -> ByteString {
        if let Some((scheme, path)) = split_skill(own) {
            return format!("{scheme}{}/{path}", self.label).into();
        }
        match own.strip_prefix("ui://") {
            Some(rest) => format!("ui://{}+{rest}", self.label).into(),
            None => format!("{}+{own}", self.label).into(),
        }
    }

    fn unqualify(&self, offered: &str) -> Option<ByteString> {
        if let Some((scheme, path)) = split_skill(offered) {
            let own = path.strip_prefix(self.label.as_str())?.strip_prefix('/')?;
            return Some(format!("{scheme}{own}").into());
        }
        let (before, named) = split_ui(offered);
        let own = named.strip_prefix(self.label.as_str())?.strip_prefix('+')?;
        Some(format!("{before}{own}").into())
    }
}

/// Labels for servers of these names, no two the same. A server whose name is a label has that one; others whose names differ
/// only in what a scheme cannot hold have a number.
fn labels<'a>(names: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let mut taken: HashSet<String> =
        names.clone().filter(|name| label(name) == **name).map(str::to_owned).collect();
    let free = |name: &str| {
        let wanted = label(name);
        if wanted == name {
            return wanted;
        }
        let numbered = (2..).map(|n| format!("{wanted}-{n}"));
        let mut all = std::iter::once(wanted.clone()).chain(numbered);
        all.find(|label| taken.insert(label.clone())).unwrap_or_default()
    };
    names.map(free).collect()
}

/// Whether an address begins with a label, as one that is qualified does.
fn claims_a_label(uri: &str, labels: &[String]) -> bool {
    let (_, named) = split_ui(uri);
    named.split_once('+').is_some_and(|(label, _)| labels.iter().any(|other| other == label))
}

/// What comes before the label of a qualified address that is not one of a skill, and the rest.
fn split_ui(uri: &str) -> (&str, &str) {
    match uri.strip_prefix("ui://") {
        Some(rest) => ("ui://", rest),
        None => ("", uri),
    }
}

/// The addresses or templates that more than one server lists.
fn shared(listed: &[Vec<ByteString>]) -> HashSet<ByteString> {
    let mut owner: HashMap<&ByteString, usize> = HashMap::new();
    let mut shared = HashSet::new();
    for (at, all) in listed.iter().enumerate() {
        for own in all {
            if *owner.entry(own).or_insert(at) != at {
                shared.insert(own.clone());
            }
        }
    }
    shared
}

/// The scheme of a skill's address with its slashes, and what follows. Schemes are the same in any case (RFC 3986, 3.1).
fn split_skill(uri: &str) -> Option<(&str, &str)> {
    const SCHEME: &str = "skill://";
    let (scheme, path) = uri.split_at_checked(SCHEME.len())?;
    scheme.eq_ignore_ascii_case(SCHEME).then_some((scheme, path))
}

/// Whether a segment of an address is `.` or `..`, also as `%2e`: whoever resolves that ends up elsewhere.
pub(crate) fn has_dot_segment(uri: &str) -> bool {
    let is_dots = |segment: &str| {
        let plain = || segment.replace("%2e", ".").replace("%2E", ".");
        segment.starts_with(['.', '%']) && matches!(&*plain(), "." | "..")
    };
    uri.split(['/', '\\', '?', '#']).any(is_dots)
}

/// The same, also where `%2f` and `%5c` stand for slashes: somebody may take them for such.
pub(crate) fn may_lead_elsewhere(uri: &str) -> bool {
    if !uri.contains('%') {
        return has_dot_segment(uri);
    }
    let slashes = [("%2f", "/"), ("%2F", "/"), ("%5c", "/"), ("%5C", "/")];
    has_dot_segment(&slashes.iter().fold(uri.to_owned(), |uri, (from, to)| uri.replace(from, to)))
}

/// A server's name as it may stand in a scheme (RFC 3986, section 3.1).
fn label(name: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '.');
    let mut label: String =
        name.to_ascii_lowercase().chars().map(|c| if fits(c) { c } else { '-' }).collect();
    if !label.starts_with(|c: char| c.is_ascii_alphabetic()) {
        label.insert(0, 's');
    }
    label
}

fn scheme(uri: &str) -> Option<&str> {
    let (scheme, _) = uri.split_once(':')?;
    (!scheme.is_empty() && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)))
        .then_some(scheme)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_may_lead_elsewhere() {
        for uri in [
            "f://public/../b",
            "f://public/%2e%2E/b",
            "f://public/..%2fb",
            "f://public\\..\\b",
            "f://public/./../b",
            "f://public%2F..%5cb",
            "f://public/..?q",
        ] {
            assert!(may_lead_elsewhere(uri), "{uri}");
        }
        for uri in
            ["f://public/a..b", "f://public/...", "f://public/.hidden", "f://public/%2ehidden", "f://a%2fb"]
        {
            assert!(!may_lead_elsewhere(uri), "{uri}");
        }
    }

    #[test]
    fn a_server_whose_name_is_a_label_has_it_whoever_comes_first() {
        let labels = |names: &[&str]| labels(names.iter().copied());
        assert_eq!(labels(&["Crm", "crm"]), ["crm-2", "crm"]);
        assert_eq!(labels(&["bob_2", "bob-2", "bob.2", "9"]), ["bob-2-2", "bob-2", "bob.2", "s9"]);
        assert_eq!(labels(&["a b", "a_b", "a-b", "a-b-2"]), ["a-b-3", "a-b-4", "a-b", "a-b-2"]);
    }
}
