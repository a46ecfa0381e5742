//! Routing: which server a call belongs to, and what has to be changed about it on the way there and back.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use arc_swap::ArcSwap;
use bytestring::ByteString;
use tidegate_config::ServerSettings;
use tidegate_limits::{CallLimits, LimitStore, Pass, Target};
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::seal::Sealer;
use tidegate_protocol::{Error, Json, Method, Object, Params, Symbol};
use tidegate_service::layers::Front;
use tidegate_service::{BoxDoor, Call, Context, Reply, unknown_prompt, unknown_tool};

use crate::build::{Building, State};
use crate::checked::Check;
use crate::gateway::Dial;
use crate::kind::Kind;
use crate::link_owners::{LinkOwners, Recipient};
use crate::listen::{self, Subscribers};
use crate::mount::Mount;
use crate::snapshot::{Row, Table};
use crate::view::{Offer, OfferKind, Permit, Views};
use crate::{
    batch, complete, discover, extensions, links, list_request, merged_list, questions, request_state,
    search, tasks, unlisted,
};

/// Names the server that a method without a route of its own is for, in `_meta`.
pub(crate) const SERVER: &str = "dev.tidegate/server";

/// A server, and how it spells what was asked for. `None`: as the caller does.
pub(crate) struct Route {
    pub(crate) mount: Arc<Mount>,
    pub(crate) own: Option<ByteString>,
}

/// Among the extensions of a call for which one server was asked already: its caller has been counted.
#[derive(Debug)]
pub(crate) struct Counted;

/// Sends each call to the server that it is for: what all handles of a [`Gateway`](crate::Gateway) share.
pub(crate) struct Router {
    /// What is on offer. Calls read it without a lock.
    pub(crate) state: ArcSwap<State>,
    /// Who changes it does so one after the other.
    pub(crate) building: Mutex<Building>,
    /// Reloads are prepared one after the other, while nobody else has to wait.
    pub(crate) reloading: Mutex<()>,
    /// The states before this one, for cursors.
    pub(crate) earlier: Mutex<VecDeque<Arc<State>>>,
    pub(crate) subscribers: Subscribers,
    pub(crate) link_owners: LinkOwners,
    /// The front, for calls that hold other calls: each of those passes it, too.
    pub(crate) front: OnceLock<Weak<Front<BoxDoor>>>,
    /// Seals what clients bring back: cursors, handles of tasks.
    pub(crate) sealer: ArcSwap<Sealer>,
    pub(crate) dial: Dial,
    /// The servers that the program mounted itself, whatever the configuration says.
    pub(crate) mounted: Vec<ServerSettings>,
    /// What every call has to pass.
    pub(crate) checks: Arc<[Check]>,
    /// Who sees what, where that differs.
    pub(crate) views: Views,
    /// What was counted for the limits of the configuration.
    pub(crate) limit_store: Arc<LimitStore>,
    /// The entry of each modern result's `_meta` that says who answers.
    pub(crate) info: String,
    /// Which gateway this is, among gateways.
    pub(crate) id: Arc<str>,
}

impl Router {
    /// Answers a call.
    pub(crate) async fn answer(self: Arc<Self>, mut call: Call) -> Reply {
        call.context.hops += 1;
        if let Err(error) = call.context.check_hops() {
            return Reply::Error(error);
        }
        let answered = match &call.method {
            Method::ToolsCall => self.tool(call).await,
            Method::PromptsGet => self.prompt(call).await,
            Method::ResourcesRead => self.resource(call).await,
            // Boxed like everything rare here, so that the common path stays small.
            Method::Complete => Box::pin(complete::answer(&self, call)).await,
            Method::Discover => Box::pin(discover::answer(&self, &call)).await,
            Method::Listen => Box::pin(self.listen(&call)).await,
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => {
                Box::pin(tasks::answer(&self, call)).await
            }
            method => match Kind::listed_by(method) {
                Some(Kind::Tools) if unlisted::asked_for(&call).is_some() => {
                    Box::pin(unlisted::definition(&self, &call)).await
                }
                Some(kind) => Box::pin(self.list(kind, &call)).await,
                None => Box::pin(self.other(call)).await,
            },
        };
        answered.unwrap_or_else(Reply::Error)
    }

    async fn list(self: &Arc<Self>, kind: Kind, call: &Call) -> Result<Reply, Error> {
        // How large a list is nobody can help: pages are for that.
        let _pass = self.enter_here(call).await?;
        list_request::answer(self, kind, call).await
    }

    /// Opens a subscription, which holds no place while it is open.
    async fn listen(self: &Arc<Self>, call: &Call) -> Result<Reply, Error> {
        drop(self.enter_here(call).await?);
        listen::answer(self, call).await
    }

    /// Calls a tool.
    async fn tool(self: &Arc<Self>, mut call: Call) -> Result<Reply, Error> {
        let route = match self.permitted_tool(&call)? {
            Some(route) => route,
            None if search::is_own_tool(self, &call) => {
                return Box::pin(search::own_tool(self, call)).await;
            }
            None => {
                if let Some(reply) = Box::pin(unlisted::call(self, &mut call)).await {
                    return reply;
                }
                Box::pin(self.all_settled()).await;
                Box::pin(self.look_again(Kind::Tools)).await;
                match self.permitted_tool(&call)? {
                    Some(route) => route,
                    // A server that was just starting may have it.
                    None => {
                        let reply = Box::pin(unlisted::call(self, &mut call)).await;
                        let unknown = || Err(self.unknown(Kind::Tools, &call.params, &call.context));
                        return reply.unwrap_or_else(unknown);
                    }
                }
            }
        };
        self.send(route, "name", call).await
    }

    /// The server of a tool that is in the table, if the call may be made. What the caller does not see is not there.
    pub(crate) fn permitted_tool(&self, call: &Call) -> Result<Option<Route>, Error> {
        let state = self.state.load();
        let name = tool_name(call)?;
        let Some(row) = state.snapshot.tools.get(&name) else { return Ok(None) };
        let offer = Offer { kind: OfferKind::Tool, name: &name, server: state.mounts[row.server].name() };
        let arguments = || call.params.json("arguments");
        match self.views.permit(&state, &call.context, &offer, Some(&row.rules), arguments) {
            Permit::Granted => row.route(&state, &name).map(Some),
            Permit::Unknown => Ok(None),
            Permit::Refused => Err(row.withheld.clone().unwrap_or_else(|| refused(&offer))),
        }
    }

    /// The server of a tool that is in the table, if the caller sees it. Whether the call may be made is another question.
    pub(crate) fn known_tool(&self, call: &Call) -> Result<Option<Route>, Error> {
        let state = self.state.load();
        let name = tool_name(call)?;
        let Some(row) = state.snapshot.tools.get(&name) else { return Ok(None) };
        if !self.views.sees(&state, &call.context, OfferKind::Tool, &name, state.mounts[row.server].name()) {
            return Ok(None);
        }
        row.route(&state, &name).map(Some)
    }

    async fn prompt(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        let route = match self.permitted_prompt(&call)? {
            Some(route) => route,
            None => {
                Box::pin(self.look_again(Kind::Prompts)).await;
                let unknown = || self.unknown(Kind::Prompts, &call.params, &call.context);
                self.permitted_prompt(&call)?.ok_or_else(unknown)?
            }
        };
        self.send(route, "name", call).await
    }

    /// The server of a prompt, if it may be got. What the caller does not see is not there.
    fn permitted_prompt(&self, call: &Call) -> Result<Option<Route>, Error> {
        let state = self.state.load();
        let name = prompt_name(&call.params)?;
        let Some(row) = state.snapshot.prompts.get(&name) else { return Ok(None) };
        let offer = Offer { kind: OfferKind::Prompt, name: &name, server: state.mounts[row.server].name() };
        let arguments = || call.params.json("arguments");
        match self.views.permit(&state, &call.context, &offer, Some(&row.rules), arguments) {
            Permit::Granted => row.route(&state, &name).map(Some),
            Permit::Unknown => Ok(None),
            Permit::Refused => Err(refused(&offer)),
        }
    }

    /// The server of a prompt that the caller sees.
    pub(crate) fn known_prompt(&self, params: &Object, context: &Context) -> Result<Option<Route>, Error> {
        let state = self.state.load();
        let name = prompt_name(params)?;
        let row = state.snapshot.prompts.get(&name);
        let row = row.filter(|row| {
            let server = state.mounts[row.server].name();
            self.views.admits(&state, context, &Offer { kind: OfferKind::Prompt, name: &name, server })
        });
        row.map(|row| row.route(&state, &name)).transpose()
    }

    async fn resource(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        let uri = call.params.text("uri").ok_or_else(|| Error::invalid_params("\"uri\" must be a string"))?;
        let route = match self.whose(&uri, &call) {
            Some(route) => route,
            None => {
                Box::pin(self.look_again(Kind::Resources)).await;
                self.whose(&uri, &call).ok_or_else(|| self.no_resource(&uri, &call.context))?
            }
        };
        self.send(route, "uri", call).await
    }

    /// Whose a resource is that a call is about, if the caller sees it.
    pub(crate) fn whose(&self, uri: &ByteString, call: &Call) -> Option<Route> {
        let route = self.owner(uri, call)?;
        self.views.note_reading(&self.state.load(), &call.context, uri, &route.mount);
        self.views.may_read(&self.state.load(), &call.context, uri, &route.mount).then_some(route)
    }

    /// The same for one of many, of which each may be seen or not: nothing is said of it in the record of the call.
    pub(crate) fn whose_of_many(&self, uri: &ByteString, call: &Call) -> Option<Route> {
        let route = self.owner(uri, call)?;
        self.views.may_read(&self.state.load(), &call.context, uri, &route.mount).then_some(route)
    }

    /// Whose a resource is: by list, by template, by whoever last gave the address to this caller, by scheme. A template that fits
    /// every scheme comes last.
    fn owner(&self, uri: &ByteString, call: &Call) -> Option<Route> {
        let state = self.state.load();
        let uris = &state.snapshot.uris;
        if let Some((server, own)) = uris.find(uri).or_else(|| uris.qualified(uri)) {
            return Some(Route { mount: state.mounts[server].clone(), own: (own != *uri).then_some(own) });
        }
        // The address of a skill says whose it is, and nothing else does.
        if uris.is_of_skill(uri) {
            return None;
        }
        if let Some(mount) = self.link_owners.whose(&Recipient::of(&call.context), uri) {
            // A server that is gone answers no more.
            let mounted = state.mounts.iter().any(|other| Arc::ptr_eq(other, &mount));
            return mounted.then_some(Route { mount, own: None });
        }
        if !uris.candidates(uri).is_empty() {
            return None;
        }
        let only = match state.mounts.len() {
            1 => Some(0),
            _ => uris.only_of_scheme(uri),
        };
        let (server, own) = match only {
            Some(server) => (server, None),
            None => {
                let (server, own) = uris.find_any(uri)?;
                (server, (own != *uri).then_some(own))
            }
        };
        Some(Route { mount: state.mounts[server].clone(), own })
    }

    pub(crate) fn no_resource(&self, uri: &str, context: &Context) -> Error {
        let state = self.state.load();
        let candidates = state.snapshot.uris.candidates(uri).into_iter().filter(|(server, uri)| {
            self.views.sees(&state, context, OfferKind::Resource, uri, state.mounts[*server].name())
        });
        let names: Vec<String> = candidates.map(|(_, uri)| uri.to_string()).collect();
        if names.is_empty() {
            return Error::resource_not_found(uri);
        }
        let why = match state.snapshot.uris.is_of_skill(uri) {
            true => "the address of a skill begins with its server here".to_owned(),
            false => format!("several servers have {uri}"),
        };
        let what = format!("Resource not found: {why}; use {} instead", names.join(" or "));
        Error::new(Symbol::ResourceNotFound, what)
    }

    /// A method that has no route of its own: where its server is clear, it goes there as it is.
    async fn other(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        if call.method.as_str() == batch::METHOD && self.state.load().tools.batch {
            return batch::answer(self, call).await;
        }
        if let Some(answered) = extensions::answer(self, &call).await {
            return answered;
        }
        let state = self.state.load_full();
        if call.method == Method::RootsChanged {
            for mount in self.views.seen_servers(&state, &call.context) {
                mount.call(call.clone()).await;
            }
            return Ok(Reply::Complete(Json::empty_object()));
        }
        // Who sees a method may use it: it has no arguments that a policy knows.
        let is_there = |mount: &Mount| {
            let offer = Offer { kind: OfferKind::Method, name: call.method.as_str(), server: mount.name() };
            self.views.permit(&state, &call.context, &offer, None, || None) == Permit::Granted
        };
        let mount = match (extensions::named_server(&self.views, &state, &call)?, &state.mounts[..]) {
            (Some(named), _) => named,
            (None, [only]) => only.clone(),
            (None, _) => match call.params.text("uri").and_then(|uri| self.whose(&uri, &call)) {
                Some(route) if is_there(&route.mount) => return self.send(route, "uri", call).await,
                _ => return Err(Error::method_not_found(call.method.as_str())),
            },
        };
        if !is_there(&mount) {
            return Err(Error::method_not_found(call.method.as_str()));
        }
        self.send(Route { mount, own: None }, "", call).await
    }

    /// Sends a call to its server. `member` is the parameter that the server may spell in another way.
    pub(crate) async fn send(
        self: &Arc<Self>,
        route: Route,
        member: &str,
        mut call: Call,
    ) -> Result<Reply, Error> {
        let Route { mount, own } = route;
        if call.method.may_ask() {
            call = request_state::opened(self, call)?;
        }
        // As the caller wrote them: what is bound to them is bound to that.
        let params = call.params.clone();
        if let Some(own) = own {
            call.params = call.params.with(member, &Json::string(&own));
        }
        if mount.is_down() {
            return Err(down(&mount));
        }
        let pass = match self.state.load().limits.clone() {
            None => None,
            Some(limits) => Some(self.enter(&limits, &mount, &params, &mut call).await?),
        };
        let (method, recipient) = (call.method.clone(), Recipient::of(&call.context));
        let reply = mount.call(call).await;
        if let Some(pass) = pass {
            pass.answered(&reply)?;
        }
        let reply = match reply {
            Reply::Complete(result) if self.is_kept_private(&method) => {
                Reply::Complete(merged_list::for_one_caller(result))
            }
            reply => reply,
        };
        Ok(match reply {
            Reply::Complete(result) if method.may_ask() && links::may_hold(result.as_str()) => {
                Reply::Complete(self.with_offered_uris(&mount, &method, &recipient, result))
            }
            Reply::InputRequired(input) => {
                let input = request_state::sealed(self, &method, &params, &recipient, input)?;
                Reply::InputRequired(questions::naming(mount.name(), input))
            }
            Reply::Task(task) => {
                let tool = params.str("name").filter(|_| method == Method::ToolsCall);
                Reply::Task(tasks::sealed(self, &mount, &recipient, tool.as_deref(), &task))
            }
            reply => reply,
        })
    }

    /// Has a call to a server pass the limits of the configuration. `params` are as the caller wrote them.
    async fn enter(
        &self,
        limits: &CallLimits,
        mount: &Mount,
        params: &Params,
        call: &mut Call,
    ) -> Result<Pass, Error> {
        let entering = {
            let state = self.state.load();
            let name = params.str("name").filter(|_| call.method == Method::ToolsCall);
            // Only what is in the table is counted by its name: anybody can make up others.
            let tool = name.as_deref();
            let is_unlisted = tool.is_some_and(|name| state.snapshot.tools.get(name).is_none());
            let is_counted = call.context.extensions.get::<Counted>().is_some();
            let server = Some(mount.name());
            let target = Target { server, tool, is_part: false, is_counted, is_unlisted };
            limits.enter(&self.limit_store, call, target)?
        };
        let pass = entering.pass().await?;
        // A server of this program may make calls in turn, which wait for nothing that this one has.
        if mount.is_of_program()
            && let Some(held) = pass.held()
        {
            call.context.extensions.insert(held);
        }
        Ok(pass)
    }

    /// Has a call that the gateway answers itself pass the limits of the configuration; `None` if there are none.
    pub(crate) async fn enter_here(&self, call: &Call) -> Result<Option<Pass>, Error> {
        let Some(limits) = self.state.load().limits.clone() else { return Ok(None) };
        limits.enter(&self.limit_store, call, Target::default())?.pass().await.map(Some)
    }

    /// Whether no shared cache may keep what a method brings: where not everybody is let in, or not everybody may do everything,
    /// what it brings to one is not for everybody.
    fn is_kept_private(&self, method: &Method) -> bool {
        let depends_on_caller = || {
            let state = self.state.load();
            state.is_authenticated || state.policy.is_some()
        };
        match method {
            Method::ResourcesRead => depends_on_caller(),
            Method::Other(name) => extensions::is_of_resources(name) && depends_on_caller(),
            _ => false,
        }
    }

    /// Notes the addresses in a result, and changes those that are offered under others.
    pub(crate) fn with_offered_uris(
        &self,
        mount: &Arc<Mount>,
        method: &Method,
        recipient: &Recipient,
        result: Json,
    ) -> Json {
        let state = self.state.load();
        let server = state.mounts.iter().position(|other| Arc::ptr_eq(other, mount));
        let changed = links::in_result(method, &result, &mut |uri| {
            let offered = server.and_then(|server| state.snapshot.uris.offered(server, uri));
            if offered.is_none() {
                self.link_owners.note(recipient, uri, mount);
            }
            offered
        });
        changed.unwrap_or(result)
    }

    /// A tool or a prompt that nobody has, with the names that were probably meant. A server that is not there yet may have
    /// it.
    pub(crate) fn unknown(&self, kind: Kind, params: &Object, context: &Context) -> Error {
        let name = params.str("name").unwrap_or_default();
        let state = self.state.load();
        let callable = |table: &Table| -> Vec<String> {
            let rows = table.iter().filter(|(_, row)| row.withheld.is_none());
            let rows = rows.filter(|(name, row)| {
                self.views.sees(&state, context, kind.into(), name, state.mounts[row.server].name())
            });
            rows.map(|(name, _)| name.to_string()).collect()
        };
        let error = match kind {
            Kind::Tools => {
                let own = state.own_tools(context).iter().copied();
                unknown_tool(&name, own.chain(callable(&state.snapshot.tools).iter().map(String::as_str)))
            }
            _ => unknown_prompt(&name, callable(&state.snapshot.prompts).iter().map(String::as_str)),
        };
        let restriction = self.views.restriction(&state, context);
        // A name that begins as those of a server do is about that one, whatever else is not there.
        let has_prefix = state.mounts.iter().any(|mount| {
            let prefix = mount.settings.prefix.as_str();
            !prefix.is_empty() && name.starts_with(prefix)
        });
        let silent: Vec<_> = state
            .mounts
            .iter()
            .filter(|mount| restriction.as_ref().is_none_or(|one| one.may_name(mount.name(), kind)))
            .filter(|mount| mount.catalog().part(kind).is_none())
            .filter(|mount| !has_prefix || name.starts_with(mount.settings.prefix.as_str()))
            .map(|mount| match mount.is_down() {
                true => mount.down_in_words(),
                false => format!("The server {:?} is still starting", mount.name()),
            })
            .collect();
        match silent.is_empty() {
            true => error,
            false => {
                let sentence = format!("{} ({})", error.message(), silent.join("; "));
                error.with_message(sentence)
            }
        }
    }

    pub(crate) fn building(&self) -> MutexGuard<'_, Building> {
        self.building.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn earlier(&self) -> MutexGuard<'_, VecDeque<Arc<State>>> {
        self.earlier.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The whole way of a call, for those that are made of another one.
    pub(crate) fn front(&self) -> Result<Front<BoxDoor>, Error> {
        let front = self.front.get().and_then(Weak::upgrade);
        front
            .map(|front| (*front).clone())
            .ok_or_else(|| Error::new(Symbol::Unavailable, "The gateway is closed"))
    }
}

/// The tool that a call is for.
fn tool_name(call: &Call) -> Result<Cow<'_, str>, Error> {
    call.params.str("name").ok_or_else(|| Error::invalid_params("\"name\" must be a string"))
}

fn prompt_name(params: &Object) -> Result<Cow<'_, str>, Error> {
    params.str("name").ok_or_else(|| Error::invalid_params("\"name\" must be a string"))
}

impl Row {
    /// Where calls of this name go.
    fn route(&self, state: &State, name: &str) -> Result<Route, Error> {
        match &self.withheld {
            Some(why) => Err(why.clone()),
            None => {
                let own = (self.own != *name).then(|| self.own.clone());
                Ok(Route { mount: state.mounts[self.server].clone(), own })
            }
        }
    }
}

/// What somebody is told who sees something and may not use it in this way. Which rule says so is not their business.
pub(crate) fn refused(offer: &Offer<'_>) -> Error {
    let what = match offer.kind {
        OfferKind::Tool => "call",
        _ => "request",
    };
    let name = offer.name;
    let message = format!(
        "The policy of this gateway does not allow this {what} of {name:?} with these arguments. Change the arguments, or ask whoever runs the gateway"
    );
    let error = Error::new(Symbol::Forbidden, message).unexecuted();
    match offer.kind {
        // The result that becomes of it says so.
        OfferKind::Tool => error,
        _ => error.with_data_member("symbol", &Json::string(Symbol::Forbidden.as_str())),
    }
}

/// What is said instead of making a caller wait for a server that is known to be down. The whole of why is in the log, and
/// the business of whoever runs the gateway.
fn down(mount: &Mount) -> Error {
    // It may be back: ask sooner than planned.
    mount.wake.notify_one();
    let mut data = ObjectWriter::new();
    data.str("circuitState", mount.client.circuit().state().as_str());
    let error = Error::new(Symbol::Unavailable, mount.down_in_words()).unexecuted().with_data(data.finish());
    match mount.down_because() {
        Some(why) => error.with_detail(why),
        None => error,
    }
}

impl Drop for Router {
    /// Nobody can call any more: the supervisors go, and with them the connections.
    fn drop(&mut self) {
        for mount in &self.state.load().mounts {
            mount.over.cancel();
        }
    }
}
