//! Extensions over several servers. One table says which there are, which methods each of them has, and what becomes of a
//! call: a method that lists is joined over all servers that declare the extension, one that names a thing goes to the
//! server whose thing it is. What is not in the table cannot be routed, so it is not declared; behind a gateway with a
//! single server everything passes as it is.

use std::sync::Arc;

use futures_util::future::join_all;
use tidegate_protocol::json::Edit;
use tidegate_protocol::{Error, Json, Object, tasks_extension};
use tidegate_service::{Call, Context, Reply};

use crate::build::State;
use crate::kind::Kind;
use crate::link_owners::Recipient;
use crate::links;
use crate::list_request;
use crate::mount::{Mount, PATIENCE};
use crate::router::{Route, Router, SERVER};
use crate::view::{OfferKind, Views};

/// Skills over MCP (SEP-2640).
pub(crate) const SKILLS: &str = "io.modelcontextprotocol/skills";
/// User interfaces of tools (MCP Apps). They are named in definitions and read like any other resource.
const APPS: &str = "io.modelcontextprotocol/ui";

/// Every extension that several servers can have together.
const TABLE: &[Extension] = &[
    Extension {
        id: SKILLS,
        switches: &["directoryRead"],
        methods: &[
            Method { name: "skills/list", needs: None, way: Way::Joined(Kind::Skills) },
            Method {
                name: "skills/get",
                needs: None,
                way: Way::Routed { by: "uri", result: Shape::Skill, is_cacheable: true },
            },
            Method {
                name: "resources/directory/read",
                needs: Some("directoryRead"),
                way: Way::Routed { by: "uri", result: Shape::Directory, is_cacheable: false },
            },
        ],
    },
    // Its methods are those of the protocol: a task is found by its handle.
    Extension { id: tasks_extension(), switches: &[], methods: &[] },
    Extension { id: APPS, switches: &[], methods: &[] },
];

/// An extension.
#[derive(Debug)]
pub(crate) struct Extension {
    id: &'static str,
    /// Settings that are true as soon as one server says so.
    switches: &'static [&'static str],
    methods: &'static [Method],
}

/// A method that an extension adds.
#[derive(Debug)]
struct Method {
    name: &'static str,
    /// The setting that a server must have switched on to be asked.
    needs: Option<&'static str>,
    way: Way,
}

/// What becomes of a call.
#[derive(Debug, Clone, Copy)]
enum Way {
    /// Each server lists its own, and the answer is all of it.
    Joined(Kind),
    /// A parameter is the address of a thing, and its server answers.
    Routed {
        by: &'static str,
        /// Where the answer has addresses.
        result: Shape,
        /// Whether modern callers are told for how long it is good, and for recipient.
        is_cacheable: bool,
    },
}

/// Where addresses stand in an answer.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// `skill`: an entry with its files.
    Skill,
    /// `resources`: what is in a directory.
    Directory,
}

impl Extension {
    /// The extension with this name, if several servers can have it together.
    pub(crate) fn named(id: &str) -> Option<&'static Extension> {
        TABLE.iter().find(|extension| extension.id == id)
    }

    /// What the gateway says of the extension when its servers say this of it: what the first says, with everything on that
    /// one of them has switched on.
    pub(crate) fn joined(&self, settings: &[Json]) -> Json {
        let objects: Vec<Object> = settings.iter().filter_map(Object::of).collect();
        let first = objects.first().map_or_else(Json::empty_object, Object::to_json);
        let Some(mut edit) = Edit::of(&first) else { return first };
        for &switch in self.switches {
            if objects.iter().any(|settings| settings.get(switch) == Some("true")) {
                edit.set(switch, Json::trusted("true"));
            }
        }
        edit.finish().unwrap_or(first)
    }
}

/// What a server with these capabilities says of an extension; `None` if it does not declare it.
pub(crate) fn declared(capabilities: &Json, id: &str) -> Option<Json> {
    let settings = Object::of(capabilities)?.object("extensions")?.json(id)?;
    (!matches!(settings.as_str(), "null" | "false")).then_some(settings)
}

/// The extension and the row of a method.
fn find(method: &str) -> Option<(&'static Extension, &'static Method)> {
    let row = |extension: &'static Extension| {
        Some((extension, extension.methods.iter().find(|row| row.name == method)?))
    };
    TABLE.iter().find_map(row)
}

/// Whether a method is of the table: what such a method asks for are resources.
pub(crate) fn is_of_resources(method: &str) -> bool {
    find(method).is_some()
}

/// Answers a method of the table; `None` if it is not one, or the only server answers it as it is.
pub(crate) async fn answer(router: &Arc<Router>, call: &Call) -> Option<Result<Reply, Error>> {
    let (extension, method) = find(call.method.as_str())?;
    let state = router.state.load_full();
    if state.mounts.len() == 1 && !router.views.is_restricted(&state, &call.context) {
        return None;
    }
    let late = state.mounts.iter().filter(|mount| !mount.is_introduced());
    join_all(late.map(|mount| mount.settled(PATIENCE))).await;
    let able = |mount: &&Arc<Mount>| is_able(router, (extension, method), mount, &state, &call.context);
    if !state.mounts.iter().any(|mount| able(&mount)) {
        return Some(Err(Error::method_not_found(method.name)));
    }
    if let Err(error) = named_server(&router.views, &state, call) {
        return Some(Err(error));
    }
    Some(match method.way {
        Way::Joined(kind) => list_request::answer(router, kind, call).await,
        Way::Routed { by, result, is_cacheable } => {
            let place = place_of_thing(router, by, call).await;
            match place {
                Ok(place) if able(&&place.mount) => {
                    routed(router, place, by, (result, is_cacheable), call).await
                }
                Ok(_) => Err(no_such_thing(router, by, call)),
                Err(error) => Err(error),
            }
        }
    })
}

/// Whether a caller may ask a server for this method.
fn is_able(
    router: &Router,
    (extension, method): (&Extension, &Method),
    mount: &Mount,
    state: &State,
    context: &Context,
) -> bool {
    let catalog = mount.catalog();
    let settings = catalog.about.as_ref().and_then(|about| declared(&about.capabilities, extension.id));
    let Some(settings) = settings else { return false };
    let is_on = |switch| Object::of(&settings).is_some_and(|all| all.get(switch) == Some("true"));
    method.needs.is_none_or(is_on)
        && router.views.sees(state, context, OfferKind::Method, method.name, mount.name())
}

/// Whose thing a call names. What a server lists may have to be read for that.
async fn place_of_thing(router: &Arc<Router>, by: &str, call: &Call) -> Result<Route, Error> {
    let wrong = || Error::invalid_params(format_args!("{by:?} must be a string"));
    let uri = call.params.text(by).ok_or_else(wrong)?;
    let place = match router.whose(&uri, call) {
        Some(place) => Some(place),
        // Lists say nothing new about an address that itself says whose it is.
        None if router.state.load().snapshot.uris.is_of_skill(&uri) => None,
        None => {
            router.look_again(Kind::Resources).await;
            router.look_again(Kind::Skills).await;
            router.whose(&uri, call)
        }
    };
    let is_named = |mount: &Mount| match named_server(&router.views, &router.state.load_full(), call) {
        Ok(Some(named)) => named.name() == mount.name(),
        _ => true,
    };
    place.filter(|place| is_named(&place.mount)).ok_or_else(|| no_such_thing(router, by, call))
}

/// SEP-2640: an address that nobody serves is -32602, in every revision.
fn no_such_thing(router: &Router, by: &str, call: &Call) -> Error {
    let uri = call.params.text(by).unwrap_or_default();
    Error::invalid_params(router.no_resource(&uri, &call.context).message())
}

/// Sends a call to the server of what it names.
async fn routed(
    router: &Arc<Router>,
    place: Route,
    by: &'static str,
    (shape, is_cacheable): (Shape, bool),
    call: &Call,
) -> Result<Reply, Error> {
    let mount = place.mount.clone();
    let reply = router.send(place, by, call.clone()).await?;
    let Reply::Complete(result) = reply else { return Ok(reply) };
    let result = with_offered_things(router, &mount, shape, &result, &call.context);
    let Some(result) = result else { return Err(no_such_thing(router, by, call)) };
    Ok(Reply::Complete(with_hints(result, is_cacheable, call.context.revision.is_modern())))
}

/// An answer with addresses as they are offered, and without what the caller does not see. `None` if nothing is left.
fn with_offered_things(
    router: &Router,
    mount: &Arc<Mount>,
    shape: Shape,
    result: &Json,
    context: &Context,
) -> Option<Json> {
    let state = router.state.load();
    let server = state.mounts.iter().position(|other| Arc::ptr_eq(other, mount));
    let recipient = Recipient::of(context);
    let mut visit = |uri: &str| {
        let offered = server.and_then(|server| state.snapshot.uris.offered(server, uri));
        if offered.is_none() {
            router.link_owners.note(&recipient, uri, mount);
        }
        offered
    };
    let Some(mut edit) = Edit::of(result) else { return Some(result.clone()) };
    match shape {
        Shape::Skill => edit.map("skill", |skill| links::in_skill(skill, &mut visit)),
        Shape::Directory => {
            edit.map("resources", |list| list.map_elements(|child| links::in_uri(child, &mut visit)))
        }
    };
    let offered = edit.finish().unwrap_or_else(|| result.clone());
    if !router.views.is_restricted(&state, context) {
        return Some(offered);
    }
    let sees = |uri: &str| router.views.sees(&state, context, OfferKind::Resource, uri, mount.name());
    let object = Object::of(&offered)?;
    match shape {
        Shape::Skill => object.json("skill").is_some_and(|skill| sees_skill(&skill, sees)).then_some(offered),
        Shape::Directory => {
            let children = object.json("resources")?.elements()?.into_iter();
            let is_seen = |child: &Json| Object::of(child)?.str("uri").map(|uri| sees(&uri));
            let seen: Vec<Json> = children.filter(|child| is_seen(child) == Some(true)).collect();
            Some(object.with("resources", &Json::array(&seen)))
        }
    }
}

/// The server that a call names in its `_meta`, if it names one. One that the caller does not know of is not there.
pub(crate) fn named_server(views: &Views, state: &State, call: &Call) -> Result<Option<Arc<Mount>>, Error> {
    let Some(name) = call.params.meta().and_then(|meta| meta.text(SERVER)) else {
        return Ok(None);
    };
    // For whoever looks for what is wrong. Where there are many users, servers are none of their business.
    if state.is_authenticated {
        return Err(Error::invalid_params(format_args!("_meta[{SERVER:?}] is not available here")));
    }
    let known = views.seen_servers(state, &call.context);
    let found = known.into_iter().find(|mount| *mount.name() == *name);
    let nobody = || Error::invalid_params(format_args!("no server is named {name:?}"));
    found.map(Some).ok_or_else(nobody)
}

/// Whether all of a skill is seen. One with a file that is hidden is hidden: without the file its manifest would be wrong.
pub(crate) fn sees_skill(entry: &Json, sees: impl Fn(&str) -> bool) -> bool {
    let mut all = true;
    links::in_skill(entry, &mut |uri| {
        all &= sees(uri);
        None
    });
    all
}

/// For how long an answer is good and for recipient, as far as callers of this era are told.
fn with_hints(result: Json, is_cacheable: bool, modern: bool) -> Json {
    let Some(mut edit) = Edit::of(&result).filter(|_| is_cacheable) else { return result };
    match modern {
        // A legacy server promises nothing.
        true => {
            for (name, nothing) in [("ttlMs", "0"), ("cacheScope", "\"private\"")] {
                if !edit.object().has(name) {
                    edit.set(name, Json::trusted(nothing));
                }
            }
        }
        false => _ = edit.remove("ttlMs").remove("cacheScope"),
    }
    edit.finish().unwrap_or(result)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_on_if_one_server_has_them_on() {
        let skills = Extension::named(SKILLS).unwrap();
        let joined = |all: &[&'static str]| {
            skills
                .joined(&all.iter().map(|text| Json::trusted(*text)).collect::<Vec<_>>())
                .as_str()
                .to_owned()
        };
        assert_eq!(joined(&["{}", "{}"]), "{}");
        assert_eq!(joined(&["true"]), "{}");
        assert_eq!(
            joined(&[r#"{"x":1.0}"#, r#"{"directoryRead":true}"#]),
            r#"{"x":1.0,"directoryRead":true}"#
        );
        assert_eq!(
            joined(&[r#"{"directoryRead":false}"#, r#"{"directoryRead":true}"#]),
            r#"{"directoryRead":true}"#
        );
        assert_eq!(joined(&[r#"{"directoryRead":false}"#, "{}"]), r#"{"directoryRead":false}"#);
    }

    #[test]
    fn every_method_is_found_and_nothing_else() {
        for (method, id) in
            [("skills/list", SKILLS), ("skills/get", SKILLS), ("resources/directory/read", SKILLS)]
        {
            assert_eq!(find(method).unwrap().0.id, id);
        }
        assert!(find("resources/read").is_none() && find("vendor/echo").is_none());
        assert!(Extension::named("com.example/other").is_none());
    }

    #[test]
    fn what_is_switched_off_is_not_declared() {
        let declared = |text: &'static str| declared(&Json::trusted(text), SKILLS).is_some();
        assert!(declared(r#"{"extensions":{"io.modelcontextprotocol/skills":{}}}"#));
        assert!(declared(r#"{"extensions":{"io.modelcontextprotocol/skills":true}}"#));
        for no in [
            "{}",
            r#"{"extensions":{}}"#,
            r#"{"extensions":{"io.modelcontextprotocol/skills":null}}"#,
            r#"{"experimental":{"io.modelcontextprotocol/skills":{}}}"#,
        ] {
            assert!(!declared(no), "{no}");
        }
    }
}
