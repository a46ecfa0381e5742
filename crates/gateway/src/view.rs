//! Views: what some callers see of what all servers offer.
//!
//! There is one snapshot for everybody. Where something restricts callers, a [`Visibility`] says which view each of them has;
//! a view is made once from the snapshot, as lists of indices into it, and shared by everybody who has it. Without a
//! [`Visibility`], or for callers that it does not restrict, nothing is made and nothing is looked up. Names do not depend on
//! the view.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use bytestring::ByteString;
use tidegate_protocol::Json;
use tidegate_service::{Call, Context};

use crate::build::State;
use crate::extensions::{named_server, sees_skill};
use crate::kind::Kind;
use crate::merged_list::MergedList;
use crate::mount::Mount;

/// Most views that are kept of one snapshot. The one that was not used for longest is made anew when it is wanted again.
const MAX_VIEWS: usize = 256;

/// Which view somebody has: callers with equal keys see the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ViewKey {
    /// The endpoint that was called, where there are several.
    pub endpoint: Option<Arc<str>>,
    /// The rules that apply to the caller, a bit for each.
    pub rules: Arc<[u64]>,
}

/// Something that a server offers.
#[derive(Debug, Clone, Copy)]
pub struct Offer<'a> {
    /// What it is.
    pub kind: OfferKind,
    /// The name of a tool or prompt as callers use it; the address of a resource; the method of an extension.
    pub name: &'a str,
    /// The server that offers it.
    pub server: &'a str,
}

/// What is offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferKind {
    /// A tool.
    Tool,
    /// A prompt.
    Prompt,
    /// A resource.
    Resource,
    /// A resource template.
    ResourceTemplate,
    /// A method that no revision defines.
    Method,
}

/// Says who sees what.
pub trait Visibility: Send + Sync + 'static {
    /// The view of whoever makes this call; `None` for everything.
    fn view(&self, context: &Context) -> Option<ViewKey>;

    /// Whether something is in a view. It must answer the same for the same view and offer.
    fn shows(&self, view: &ViewKey, offer: &Offer<'_>) -> bool;
}

/// One entry of a list of the snapshot.
#[derive(Debug)]
pub(crate) struct Listed {
    pub(crate) name: ByteString,
    /// The server, by its place in the configuration; none for what is the gateway's own.
    pub(crate) server: Option<usize>,
    pub(crate) definition: Json,
}

/// The entries of each list that are shown, by their index in the snapshot.
type View = [Vec<u32>; Kind::COUNT];

/// The views of one snapshot, the one that was used last in front.
#[derive(Default)]
pub(crate) struct ViewCache(Mutex<VecDeque<(ViewKey, Arc<View>)>>);

impl ViewCache {
    fn get(&self, key: &ViewKey, make: impl FnOnce() -> View) -> Arc<View> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().position(|(other, _)| other == key).and_then(|at| known.remove(at));
        let (key, view) = found.unwrap_or_else(|| (key.clone(), Arc::new(make())));
        known.truncate(MAX_VIEWS - 1);
        known.push_front((key, view.clone()));
        view
    }
}

impl From<Kind> for OfferKind {
    fn from(kind: Kind) -> OfferKind {
        match kind {
            Kind::Tools => OfferKind::Tool,
            Kind::Prompts => OfferKind::Prompt,
            Kind::Resources | Kind::Skills => OfferKind::Resource,
            Kind::Templates => OfferKind::ResourceTemplate,
        }
    }
}

/// Who sees what of a gateway.
#[derive(Default)]
pub(crate) struct Views(pub(crate) Option<Arc<dyn Visibility>>);

impl Views {
    /// Whether a caller sees something. What is not seen is unknown.
    pub(crate) fn sees(&self, context: &Context, kind: OfferKind, name: &str, server: &str) -> bool {
        let Some(visibility) = &self.0 else { return true };
        let Some(view) = visibility.view(context) else { return true };
        visibility.shows(&view, &Offer { kind, name, server })
    }

    /// Whether there may be something that a caller does not see.
    pub(crate) fn is_restricted(&self, context: &Context) -> bool {
        self.0.as_ref().is_some_and(|visibility| visibility.view(context).is_some())
    }

    /// Whether a caller sees the tool of this name.
    pub(crate) fn sees_tool(&self, state: &State, context: &Context, name: &str) -> bool {
        self.0.is_none()
            || state
                .snapshot
                .tools
                .get(name)
                .is_some_and(|row| self.sees(context, OfferKind::Tool, name, state.mounts[row.server].name()))
    }

    /// The view of whoever makes a call; none if that is everything.
    fn view(&self, state: &State, call: &Call) -> Option<Arc<View>> {
        let visibility = self.0.as_ref()?;
        let key = visibility.view(&call.context)?;
        Some(state.views.get(&key, || {
            Kind::ALL.map(|kind| {
                let entries = state.snapshot.entries[kind.index()].iter().enumerate();
                let shown = entries.filter(|(_, entry)| match entry.server {
                    None => true,
                    Some(server) => {
                        let server = state.mounts.get(server).map_or("", |mount| mount.name());
                        let shows = |kind, name: &str| visibility.shows(&key, &Offer { kind, name, server });
                        match kind {
                            Kind::Skills => {
                                shows(OfferKind::Method, kind.method().as_str())
                                    && sees_skill(&entry.definition, |uri| shows(OfferKind::Resource, uri))
                            }
                            _ => shows(kind.into(), &entry.name),
                        }
                    }
                });
                shown.map(|(at, _)| at as u32).collect()
            })
        }))
    }

    /// A list as the caller of `call` sees it.
    pub(crate) fn list_for<'a>(&self, state: &'a State, kind: Kind, call: &Call) -> Cow<'a, MergedList> {
        let whole = state.snapshot.list(kind);
        // Some want to know what one server has of it.
        let only = match kind {
            Kind::Skills => named_server(state, call).ok().flatten(),
            _ => None,
        };
        let view = self.view(state, call);
        if view.is_none() && only.is_none() {
            return Cow::Borrowed(whole);
        }
        let entries: Vec<&Listed> = match &view {
            Some(view) => shown(state, view, kind).collect(),
            None => state.snapshot.entries[kind.index()].iter().collect(),
        };
        let is_of = |at: usize, only: &Arc<Mount>| state.mounts.get(at).is_some_and(|m| Arc::ptr_eq(m, only));
        let is_wanted = |entry: &&&Listed| {
            only.as_ref().is_none_or(|only| entry.server.is_some_and(|at| is_of(at, only)))
        };
        let shown = entries.iter().filter(is_wanted).map(|entry| &entry.definition);
        // It depends on who asks, so nobody may show it to anybody else.
        Cow::Owned(whole.narrowed(shown, state.tools.page_bytes))
    }

    /// The definitions of the tools that the caller of `call` sees listed.
    pub(crate) fn shown_tools(&self, state: &State, call: &Call) -> Vec<Json> {
        let entries = &state.snapshot.entries[Kind::Tools.index()];
        match self.view(state, call) {
            None => entries.iter().map(|entry| entry.definition.clone()).collect(),
            Some(view) => shown(state, &view, Kind::Tools).map(|entry| entry.definition.clone()).collect(),
        }
    }

    /// The servers that the caller of `call` knows of: those of which it sees something, and those that list nothing.
    pub(crate) fn seen_servers(&self, state: &State, call: &Call) -> Vec<Arc<Mount>> {
        let Some(view) = self.view(state, call) else { return state.mounts.clone() };
        let is_of = |entry: &Listed, at: usize| entry.server == Some(at);
        let is_seen = |at: &usize| {
            let lists_nothing = !state.snapshot.entries.iter().flatten().any(|entry| is_of(entry, *at));
            lists_nothing
                || Kind::ALL.iter().any(|kind| shown(state, &view, *kind).any(|entry| is_of(entry, *at)))
        };
        (0..state.mounts.len()).filter(is_seen).map(|at| state.mounts[at].clone()).collect()
    }
}

/// The entries of a list that are in a view.
fn shown<'a>(state: &'a State, view: &'a View, kind: Kind) -> impl Iterator<Item = &'a Listed> {
    let entries = &state.snapshot.entries[kind.index()];
    view[kind.index()].iter().filter_map(|at| entries.get(*at as usize))
}
