//! Views: what some callers see of what all servers offer.
//!
//! There is one snapshot for everybody. Three things restrict what callers see of it: the endpoint that they use (see
//! [`endpoints`](crate::endpoints)), the policy of the configuration, and a [`Visibility`] of the application. A view is made once from the snapshot, as lists of
//! indices into it, and shared by everybody who has it. Where nothing restricts a caller, nothing is made and nothing is looked
//! up. Names do not depend on the view.

use std::sync::Arc;

use tidegate_policy::{Caller, Object, ObjectKind, Policy, RuleSet};
use tidegate_protocol::Json;
use tidegate_service::events::{self, Event, OfferHidden};
use tidegate_service::{Call, Context, Current, Decision};

use crate::build::State;
use crate::endpoints::Endpoint;
use crate::extensions::{self, named_server};
use crate::kind::Kind;
use crate::mount::Mount;
use crate::shown::{CacheKey, ListSeen, Listed, View};
use crate::uris::may_lead_elsewhere;

/// Which view somebody has: callers with equal keys see the same.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct ViewKey {
    /// The endpoint that was called, if that matters to the [`Visibility`]. What the configuration selects for it counts in
    /// any case.
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

/// What restricts a caller: the endpoint, the policy, a rule of the application, or some of these. What is seen is what all
/// of them show.
pub(crate) struct Restriction<'a> {
    pub(crate) endpoint: Option<&'a Endpoint>,
    policy: Option<(&'a Policy, Caller<'a>)>,
    of_caller: Option<(&'a dyn Visibility, ViewKey)>,
}

impl Restriction<'_> {
    pub(crate) fn shows(&self, offer: &Offer<'_>) -> bool {
        self.endpoint.is_none_or(|endpoint| endpoint.shows(offer)) && self.shows_to_caller(offer)
    }

    /// Whether the policy and the application show it, wherever that is.
    fn shows_to_caller(&self, offer: &Offer<'_>) -> bool {
        // What is asked for with these are resources, each of which is looked at.
        let asks_for_resources = offer.kind == OfferKind::Method && extensions::is_of_resources(offer.name);
        let by_policy = |(policy, caller): &(&Policy, Caller<'_>)| policy.shows(caller, &offer.into());
        (asks_for_resources || self.policy.as_ref().is_none_or(by_policy)) && self.application_shows(offer)
    }

    fn application_shows(&self, offer: &Offer<'_>) -> bool {
        self.of_caller.as_ref().is_none_or(|(visibility, view)| visibility.shows(view, offer))
    }

    /// Whether a server may be named of which nobody knows yet what it lists of a kind.
    pub(crate) fn may_name(&self, server: &str, kind: Kind) -> bool {
        self.endpoint.is_none_or(|endpoint| endpoint.may_name(server, kind)) && self.has_all_by_policy(server)
    }

    /// Whether everything of a server is there: what nobody can say is about a certain thing of it may be about any.
    pub(crate) fn has_all_of(&self, server: &str) -> bool {
        self.endpoint.is_none_or(|endpoint| endpoint.has_all_of(server)) && self.has_all_by_policy(server)
    }

    fn has_all_by_policy(&self, server: &str) -> bool {
        let anything = Object { kind: ObjectKind::Method, name: "*", server };
        self.policy.as_ref().is_none_or(|(policy, caller)| policy.shows(caller, &anything))
    }

    /// Whether it is known who calls, as far as it should be.
    pub(crate) fn knows_caller(&self) -> bool {
        self.policy.as_ref().is_none_or(|(_, caller)| !caller.is_unknown())
    }

    /// Whether resources of a server can be there, whatever their addresses are.
    fn may_have_resources_of(&self, server: &str) -> bool {
        let may_show = |(policy, caller): &(&Policy, Caller<'_>)| {
            policy.may_show_any(caller, ObjectKind::Resource, server)
        };
        self.endpoint.is_none_or(|endpoint| endpoint.has_resources_of(server))
            && self.policy.as_ref().is_none_or(may_show)
    }

    /// Whether it depends on who calls, and not on the endpoint alone.
    pub(crate) fn is_of_caller(&self) -> bool {
        self.policy.is_some() || self.of_caller.is_some()
    }

    fn key(&self, context: &Context) -> CacheKey {
        CacheKey {
            endpoint: context.endpoint.clone(),
            rules: self.policy.as_ref().map(|(policy, caller)| policy.view_rules(caller)),
            of_caller: self.of_caller.as_ref().map(|(_, key)| key.clone()),
        }
    }
}

impl<'a> From<&Offer<'a>> for Object<'a> {
    fn from(offer: &Offer<'a>) -> Object<'a> {
        let kind = match offer.kind {
            OfferKind::Tool => ObjectKind::Tool,
            OfferKind::Prompt => ObjectKind::Prompt,
            OfferKind::Resource | OfferKind::ResourceTemplate => ObjectKind::Resource,
            OfferKind::Method => ObjectKind::Method,
        };
        Object { kind, name: offer.name, server: offer.server }
    }
}

/// Whether something may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    Granted,
    /// Not with these arguments, and the caller knows that it exists.
    Refused,
    /// Not at all: whoever asks is told that it is unknown.
    Unknown,
}

/// Who sees what of a gateway: what the endpoint has, as far as the policy and the application show it.
#[derive(Default)]
pub(crate) struct Views(pub(crate) Option<Arc<dyn Visibility>>);

impl Views {
    /// What restricts whoever makes a call; `None` if nothing does.
    pub(crate) fn restriction<'a>(
        &'a self,
        state: &'a State,
        context: &'a Context,
    ) -> Option<Restriction<'a>> {
        let endpoint = state.endpoints.of(context);
        let policy = state.policy.as_deref().map(|policy| (policy, state.caller(policy, context)));
        let of_caller =
            self.0.as_deref().and_then(|visibility| Some((visibility, visibility.view(context)?)));
        let is_there = endpoint.is_some() || policy.is_some() || of_caller.is_some();
        is_there.then_some(Restriction { endpoint, policy, of_caller })
    }

    /// Whether whoever makes a call may do something: with these arguments, if it has any. What a policy says to it goes into the
    /// record of the call. `rules` are those that are about it, where they are known.
    pub(crate) fn permit(
        &self,
        state: &State,
        context: &Context,
        offer: &Offer<'_>,
        rules: Option<&RuleSet>,
        arguments: impl FnOnce() -> Option<Json>,
    ) -> Permit {
        let (permit, decision) = self.judge(state, context, offer, rules, arguments);
        decision.into_iter().for_each(Current::decided);
        if permit == Permit::Unknown && decision.is_none() && events::is_wanted(events::Kind::OfferHidden) {
            self.tell_hidden(state, context, offer);
        }
        permit
    }

    /// Tells recorders who hides something from a caller, whom nobody tells that it is there.
    fn tell_hidden(&self, state: &State, context: &Context, offer: &Offer<'_>) {
        let Some(restriction) = self.restriction(state, context) else { return };
        let why = match restriction.endpoint.is_none_or(|endpoint| endpoint.shows(offer)) {
            false => "the endpoint does not select it",
            true => "the application hides it from this caller",
        };
        let hidden = OfferHidden { name: offer.name, server: offer.server, why };
        events::emit(&Event::OfferHidden(hidden));
    }

    /// The same for what is not the call at hand, with what a policy says to it.
    pub(crate) fn judge<'a>(
        &'a self,
        state: &'a State,
        context: &'a Context,
        offer: &Offer<'_>,
        rules: Option<&RuleSet>,
        arguments: impl FnOnce() -> Option<Json>,
    ) -> (Permit, Option<&'a Arc<Decision>>) {
        let Some(restriction) = self.restriction(state, context) else { return (Permit::Granted, None) };
        let is_at_endpoint = restriction.endpoint.is_none_or(|endpoint| endpoint.shows(offer));
        if !is_at_endpoint || !restriction.application_shows(offer) {
            return (Permit::Unknown, None);
        }
        let Some((policy, caller)) = &restriction.policy else { return (Permit::Granted, None) };
        let object = Object::from(offer);
        let found = rules.is_none().then(|| policy.about(&object));
        let Some(rules) = rules.or(found.as_ref()) else { return (Permit::Unknown, None) };
        let arguments = if object.kind.has_arguments() { arguments() } else { None };
        let decision = policy.decide_among(caller, rules, &object, arguments.as_ref());
        let permit = match decision.refuses() {
            false => Permit::Granted,
            true if policy.shows_among(caller, rules, &object) => Permit::Refused,
            true => Permit::Unknown,
        };
        (permit, Some(decision))
    }

    /// Whether whoever makes a call may ask for something that belongs to what they see, such as values for the arguments of a
    /// prompt, or a task of a tool. What a policy says to it goes into the record of the call, unless that depends on arguments.
    pub(crate) fn admits(&self, state: &State, context: &Context, offer: &Offer<'_>) -> bool {
        let (permit, decision) = self.judge(state, context, offer, None, || None);
        if permit != Permit::Refused {
            decision.into_iter().for_each(Current::decided);
        }
        permit != Permit::Unknown
    }

    /// Whether a caller sees something. What is not seen is unknown.
    pub(crate) fn sees(
        &self,
        state: &State,
        context: &Context,
        kind: OfferKind,
        name: &str,
        server: &str,
    ) -> bool {
        let restriction = self.restriction(state, context);
        restriction.is_none_or(|restriction| restriction.shows(&Offer { kind, name, server }))
    }

    /// Whether a caller may read the resource at an address of a server. At an endpoint that has a template, everything that
    /// fits it may be read.
    pub(crate) fn may_read(&self, state: &State, context: &Context, uri: &str, mount: &Arc<Mount>) -> bool {
        let Some(restriction) = self.restriction(state, context) else { return true };
        let offer = |kind, name| Offer { kind, name, server: mount.name() };
        let address = offer(OfferKind::Resource, uri);
        let fits = |endpoint: &Endpoint| {
            let server = state.mounts.iter().position(|other| Arc::ptr_eq(other, mount));
            let templates =
                server.map(|server| state.snapshot.uris.templates_of(server, uri)).unwrap_or_default();
            !may_lead_elsewhere(uri)
                && templates.into_iter().any(|one| endpoint.shows(&offer(OfferKind::ResourceTemplate, one)))
        };
        let is_there = |endpoint: &Endpoint| endpoint.shows(&address) || fits(endpoint);
        restriction.endpoint.is_none_or(is_there) && restriction.shows_to_caller(&address)
    }

    /// Notes in the record of a call what the policy says to reading a resource of a server.
    pub(crate) fn note_reading(&self, state: &State, context: &Context, uri: &str, mount: &Mount) {
        if let Some(policy) = &state.policy {
            let object = Object { kind: ObjectKind::Resource, name: uri, server: mount.name() };
            Current::decided(policy.decide(&state.caller(policy, context), &object, None));
        }
    }

    /// Whether there may be something that a caller does not see.
    pub(crate) fn is_restricted(&self, state: &State, context: &Context) -> bool {
        self.restriction(state, context).is_some()
    }

    /// Whether everything of a server is there for a caller.
    pub(crate) fn has_all_of(&self, state: &State, context: &Context, server: &str) -> bool {
        self.restriction(state, context).is_none_or(|restriction| restriction.has_all_of(server))
    }

    /// Whether resources of a server can be there for a caller, whatever their addresses are.
    pub(crate) fn may_have_resources_of(&self, state: &State, context: &Context, server: &str) -> bool {
        self.restriction(state, context).is_none_or(|restriction| restriction.may_have_resources_of(server))
    }

    /// Whether a caller knows of a server: at this endpoint, and with something of it that the policy shows.
    pub(crate) fn knows_server(&self, state: &State, context: &Context, server: &str) -> bool {
        let Some(view) = self.view(state, context) else { return true };
        let at = state.mounts.iter().position(|mount| mount.name() == server);
        at.is_some_and(|at| view.servers.get(at) == Some(&true))
    }

    /// The view of whoever makes a call; none if that is everything.
    pub(crate) fn view(&self, state: &State, context: &Context) -> Option<Arc<View>> {
        let restriction = self.restriction(state, context)?;
        let key = restriction.key(context);
        Some(state.views.get(key, || View::new(state, &restriction, state.mode(context))))
    }

    /// By what the view of whoever makes a call is found; none if that is everything.
    pub(crate) fn key(&self, state: &State, context: &Context) -> Option<CacheKey> {
        Some(self.restriction(state, context)?.key(context))
    }

    /// A list as the caller of `call` sees it.
    pub(crate) fn list_for<'a>(&self, state: &'a State, kind: Kind, call: &Call) -> ListSeen<'a> {
        let whole = state.snapshot.list(kind);
        // Some want to know what one server has of it.
        let only = match kind {
            Kind::Skills => named_server(self, state, call).ok().flatten(),
            _ => None,
        };
        let view = self.view(state, &call.context);
        let entries: Vec<&Listed> = match (&view, &only) {
            (None, None) => return ListSeen::Whole(whole),
            (Some(view), None) if !view.is_of_caller => return ListSeen::AtEndpoint(view.list(state, kind)),
            (Some(view), _) => view.shown(state, kind).collect(),
            (None, _) => state.snapshot.entries(kind, state.tools.mode).iter().collect(),
        };
        let is_of = |at: usize, only: &Arc<Mount>| state.mounts.get(at).is_some_and(|m| Arc::ptr_eq(m, only));
        let is_wanted = |entry: &&&Listed| {
            only.as_ref().is_none_or(|only| entry.server.is_some_and(|at| is_of(at, only)))
        };
        let shown = entries.iter().filter(is_wanted).map(|entry| &entry.definition);
        // It depends on who asks, so nobody may show it to anybody else.
        ListSeen::Own(Box::new(whole.narrowed(shown, state.tools.page_bytes).for_one_caller()))
    }

    /// The definitions of the tools that the caller of `call` sees listed.
    pub(crate) fn shown_tools(&self, state: &State, context: &Context) -> Vec<Json> {
        match self.view(state, context) {
            None => {
                let entries = state.snapshot.entries(Kind::Tools, state.tools.mode);
                entries.iter().map(|entry| entry.definition.clone()).collect()
            }
            Some(view) => view.shown(state, Kind::Tools).map(|entry| entry.definition.clone()).collect(),
        }
    }

    /// The servers that a caller knows of.
    pub(crate) fn seen_servers(&self, state: &State, context: &Context) -> Vec<Arc<Mount>> {
        let Some(view) = self.view(state, context) else { return state.mounts.clone() };
        let known = state.mounts.iter().zip(&view.servers).filter(|(_, is_known)| **is_known);
        known.map(|(mount, _)| mount.clone()).collect()
    }

    /// How many tools of a server a caller sees; `None` if all.
    pub(crate) fn count_tools(&self, state: &State, context: &Context, mount: &Arc<Mount>) -> Option<usize> {
        let restriction = self.restriction(state, context)?;
        let rows =
            state.snapshot.tools.iter().filter(|(_, row)| Arc::ptr_eq(&state.mounts[row.server], mount));
        let offer = |name| Offer { kind: OfferKind::Tool, name, server: mount.name() };
        Some(rows.filter(|(name, _)| restriction.shows(&offer(name))).count())
    }

    /// Which lists are others than they were to a caller who does not see everything, or did not.
    pub(crate) fn changed(&self, before: &State, now: &State, context: &Context) -> Vec<Kind> {
        let (old, new) = (self.view(before, context), self.view(now, context));
        let is_same = |kind: &Kind| {
            let old = shown_of(old.as_deref(), before, *kind).map(|entry| entry.definition.as_str());
            old.eq(shown_of(new.as_deref(), now, *kind).map(|entry| entry.definition.as_str()))
        };
        Kind::ALL.into_iter().filter(|kind| !is_same(kind)).collect()
    }
}

/// The entries of a list as a view has them; without one, all.
fn shown_of<'a>(view: Option<&'a View>, state: &'a State, kind: Kind) -> impl Iterator<Item = &'a Listed> {
    let all = view.is_none().then(|| state.snapshot.entries(kind, state.tools.mode).iter());
    let some = view.map(|view| view.shown(state, kind));
    all.into_iter().flatten().chain(some.into_iter().flatten())
}
