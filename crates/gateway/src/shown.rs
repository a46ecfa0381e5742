//! [`View`]: what is seen of a snapshot, by those who do not see everything.

use std::collections::VecDeque;
use std::ops::Deref;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bytestring::ByteString;
use tidegate_config::ToolMode;
use tidegate_policy::ViewRules;
use tidegate_protocol::Json;

use crate::build::State;
use crate::endpoints::Endpoint;
use crate::extensions::sees_skill;
use crate::kind::Kind;
use crate::merged_list::MergedList;
use crate::view::{Offer, OfferKind, Restriction, ViewKey};

/// Most views that are kept of one snapshot. The one that was not used for longest is made anew when it is wanted again.
const MAX_VIEWS: usize = 256;

/// One entry of a list of the snapshot.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: ByteString,
    /// The server, by its place in the configuration; none for what is the gateway's own.
    pub(crate) server: Option<usize>,
    pub(crate) definition: Json,
}

/// What is seen of a snapshot.
pub(crate) struct View {
    /// How tools are listed.
    mode: ToolMode,
    /// The entries of each list that are shown, by their index in the snapshot.
    entries: [Vec<u32>; Kind::COUNT],
    /// Which tools are seen of those that may be called, listed or not, in the order of the table.
    pub(crate) callable: Vec<bool>,
    /// Which servers are known: those of which something is shown, and those of which nobody knows anything yet.
    pub(crate) servers: Vec<bool>,
    /// Whether it depends on who calls, and not on the endpoint alone.
    pub(crate) is_of_caller: bool,
    /// The lists of an endpoint as ready text.
    lists: [OnceLock<Arc<MergedList>>; Kind::COUNT],
}

impl View {
    pub(crate) fn new(state: &State, restriction: &Restriction<'_>, mode: ToolMode) -> View {
        let (snapshot, endpoint) = (&state.snapshot, restriction.endpoint);
        let name_of = |server: usize| state.mounts.get(server).map_or("", |mount| mount.name());
        let shows = |kind: Kind, entry: &Listed| {
            // The gateway's own tools are about those of servers.
            let Some(server) = entry.server else {
                return restriction.knows_caller() && endpoint.is_none_or(Endpoint::has_tools);
            };
            let shows = |kind, name: &str| restriction.shows(&Offer { kind, name, server: name_of(server) });
            match kind {
                Kind::Skills => {
                    shows(OfferKind::Method, kind.method().as_str())
                        && sees_skill(&entry.definition, |uri| shows(OfferKind::Resource, uri))
                }
                _ => shows(kind.into(), &entry.name),
            }
        };
        let mut listing = vec![false; state.mounts.len()];
        let mut servers = vec![false; state.mounts.len()];
        let mut note = |server: usize, is_shown: bool| {
            if let (Some(lists), Some(is_seen)) = (listing.get_mut(server), servers.get_mut(server)) {
                (*lists, *is_seen) = (true, *is_seen || is_shown);
            }
        };
        let entries = Kind::ALL.map(|kind| {
            let mut shown = Vec::new();
            for (at, entry) in snapshot.entries(kind, mode).iter().enumerate() {
                let is_shown = shows(kind, entry);
                if is_shown {
                    shown.push(at as u32);
                }
                if let Some(server) = entry.server {
                    note(server, is_shown);
                }
            }
            shown
        });
        // Not every tool is listed that can be called.
        let mut callable = Vec::new();
        for (name, row) in snapshot.tools.iter() {
            let is_shown =
                restriction.shows(&Offer { kind: OfferKind::Tool, name, server: name_of(row.server) });
            note(row.server, is_shown);
            if row.withheld.is_none() {
                callable.push(is_shown);
            }
        }
        let may_be_named =
            |server: usize| Kind::CORE.iter().all(|kind| restriction.may_name(name_of(server), *kind));
        for (server, is_known) in servers.iter_mut().enumerate() {
            *is_known |= !listing[server] && may_be_named(server);
        }
        let is_of_caller = restriction.is_of_caller();
        View { mode, entries, callable, servers, is_of_caller, lists: Default::default() }
    }

    /// A list of an endpoint. Its text is made once; whatever depends on who calls is made for them.
    pub(crate) fn list(&self, state: &State, kind: Kind) -> Arc<MergedList> {
        let list = self.lists[kind.index()].get_or_init(|| {
            let shown = self.shown(state, kind).map(|entry| &entry.definition);
            Arc::new(state.snapshot.list(kind).narrowed(shown, state.tools.page_bytes))
        });
        list.clone()
    }

    /// The entries of a list that are in it.
    pub(crate) fn shown<'a>(&'a self, state: &'a State, kind: Kind) -> impl Iterator<Item = &'a Listed> {
        let entries = state.snapshot.entries(kind, self.mode);
        self.entries[kind.index()].iter().filter_map(|at| entries.get(*at as usize))
    }
}

/// By what a view is found.
#[derive(Clone, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub(crate) endpoint: Option<Arc<str>>,
    pub(crate) rules: Option<ViewRules>,
    pub(crate) of_caller: Option<ViewKey>,
}

/// The views of one snapshot, the one that was used last in front.
#[derive(Default)]
pub(crate) struct ViewCache(Mutex<VecDeque<(CacheKey, Arc<View>)>>);

impl ViewCache {
    pub(crate) fn get(&self, key: CacheKey, make: impl FnOnce() -> View) -> Arc<View> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().position(|(other, _)| *other == key).and_then(|at| known.remove(at));
        let (key, view) = found.unwrap_or_else(|| (key, Arc::new(make())));
        known.truncate(MAX_VIEWS - 1);
        known.push_front((key, view.clone()));
        view
    }
}

/// A list as somebody sees it.
pub(crate) enum ListSeen<'a> {
    /// All of it.
    Whole(&'a MergedList),
    /// What an endpoint has of it, the same for everybody who uses that.
    AtEndpoint(Arc<MergedList>),
    /// What one caller sees.
    Own(Box<MergedList>),
}

impl Deref for ListSeen<'_> {
    type Target = MergedList;

    fn deref(&self) -> &MergedList {
        match self {
            ListSeen::Whole(list) => list,
            ListSeen::AtEndpoint(list) => list,
            ListSeen::Own(list) => list,
        }
    }
}
