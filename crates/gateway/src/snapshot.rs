//! [`Snapshot`]: what all servers together offer at one moment. Calls read it without a lock; a change makes another.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use bytestring::ByteString;
use foldhash::fast::RandomState;
use tidegate_config::{SchemaStyle, ServerSettings, Settings, ToolMode, ToolOverride};
use tidegate_policy::{Object, ObjectKind, Policy, RuleSet};
use tidegate_protocol::json::Edit;
use tidegate_protocol::{Error, Json};
use tidegate_service::budget::{Budget, Hold};

use crate::catalog::{Catalog, Entry};
use crate::endpoints::Endpoints;
use crate::extensions;
use crate::kind::Kind;
use crate::links;
use crate::merged_list::MergedList;
use crate::names::{Names, Owner, Report, Unnamed};
use crate::pins::Pins;
use crate::search::{self, Index};
use crate::shown::Listed;
use crate::uris::{Uris, has_dot_segment};

/// One server's part of a snapshot in the making.
pub(crate) struct Source<'a> {
    pub(crate) settings: &'a ServerSettings,
    pub(crate) catalog: Arc<Catalog>,
}

impl Source<'_> {
    /// Whether the server has such a list, as far as is known.
    fn may_list(&self, kind: Kind) -> bool {
        let Some(about) = &self.catalog.about else { return true };
        kind != Kind::Skills || extensions::declared(&about.capabilities, extensions::SKILLS).is_some()
    }

    /// What it lists, without the tools that the configuration leaves out.
    pub(crate) fn entries(&self, kind: Kind) -> impl Iterator<Item = &Entry> {
        let entries = self.catalog.part(kind).map_or(&[][..], |part| &part.entries);
        entries.iter().filter(move |entry| match kind {
            Kind::Tools => self.settings.offers(&entry.key),
            // Nothing but a way to another folder looks like this, and it is not read either.
            Kind::Skills => !has_dot_segment(&entry.key),
            _ => true,
        })
    }
}

/// Everything on offer.
#[derive(Debug)]
pub(crate) struct Snapshot {
    pub(crate) tools: Table,
    pub(crate) prompts: Table,
    pub(crate) uris: Uris,
    pub(crate) lists: [MergedList; Kind::COUNT],
    /// The entries of each list, in its order.
    entries: [Vec<Listed>; Kind::COUNT],
    /// How tools are listed there, and those that are listed in the other way, for endpoints that do that.
    mode: ToolMode,
    other_tools: Vec<Listed>,
    /// For searching tools, once somebody does.
    pub(crate) index: OnceLock<Index>,
    /// What had to be changed, in sentences.
    pub(crate) reports: Vec<Report>,
    /// What rewritten schemas take, set aside.
    _schemas: Hold,
}

/// Names and whose they are.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: HashMap<ByteString, Row, RandomState>,
    /// The names in the order of the list.
    order: Vec<ByteString>,
}

/// One name.
#[derive(Debug)]
pub(crate) struct Row {
    /// The server, by its place in the configuration.
    pub(crate) server: usize,
    /// What the server calls it.
    pub(crate) own: ByteString,
    /// Its definition as it is offered.
    pub(crate) definition: Json,
    /// Why it must not be called.
    pub(crate) withheld: Option<Error>,
    /// The rules of the policy that are about it.
    pub(crate) rules: RuleSet,
}

impl Table {
    pub(crate) fn get(&self, name: &str) -> Option<&Row> {
        self.rows.get(name)
    }

    /// All rows in the order of the list.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&ByteString, &Row)> {
        self.order.iter().filter_map(|name| self.rows.get_key_value(name))
    }

    /// Finds out which rules are about each row, once for all callers.
    fn note_rules(&mut self, policy: &Policy, kind: ObjectKind, sources: &[Source<'_>]) {
        for (name, row) in &mut self.rows {
            let server = sources.get(row.server).map_or("", |source| &source.settings.name);
            row.rules = policy.about(&Object { kind, name, server });
        }
    }

    pub(crate) fn add(&mut self, name: ByteString, row: Row) {
        self.order.push(name.clone());
        self.rows.insert(name, row);
    }
}

impl Snapshot {
    pub(crate) fn list(&self, kind: Kind) -> &MergedList {
        &self.lists[kind.index()]
    }

    /// The entries of a list where tools are listed in this way.
    pub(crate) fn entries(&self, kind: Kind, mode: ToolMode) -> &[Listed] {
        match kind == Kind::Tools && mode != self.mode {
            true => &self.other_tools,
            false => &self.entries[kind.index()],
        }
    }

    /// Puts together what servers offer.
    pub(crate) fn new(
        sources: &[Source<'_>],
        settings: &Settings,
        endpoints: &Endpoints,
        pins: &Pins,
    ) -> Snapshot {
        let tools = &settings.tools;
        let uris = Uris::new(sources);
        let mut names = Names::new(tools.names, tools.name_length);
        // Names are the same at every endpoint.
        let modes = [ToolMode::All, ToolMode::Search];
        let is_used = |mode: &ToolMode| *mode == tools.mode || endpoints.has_mode(*mode);
        for mode in modes.into_iter().filter(is_used) {
            search::own_names(mode).iter().for_each(|name| names.reserve(name));
        }
        let mut tool_table = named(sources, Kind::Tools, &mut names, &uris, pins, tools.schemas);
        let mut prompt_names = Names::new(tools.names, tools.name_length);
        let mut prompt_table = named(sources, Kind::Prompts, &mut prompt_names, &uris, pins, tools.schemas);
        if let Some(policy) = &settings.policy {
            tool_table.note_rules(policy, ObjectKind::Tool, sources);
            prompt_table.note_rules(policy, ObjectKind::Prompt, sources);
        }
        let mut reports = names.reports;
        reports.extend(prompt_names.reports);
        let shown = search::shown(&tool_table, tools, tools.mode);
        let other = modes.into_iter().find(|mode| *mode != tools.mode && endpoints.has_mode(*mode));
        let other_tools = other.map(|mode| search::shown(&tool_table, tools, mode)).unwrap_or_default();
        let finish = |kind, entries: &[Listed]| {
            let (until, private) = good(sources, kind);
            // 2026-07-28 server/utilities/caching: what is public, a shared cache may serve to anybody, also to those whom the
            // gateway would refuse.
            let private = private || settings.auth.is_some();
            let definitions = entries.iter().map(|entry| &entry.definition);
            MergedList::new(kind, definitions, tools.page_bytes).good(until, private)
        };
        let prompts = prompt_table.iter().map(|(name, row)| Listed {
            name: name.clone(),
            server: Some(row.server),
            definition: row.definition.clone(),
        });
        let entries = [
            shown,
            prompts.collect(),
            addressed(sources, Kind::Resources, &uris),
            addressed(sources, Kind::Templates, &uris),
            addressed(sources, Kind::Skills, &uris),
        ];
        let lists = Kind::ALL.map(|kind| finish(kind, &entries[kind.index()]));
        Snapshot {
            tools: tool_table,
            prompts: prompt_table,
            uris,
            lists,
            entries,
            mode: tools.mode,
            other_tools,
            index: OnceLock::new(),
            reports,
            _schemas: hold_schemas(sources, tools.schemas),
        }
    }
}

/// What the configuration changes about a tool.
fn changed<'a>(settings: &'a ServerSettings, kind: Kind, entry: &Entry) -> Option<&'a ToolOverride> {
    settings.tools.get(&*entry.key).filter(|_| kind == Kind::Tools)
}

/// The rows of tools or prompts.
fn named(
    sources: &[Source<'_>],
    kind: Kind,
    names: &mut Names,
    uris: &Uris,
    pins: &Pins,
    schemas: SchemaStyle,
) -> Table {
    let mut table = Table::default();
    for source in sources.iter().filter(|_| kind == Kind::Tools) {
        for (own, change) in &source.settings.tools {
            if let Some(name) = &change.name {
                names.keep(&source.settings.name, own, name);
            }
        }
    }
    let mut named: Vec<Vec<(&Entry, ByteString)>> = vec![Vec::new(); sources.len()];
    let mut unapproved: Vec<Vec<&Entry>> = vec![Vec::new(); sources.len()];
    // A name belongs to the server whose prefix it has: no other can take it by listing a tool that is called so. Of equal
    // prefixes, the first in the configuration comes first.
    let mut order: Vec<usize> = (0..sources.len()).collect();
    order.sort_by_key(|&server| std::cmp::Reverse(sources[server].settings.prefix.len()));
    for (place, &server) in order.iter().enumerate() {
        let settings = sources[server].settings;
        let mut seen = std::collections::HashSet::new();
        let (entries, again): (Vec<&Entry>, Vec<&Entry>) =
            sources[server].entries(kind).partition(|entry| seen.insert(&entry.key));
        for entry in again {
            let what =
                format!("{:?} lists {:?} more than once; only the first is used", settings.name, entry.key);
            names.report(&settings.name, what);
        }
        let (waiting, entries): (Vec<&Entry>, Vec<&Entry>) = entries
            .into_iter()
            .partition(|entry| kind == Kind::Tools && pins.is_unapproved(&settings.name, &entry.key));
        unapproved[server] = waiting;
        named[server] = give(names, sources, kind, (&order[..place], server), entries);
    }
    // What nobody has approved takes no name from what is on offer. What was approved and has changed keeps its own: nobody
    // else is to be called by it. Nothing is said of these names, because they are not offered.
    let said = names.reports.len();
    for (place, &server) in order.iter().enumerate() {
        let waiting = std::mem::take(&mut unapproved[server]);
        let more = give(names, sources, kind, (&order[..place], server), waiting);
        named[server].extend(more);
    }
    names.reports.truncate(said);
    for (server, (source, entries)) in sources.iter().zip(named).enumerate() {
        let settings = source.settings;
        for (entry, name) in entries {
            let change = changed(settings, kind, entry);
            let mut definition = entry.definition.clone();
            if kind == Kind::Tools && uris.changes(server) {
                let changed = links::in_definition(&definition, &mut |uri| uris.offered(server, uri));
                definition = changed.unwrap_or(definition);
            }
            if let Some(mut edit) = Edit::of(&definition) {
                if name != entry.key {
                    edit.set("name", Json::string(&name));
                }
                if let Some(description) = change.and_then(|change| change.description.as_deref()) {
                    edit.set("description", Json::string(description));
                }
                let portable = kind == Kind::Tools && schemas == SchemaStyle::Portable;
                if portable && let Some(input) = entry.portable_input() {
                    edit.set("inputSchema", input.clone());
                }
                definition = edit.finish().unwrap_or(definition);
            }
            let withheld = match kind {
                Kind::Tools => pins.withheld(&settings.name, entry),
                _ => None,
            };
            if let Some(line) = withheld.as_ref().and_then(|why| why.message().lines().next()) {
                names.report(&settings.name, line.to_owned());
            }
            table.add(
                name,
                Row { server, own: entry.key.clone(), definition, withheld, rules: RuleSet::default() },
            );
        }
    }
    table
}

/// Names some of what a server lists, which comes after the servers `before` it.
fn give<'a>(
    names: &mut Names,
    sources: &'a [Source<'_>],
    kind: Kind,
    (before, server): (&[usize], usize),
    entries: Vec<&'a Entry>,
) -> Vec<(&'a Entry, ByteString)> {
    let settings = sources[server].settings;
    let unnamed: Vec<Unnamed<'_>> = entries
        .iter()
        .map(|entry| {
            let given = changed(settings, kind, entry).and_then(|change| change.name.as_deref());
            Unnamed { own: &entry.key, given }
        })
        .collect();
    let before = before.iter().map(|&other| &sources[other]);
    let unknown = before.filter(|other| other.catalog.part(kind).is_none());
    let owner = Owner {
        server: &settings.name,
        prefix: &settings.prefix,
        unknown: unknown.map(|other| (&*other.settings.name, &*other.settings.prefix)).collect(),
    };
    let given = names.give(&owner, &unnamed);
    entries.into_iter().zip(given).collect()
}

/// Sets aside what rewritten schemas take: with their tool, in its definition as it is offered, and in the list.
fn hold_schemas(sources: &[Source<'_>], schemas: SchemaStyle) -> Hold {
    let wanted = sources.iter().filter(|_| schemas == SchemaStyle::Portable);
    let entries = wanted.flat_map(|source| source.entries(Kind::Tools));
    let bytes: usize = entries.filter_map(Entry::portable_input).map(Json::len).sum();
    Budget::of_process().hold_anyway(3 * bytes)
}

/// The definitions of resources, templates or skills as they are offered.
fn addressed(sources: &[Source<'_>], kind: Kind, uris: &Uris) -> Vec<Listed> {
    let mut all = Vec::new();
    for (server, source) in sources.iter().enumerate() {
        let mut seen = HashSet::new();
        for entry in source.entries(kind).filter(|entry| kind != Kind::Skills || seen.insert(&entry.key)) {
            let offered = match kind {
                Kind::Templates => uris.offered_template(server, &entry.key),
                _ => uris.offered(server, &entry.key),
            };
            let definition = match &offered {
                _ if kind == Kind::Skills => {
                    let changed = links::in_skill(&entry.definition, &mut |uri| uris.offered(server, uri));
                    changed.unwrap_or_else(|| entry.definition.clone())
                }
                None => entry.definition.clone(),
                Some(uri) => {
                    let mut edit = Edit::of(&entry.definition);
                    if let Some(edit) = &mut edit {
                        edit.set(kind.key(), Json::string(uri));
                    }
                    edit.and_then(Edit::finish).unwrap_or_else(|| entry.definition.clone())
                }
            };
            let name = offered.unwrap_or_else(|| entry.key.clone());
            all.push(Listed { name, server: Some(server), definition });
        }
    }
    all
}

/// Until when a merged list is good, and whether for one caller only: as long as every part is, for whom every part is.
fn good(sources: &[Source<'_>], kind: Kind) -> (Option<Instant>, bool) {
    let now = Instant::now();
    let mut until: Option<Instant> = None;
    let mut private = false;
    for part in sources.iter().filter(|source| source.may_list(kind)).map(|source| source.catalog.part(kind))
    {
        let (left, only) = match part {
            Some(part) => (part.good_for(now), part.private),
            // A list that is not known yet may come at any moment.
            None => (std::time::Duration::ZERO, true),
        };
        let end = now.checked_add(left).unwrap_or(now + std::time::Duration::from_secs(24 * 3600));
        until = Some(until.map_or(end, |until| until.min(end)));
        private |= only;
    }
    (until, private)
}
