//! `server/discover`: what the gateway is and can do. The legacy edge makes `initialize` of it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Feature, Json, Method, Object, Revision, lower, tasks_extension};
use tidegate_service::{Call, Reply};

use crate::batch;
use crate::build::State;
use crate::endpoints::Endpoint;
use crate::extensions::Extension;
use crate::loops;
use crate::mount::Mount;
use crate::router::Router;

/// How long servers that have just been mounted are waited for, because what they say goes in here.
const PATIENCE: Duration = Duration::from_millis(500);

/// Under which key of `_meta` the gateway says how its servers are doing.
const SERVERS: &str = "dev.tidegate/servers";

pub(crate) async fn answer(router: &Arc<Router>, call: &Call) -> Result<Reply, Error> {
    let state = router.state.load_full();
    // What is known from the last time is good enough: nobody waits for a server to start.
    let unknown = state.mounts.iter().filter(|mount| !mount.is_introduced());
    join_all(unknown.map(|mount| mount.settled(PATIENCE))).await;
    let revision = call.context.revision;
    let mounts = router.views.seen_servers(&state, &call.context);
    let endpoint = state.endpoints.of(&call.context);
    let mut w = ObjectWriter::with_capacity(512);
    if revision.is_modern() {
        w.str("resultType", "complete");
    }
    w.value("supportedVersions", &Revision::ALL.map(Revision::as_str));
    w.json(
        "capabilities",
        &capabilities(
            &state,
            &|server| router.views.has_all_of(&state, &call.context, server),
            &mounts,
            &tool_capability(router, &state, call),
            revision,
            &router.id,
        ),
    );
    let said = endpoint.and_then(Endpoint::instructions).map(str::to_owned);
    if let Some(instructions) = said.or_else(|| instructions(&state, &mounts)) {
        w.str("instructions", &instructions);
    }
    if revision.is_modern() {
        w.raw("ttlMs", "0").str("cacheScope", "private");
    }
    let tools = |mount: &Arc<Mount>| router.views.count_tools(&state, &call.context, mount);
    w.json(
        "_meta",
        &Json::trusted(format!("{{{},{}:{}}}", router.info, Json::string(SERVERS), servers(&mounts, tools))),
    );
    Ok(Reply::Complete(w.finish()))
}

/// How the servers are doing, for whoever looks for what is wrong: `{name: {health, tools}}`.
/// `tools` counts those that are seen, if that is not all of them.
fn servers(mounts: &[Arc<Mount>], tools: impl Fn(&Arc<Mount>) -> Option<usize>) -> Json {
    let mut all = ObjectWriter::new();
    for mount in mounts {
        let status = mount.status();
        let mut one = ObjectWriter::new();
        one.str("health", status.health.as_str());
        if let Some(revision) = status.revision {
            one.str("revision", revision.as_str());
        }
        one.value("tools", &tools(mount).unwrap_or(status.listed[0]));
        all.json(&status.name, &one.finish());
    }
    all.finish()
}

/// Always everything that a server may have: a legacy client never asks again, and servers come later. What servers say
/// of their extensions is passed on as it came; of one that several have, what the first says. An extension whose calls
/// could go to any of several servers is not declared.
fn capabilities(
    state: &State,
    has_all_of: &dyn Fn(&str) -> bool,
    mounts: &[Arc<Mount>],
    tools: &Json,
    revision: Revision,
    id: &str,
) -> Json {
    let (mut extensions, mut experimental) = (Named::new(), Named::new());
    let mut joined: BTreeMap<String, Vec<Json>> = BTreeMap::new();
    let mut gateways = vec![id.to_owned()];
    for mount in mounts {
        // Which gateways there are is different at each start, so nothing that was kept says it.
        gateways.extend(mount.facts.load_full().map(|facts| loops::behind(&facts)).unwrap_or_default());
        let catalog = mount.catalog();
        let declared = catalog.about.as_ref().and_then(|about| Object::of(&about.capabilities));
        let Some(declared) = declared else { continue };
        for (name, settings) in named(&declared, "experimental") {
            experimental.entry(name).or_insert(settings);
        }
        for (name, settings) in named(&declared, "extensions") {
            joined.entry(name).or_default().push(settings);
        }
        if declared.has("tasks") {
            joined.entry(tasks_extension().to_owned()).or_insert_with(|| vec![Json::empty_object()]);
        }
    }
    for (name, mut settings) in joined {
        match (Extension::named(&name), &state.mounts[..]) {
            (_, [only]) if has_all_of(only.name()) => {
                _ = extensions.insert(name, settings.swap_remove(0));
            }
            (Some(known), _) => _ = extensions.insert(name, known.joined(&settings)),
            (None, _) => {}
        }
    }
    gateways.sort();
    gateways.dedup();
    experimental.insert(loops::GATEWAYS.to_owned(), loops::said(&gateways));
    let tasks = extensions.contains_key(tasks_extension()) && revision.allows(Feature::CoreTasks);
    if state.tools.batch {
        let place = if revision.allows(Feature::Extensions) { &mut extensions } else { &mut experimental };
        place.insert(batch::EXTENSION.to_owned(), Json::empty_object());
    }
    let mut w = ObjectWriter::with_capacity(512);
    w.json("tools", tools)
        .raw("prompts", r#"{"listChanged":true}"#)
        .raw("resources", r#"{"subscribe":true,"listChanged":true}"#)
        .raw("logging", "{}");
    if revision.allows(Feature::CompletionsCapability) {
        w.raw("completions", "{}");
    }
    if tasks {
        w.raw("tasks", r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#);
    }
    // 2025-11-25 has no such member, but its clients look here for extensions; the edge takes it from older ones.
    if !extensions.is_empty() {
        w.json("extensions", &written(&extensions));
    }
    w.json("experimental", &written(&experimental));
    w.finish()
}

/// What is said of tools: that their list may change, and to old clients that look for them here, which there are.
fn tool_capability(router: &Router, state: &State, call: &Call) -> Json {
    let revision = call.context.revision;
    let mut said = ObjectWriter::new();
    said.raw("listChanged", "true");
    if !state.tools.in_capabilities || revision.is_modern() {
        return said.finish();
    }
    let mut all = ObjectWriter::new();
    all.json("tools", &Json::array(&router.views.shown_tools(state, &call.context)));
    // In the words of the client's revision, as in a list.
    let list = lower::result(&Method::ToolsList, revision, all.finish());
    let tools = Object::of(&list).and_then(|list| list.json("tools")?.elements()).unwrap_or_default();
    for tool in &tools {
        let name = Object::of(tool).and_then(|tool| tool.text("name"));
        if let Some(name) = name.filter(|name| *name != "listChanged") {
            said.json(&name, tool);
        }
    }
    said.finish()
}

/// Settings by name.
type Named = BTreeMap<String, Json>;

/// The members of a member.
fn named(declared: &Object, member: &str) -> Vec<(String, Json)> {
    let Some(declared) = declared.object(member) else { return Vec::new() };
    let names = declared.members().map(|member| member.name.into_owned());
    names.enumerate().filter_map(|(at, name)| Some((name, declared.json_at(at)?))).collect()
}

fn written(all: &Named) -> Json {
    let mut w = ObjectWriter::new();
    for (name, settings) in all {
        w.json(name, settings);
    }
    w.finish()
}

/// What the servers say a model should know, each under its name, and what its tools are called here.
fn instructions(state: &State, mounts: &[Arc<Mount>]) -> Option<String> {
    let said = mounts.iter().filter_map(|mount| {
        let catalog = mount.catalog();
        let text = catalog.about.as_ref()?.instructions.as_deref()?.trim();
        let text = match mount.settings.prefix.as_str() {
            _ if text.is_empty() => return None,
            "" => text.to_owned(),
            prefix => format!("Its tools and prompts have `{prefix}` before their names here.\n\n{text}"),
        };
        let uris = &state.snapshot.uris;
        let server = state.mounts.iter().position(|other| Arc::ptr_eq(other, mount));
        let text = match server.filter(|_| text.contains("skill://") && state.mounts.len() > 1) {
            Some(server) => format!("`skill://` is `skill://{}/` here.\n\n{text}", uris.label(server)),
            None => text,
        };
        Some(match mounts.len() {
            1 => text,
            _ => format!("# {}\n\n{text}", mount.name()),
        })
    });
    let said: Vec<String> = said.collect();
    (!said.is_empty()).then(|| said.join("\n\n"))
}
