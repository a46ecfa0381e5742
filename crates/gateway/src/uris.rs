//! Addresses: whose a resource is, and what is done about addresses that two servers share.
//!
//! An address that only one server lists stays as it is. One that several list is offered once for each, qualified with
//! the server's name: `notes+file:///a` is `file:///a` of the server `notes`. Addresses of user interfaces must begin with
//! `ui://`, so there the name goes behind that.

use std::collections::{HashMap, HashSet};

use bytestring::ByteString;
use tidegate_protocol::template::{MatchSteps, Template};

use crate::kind::Kind;
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
    /// Addresses that others list too.
    shared: HashSet<ByteString>,
    /// Templates that others list too.
    shared_templates: Vec<Template>,
}

impl Uris {
    /// Takes what servers list.
    pub(crate) fn new(sources: &[Source<'_>]) -> Uris {
        let shared = [Kind::Resources, Kind::Templates].map(|kind| shared(sources, kind));
        let mut uris = Uris::default();
        for (at, source) in sources.iter().enumerate() {
            let mut server = Server { label: uris.free_label(&source.settings.name), ..Server::default() };
            for entry in source.entries(Kind::Resources) {
                uris.note_scheme(&entry.key, at);
                let qualified = shared[0].contains(&entry.key);
                if qualified {
                    server.shared.insert(entry.key.clone());
                }
                let offered = if qualified { server.qualify(&entry.key) } else { entry.key.clone() };
                uris.listed.entry(offered).or_insert((at, entry.key.clone()));
            }
            for entry in source.entries(Kind::Templates) {
                uris.note_scheme(&entry.key, at);
                let qualified = shared[1].contains(&entry.key);
                let offered = if qualified { server.qualify(&entry.key) } else { entry.key.clone() };
                if qualified {
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

    /// A label for a server that none before it has: two names may differ only in what a scheme cannot hold.
    fn free_label(&self, name: &str) -> String {
        let wanted = label(name);
        let is_free = |label: &String| self.servers.iter().all(|server| server.label != *label);
        let numbered = (2..).map(|n| format!("{wanted}-{n}"));
        std::iter::once(wanted.clone()).chain(numbered).find(is_free).unwrap_or_default()
    }

    fn note_scheme(&mut self, uri: &str, server: usize) {
        if let Some(scheme) = scheme(uri) {
            self.schemes.entry(scheme.to_owned()).or_default().insert(server);
        }
    }

    /// Whose an address is, and how its server spells it: by list, then by template.
    pub(crate) fn find(&self, uri: &str) -> Option<(usize, ByteString)> {
        if let Some((server, own)) = self.listed.get(uri) {
            return Some((*server, own.clone()));
        }
        let steps = &mut MatchSteps::default();
        let fits = |offered: &&Offered| offered.template.matches_within(uri, steps).is_some();
        let offered = self.templates.iter().find(fits)?;
        let own = match offered.qualified {
            true => self.servers[offered.server].unqualify(uri)?,
            false => uri.into(),
        };
        Some((offered.server, own))
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
        server.is_shared(own).then(|| server.qualify(own))
    }

    /// How a template of a server is offered; `None` as it is.
    pub(crate) fn offered_template(&self, server: usize, own: &str) -> Option<ByteString> {
        let server = self.servers.get(server)?;
        server.shared_templates.iter().any(|t| t.as_str() == own).then(|| server.qualify(own))
    }

    /// The servers that an address could be of: for the sentence that says so.
    pub(crate) fn candidates(&self, uri: &str) -> Vec<ByteString> {
        let shared = self.servers.iter().filter(|server| server.is_shared(uri));
        shared.map(|server| server.qualify(uri)).collect()
    }
}

impl Server {
    fn is_shared(&self, own: &str) -> bool {
        let steps = &mut MatchSteps::default();
        self.shared.contains(own)
            || self.shared_templates.iter().any(|t| t.matches_within(own, steps).is_some())
    }

    fn qualify(&self, own: &str) -> ByteString {
        match own.strip_prefix("ui://") {
            Some(rest) => format!("ui://{}+{rest}", self.label).into(),
            None => format!("{}+{own}", self.label).into(),
        }
    }

    fn unqualify(&self, offered: &str) -> Option<ByteString> {
        let (before, named) = match offered.strip_prefix("ui://") {
            Some(rest) => ("ui://", rest),
            None => ("", offered),
        };
        let own = named.strip_prefix(self.label.as_str())?.strip_prefix('+')?;
        Some(format!("{before}{own}").into())
    }
}

/// The addresses or templates that more than one server lists.
fn shared(sources: &[Source<'_>], kind: Kind) -> HashSet<ByteString> {
    let mut owner: HashMap<&ByteString, usize> = HashMap::new();
    let mut shared = HashSet::new();
    for (at, source) in sources.iter().enumerate() {
        for entry in source.entries(kind) {
            if *owner.entry(&entry.key).or_insert(at) != at {
                shared.insert(entry.key.clone());
            }
        }
    }
    shared
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
