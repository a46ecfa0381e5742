//! Routing: which server a call belongs to, and what has to be changed about it on the way there and back.

use std::sync::Arc;
use std::time::Instant;

use bytestring::ByteString;
use tidegate_config::PinMode;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Limits, Method, Object, Params, Symbol, meta};
use tidegate_service::{Call, Context, Current, HOP_LIMIT, Reply, UNLISTED, unknown_prompt, unknown_tool};

use crate::emitted::Whom;
use crate::gateway::Inner;
use crate::kind::Kind;
use crate::links;
use crate::list::List;
use crate::mount::Mount;
use crate::questions;
use crate::search;
use crate::snapshot::Table;
use crate::view::OfferKind;

/// Names the server that a method without a place of its own is for, in `_meta`.
const SERVER: &str = "dev.tidegate/server";

/// A server, and how it spells what was asked for. `None`: as the caller does.
pub(crate) struct Place {
    pub(crate) mount: Arc<Mount>,
    pub(crate) own: Option<ByteString>,
}

impl Inner {
    /// Answers a call.
    pub(crate) async fn answer(self: Arc<Self>, mut call: Call) -> Reply {
        call.context.hops += 1;
        if call.context.hops > HOP_LIMIT {
            let what = format!("The call passed through more than {HOP_LIMIT} gateways: they form a loop");
            return Reply::Error(Error::new(Symbol::LoopDetected, what));
        }
        let answered = match &call.method {
            Method::ToolsCall => self.tool(call).await,
            Method::PromptsGet => self.prompt(call).await,
            Method::ResourcesRead => self.resource(call).await,
            // Boxed like everything rare here, so that the common path stays small.
            Method::Complete => Box::pin(self.complete(call)).await,
            Method::Discover => Box::pin(self.discover(&call)).await,
            Method::Listen => Box::pin(self.listen(&call)).await,
            Method::TasksGet | Method::TasksUpdate | Method::TasksCancel => Box::pin(self.task(call)).await,
            method => match Kind::listed_by(method) {
                Some(Kind::Tools) if asked_for(&call).is_some() => {
                    Box::pin(self.unlisted_definition(&call)).await
                }
                Some(kind) => Box::pin(self.list(kind, &call)).await,
                None => Box::pin(self.other(call)).await,
            },
        };
        answered.unwrap_or_else(Reply::Error)
    }

    /// Calls a tool.
    async fn tool(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        let place = match self.known_tool(&call)? {
            Some(place) => place,
            None if self.is_own_tool(&call.params) => return Box::pin(self.own_tool(call)).await,
            None => {
                if let Some(reply) = Box::pin(self.unlisted_tool(&call)).await {
                    return reply;
                }
                Box::pin(self.all_settled()).await;
                Box::pin(self.look_again(Kind::Tools)).await;
                match self.known_tool(&call)? {
                    Some(place) => place,
                    // A server that was just starting may have it.
                    None => {
                        let unknown = || Err(self.unknown(Kind::Tools, &call.params, &call.context));
                        return Box::pin(self.unlisted_tool(&call)).await.unwrap_or_else(unknown);
                    }
                }
            }
        };
        self.send(place, "name", call).await
    }

    /// Calls a tool that nobody lists, if one of the servers that have such tools knows it.
    async fn unlisted_tool(self: &Arc<Self>, call: &Call) -> Option<Result<Reply, Error>> {
        let name = call.params.str("name")?;
        for place in self.with_unlisted_tools(&name, &call.context) {
            match self.send(place, "name", call.clone()).await {
                Ok(Reply::Error(error)) | Err(error) if error.symbol() == Symbol::ToolNotFound => {}
                Ok(Reply::Complete(result)) if says_unknown(&result) => {}
                reply => return Some(reply),
            }
        }
        Current::sent_nowhere();
        None
    }

    /// The definition of a tool that nobody lists, as a list of one; an empty list if nobody has it.
    async fn unlisted_definition(self: &Arc<Self>, call: &Call) -> Result<Reply, Error> {
        let name = asked_for(call).unwrap_or_default();
        self.all_settled().await;
        self.look_again(Kind::Tools).await;
        let mut found = None;
        for place in self.with_unlisted_tools(&name, &call.context) {
            let mut call = call.clone();
            if let (Some(meta), Some(own)) = (call.params.meta(), &place.own) {
                let params = call.params.object().with("_meta", &meta.with(UNLISTED, &Json::string(own)));
                let limits = Limits { max_depth: 127, max_bytes: usize::MAX };
                call.params = Params::parse(&params, &limits).map_err(Error::invalid_params)?;
            }
            if let Ok(Reply::Complete(list)) = self.send(Place { own: None, ..place }, "", call).await {
                let tools =
                    Object::of(&list).and_then(|list| list.json("tools")?.elements()).unwrap_or_default();
                if let [tool] = &tools[..]
                    && let Some(tool) = Object::of(tool)
                {
                    found = Some(tool.with("name", &Json::string(&name)));
                    break;
                }
            }
        }
        let list = List::new(Kind::Tools, found.iter(), usize::MAX);
        Ok(Reply::Complete(
            list.page(0, call.context.revision, Instant::now(), &self.info, |_| String::new()),
        ))
    }

    /// The servers that may have a tool that nobody lists, the likeliest first, with its name there.
    fn with_unlisted_tools(&self, name: &str, context: &Context) -> Vec<Place> {
        let state = self.state.load_full();
        // What nobody has seen cannot be pinned.
        if state.tools.pin != PinMode::Off {
            return Vec::new();
        }
        let mut places: Vec<(usize, Place)> = state
            .mounts
            .iter()
            .filter(|mount| mount.has_unlisted_tools())
            .filter(|mount| self.sees(context, OfferKind::Tool, name, mount.name()))
            .filter_map(|mount| {
                let own = name.strip_prefix(mount.settings.prefix.as_str())?;
                let place = Place { mount: mount.clone(), own: Some(own.into()) };
                mount.settings.offers(own).then_some((mount.settings.prefix.len(), place))
            })
            .collect();
        // The longest prefix says most.
        places.sort_by_key(|(prefix, _)| std::cmp::Reverse(*prefix));
        places.into_iter().map(|(_, place)| place).collect()
    }

    /// The server of a tool that is in the table.
    pub(crate) fn known_tool(&self, call: &Call) -> Result<Option<Place>, Error> {
        let state = self.state.load();
        let name =
            call.params.str("name").ok_or_else(|| Error::invalid_params("\"name\" must be a string"))?;
        let Some(row) = state.snapshot.tools.get(&name) else { return Ok(None) };
        if !self.sees(&call.context, OfferKind::Tool, &name, state.mounts[row.server].name()) {
            return Ok(None);
        }
        if let Some(why) = &row.withheld {
            return Err(why.clone());
        }
        let own = (row.own != *name).then(|| row.own.clone());
        Ok(Some(Place { mount: state.mounts[row.server].clone(), own }))
    }

    async fn prompt(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        let place = match self.known_prompt(&call.params, &call.context)? {
            Some(place) => place,
            None => {
                Box::pin(self.look_again(Kind::Prompts)).await;
                let unknown = || self.unknown(Kind::Prompts, &call.params, &call.context);
                self.known_prompt(&call.params, &call.context)?.ok_or_else(unknown)?
            }
        };
        self.send(place, "name", call).await
    }

    fn known_prompt(&self, params: &Object, context: &Context) -> Result<Option<Place>, Error> {
        let state = self.state.load();
        let name = params.str("name").ok_or_else(|| Error::invalid_params("\"name\" must be a string"))?;
        let row = state.snapshot.prompts.get(&name);
        let row =
            row.filter(|row| self.sees(context, OfferKind::Prompt, &name, state.mounts[row.server].name()));
        Ok(row.map(|row| Place {
            mount: state.mounts[row.server].clone(),
            own: (row.own != *name).then(|| row.own.clone()),
        }))
    }

    async fn resource(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        let uri = call.params.text("uri").ok_or_else(|| Error::invalid_params("\"uri\" must be a string"))?;
        let place = match self.whose(&uri, &call) {
            Some(place) => place,
            None => {
                Box::pin(self.look_again(Kind::Resources)).await;
                self.whose(&uri, &call).ok_or_else(|| self.no_resource(&uri))?
            }
        };
        self.send(place, "uri", call).await
    }

    /// Whose a resource is, if the caller sees it.
    pub(crate) fn whose(&self, uri: &ByteString, call: &Call) -> Option<Place> {
        let place = self.owner(uri, call)?;
        self.sees(&call.context, OfferKind::Resource, uri, place.mount.name()).then_some(place)
    }

    /// Whose a resource is: by list, by template, by whoever last gave the address to this caller, by scheme.
    fn owner(&self, uri: &ByteString, call: &Call) -> Option<Place> {
        let state = self.state.load();
        let uris = &state.snapshot.uris;
        if let Some((server, own)) = uris.find(uri).or_else(|| uris.qualified(uri)) {
            return Some(Place { mount: state.mounts[server].clone(), own: (own != *uri).then_some(own) });
        }
        if let Some(mount) = self.emitted.whose(&Whom::of(&call.context), uri) {
            // A server that is gone answers no more.
            let mounted = state.mounts.iter().any(|other| Arc::ptr_eq(other, &mount));
            return mounted.then_some(Place { mount, own: None });
        }
        if !uris.candidates(uri).is_empty() {
            return None;
        }
        let only = match state.mounts.len() {
            1 => Some(0),
            _ => uris.only_of_scheme(uri),
        };
        only.map(|server| Place { mount: state.mounts[server].clone(), own: None })
    }

    fn no_resource(&self, uri: &str) -> Error {
        let candidates = self.state.load().snapshot.uris.candidates(uri);
        if candidates.is_empty() {
            return Error::resource_not_found(uri);
        }
        let names: Vec<&str> = candidates.iter().map(|uri| &**uri).collect();
        let what =
            format!("Resource not found: several servers have {uri}; use {} instead", names.join(" or "));
        Error::new(Symbol::ResourceNotFound, what)
    }

    /// Completes an argument of a prompt or of a resource template.
    async fn complete(self: &Arc<Self>, mut call: Call) -> Result<Reply, Error> {
        let wrong = || Error::invalid_params("\"ref\" must name a prompt or a resource template");
        let reference = call.params.object().object("ref").ok_or_else(wrong)?;
        let (place, member) = match reference.str("type").as_deref() {
            Some("ref/prompt") => {
                let place = self.known_prompt(&reference, &call.context)?;
                (place.ok_or_else(|| self.unknown(Kind::Prompts, &reference, &call.context))?, "name")
            }
            Some("ref/resource") => {
                let uri = reference.text("uri").ok_or_else(wrong)?;
                let state = self.state.load_full();
                let template = state.snapshot.uris.find_template(&uri).map(|(server, own)| Place {
                    mount: state.mounts[server].clone(),
                    own: (own != uri).then_some(own),
                });
                let template = template.filter(|place| {
                    self.sees(&call.context, OfferKind::ResourceTemplate, &uri, place.mount.name())
                });
                let place = template.or_else(|| self.whose(&uri, &call));
                (place.ok_or_else(|| self.no_resource(&uri))?, "uri")
            }
            _ => return Err(wrong()),
        };
        if let Some(own) = &place.own {
            let reference = reference.with(member, &Json::string(own));
            call.params = call.params.with("ref", &reference);
        }
        self.send(Place { own: None, ..place }, "", call).await
    }

    /// A method that has no place of its own: where its server is clear, it goes there as it is.
    async fn other(self: &Arc<Self>, call: Call) -> Result<Reply, Error> {
        if call.method.as_str() == crate::batch::METHOD && self.state.load().tools.batch {
            return self.batch(call).await;
        }
        let state = self.state.load_full();
        if call.method == Method::RootsChanged {
            for mount in &state.mounts {
                mount.call(call.clone()).await;
            }
            return Ok(Reply::Complete(Json::empty_object()));
        }
        let named = call.params.meta().and_then(|meta| meta.text(SERVER));
        let mount = match (named, &state.mounts[..]) {
            (Some(name), mounts) => {
                let found = mounts.iter().find(|mount| *mount.name() == *name);
                found
                    .ok_or_else(|| Error::invalid_params(format_args!("no server is named {name:?}")))?
                    .clone()
            }
            (None, [only]) => only.clone(),
            (None, _) => match call.params.text("uri").and_then(|uri| self.whose(&uri, &call)) {
                Some(place) => return self.send(place, "uri", call).await,
                None => return Err(Error::method_not_found(call.method.as_str())),
            },
        };
        if !self.sees(&call.context, OfferKind::Method, call.method.as_str(), mount.name()) {
            return Err(Error::method_not_found(call.method.as_str()));
        }
        self.send(Place { mount, own: None }, "", call).await
    }

    /// Sends a call to its server. `member` is the parameter that the server may spell in another way.
    pub(crate) async fn send(
        self: &Arc<Self>,
        place: Place,
        member: &str,
        mut call: Call,
    ) -> Result<Reply, Error> {
        let Place { mount, own } = place;
        if let Some(own) = own {
            call.params = call.params.with(member, &Json::string(&own));
        }
        if mount.is_down() {
            return Err(down(&mount));
        }
        let (method, whom) = (call.method.clone(), Whom::of(&call.context));
        let reply = mount.call(call).await;
        Ok(match reply {
            Reply::Complete(result) if method.may_ask() && links::may_hold(result.as_str()) => {
                Reply::Complete(self.with_offered_uris(&mount, &method, &whom, result))
            }
            Reply::InputRequired(input) => Reply::InputRequired(questions::naming(mount.name(), input)),
            Reply::Task(task) => Reply::Task(self.sealed_task(&mount, &whom.principal, &task)),
            reply => reply,
        })
    }

    /// Notes the addresses in a result, and changes those that are offered under others.
    pub(crate) fn with_offered_uris(
        &self,
        mount: &Arc<Mount>,
        method: &Method,
        whom: &Whom,
        result: Json,
    ) -> Json {
        let state = self.state.load();
        let server = state.mounts.iter().position(|other| Arc::ptr_eq(other, mount));
        let changed = links::in_result(method, &result, &mut |uri| {
            let offered = server.and_then(|server| state.snapshot.uris.offered(server, uri));
            if offered.is_none() {
                self.emitted.note(whom, uri, mount);
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
            let rows = rows
                .filter(|(name, row)| self.sees(context, kind.into(), name, state.mounts[row.server].name()));
            rows.map(|(name, _)| name.to_string()).collect()
        };
        let error = match kind {
            Kind::Tools => {
                let own = search::own_names(&state.tools).iter().copied();
                unknown_tool(&name, own.chain(callable(&state.snapshot.tools).iter().map(String::as_str)))
            }
            _ => unknown_prompt(&name, callable(&state.snapshot.prompts).iter().map(String::as_str)),
        };
        let silent: Vec<_> = state
            .mounts
            .iter()
            .filter(|mount| mount.catalog().part(kind).is_none())
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
}

/// What is said instead of making a caller wait for a server that is known to be down. The whole of why is in the log, and
/// the business of whoever runs the gateway.
fn down(mount: &Mount) -> Error {
    // It may be back: ask sooner than planned.
    mount.wake.notify_one();
    let mut data = ObjectWriter::new();
    data.str("circuitState", mount.client.circuit().state().as_str());
    Error::new(Symbol::Unavailable, mount.down_in_words()).unexecuted().with_data(data.finish())
}

/// Whether a result says that there is no such tool, as servers with the numbers of the GBIF server do.
fn says_unknown(result: &Json) -> bool {
    let symbol = || Object::of(result)?.object("_meta")?.object(meta::ERROR)?.text("symbol");
    memchr::memmem::find(result.as_str().as_bytes(), Symbol::ToolNotFound.as_str().as_bytes()).is_some()
        && symbol().is_some_and(|symbol| symbol == Symbol::ToolNotFound.as_str())
}

/// The tool whose definition is asked for by its name.
fn asked_for(call: &Call) -> Option<ByteString> {
    call.params.meta()?.text(UNLISTED)
}
