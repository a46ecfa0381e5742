//! Resources: the whole graph, and each entity, for clients that show them or subscribe to what they show.

mod documents;

use tidegate_server::{
    Completing, Cx, PageRequest, Resource, ResourcePage, ResourceTemplate, Server, Symbol, ToolError, Vars,
};

pub(crate) use documents::{add as add_documents, numbers};

use super::state::ServerState;
use super::tenant;
use crate::error::Fault;
use crate::graph::address::{BEFORE_NAME, GRAPH, entity_uri};
use crate::graph::{entities, list, read};
use crate::uri::{qualified, unescaped};

/// The same of a tenant that is named.
const GRAPH_OF: &str = "memory://knowledge-graph{?tenant_id}";
/// One entity.
const ENTITY: &str = "memory://entities/{name}";
/// How the address of a thing names its tenant, where callers choose it.
const TENANT_QUERY: &str = "{?tenant_id}";
/// How many names are offered as completions.
pub(crate) const OFFERED: usize = 100;

pub(crate) fn add(server: Server, state: &ServerState) -> Server {
    let (graph, graph_of, listed) = (state.clone(), state.clone(), state.clone());
    let server = server
        .resource(
            Resource::new(GRAPH, "knowledge-graph")
                .title("Knowledge Graph")
                .description("Everything that is known: entities, observations and relations")
                .mime_type("application/json")
                .reader(move |cx: Cx| read_graph(graph.clone(), cx)),
        )
        .resource_template(if_chosen(
            state,
            ResourceTemplate::new(GRAPH_OF, "knowledge-graph-of")
                .title("Knowledge Graph of a Tenant")
                .description("Everything that is known in one tenant, where callers are not authenticated")
                .mime_type("application/json")
                .reader(move |_: Vars, cx: Cx| read_graph(graph_of.clone(), cx)),
        ));
    with_tenant(server, state, ENTITY, entity).resource_source(move |request: PageRequest, cx: Cx| {
        let state = listed.clone();
        async move {
            let (memory, chosen) = (state.admitted_memory(&cx)?, tenant::chosen(&cx));
            let (before, limit) = (number_after(&request)?, request.limit);
            let mut found = memory.view(move |view| list::newest(view, before, limit + 1)).await?;
            let more = found.len() > limit;
            found.truncate(limit);
            let page = ResourcePage::new(found.iter().map(|entity| entry(entity, chosen.as_deref())));
            Ok(match found.last().filter(|_| more) {
                Some(last) => page.next(last.key.to_string()),
                None => page,
            })
        }
    })
}

/// A template that is there to name a tenant: where callers are authenticated it is not listed, and still understood.
pub(crate) fn if_chosen(state: &ServerState, template: ResourceTemplate) -> ResourceTemplate {
    if state.settings.is_authenticated { template.unlisted() } else { template }
}

/// Adds a template of things whose addresses may name a tenant. Where callers are authenticated it is listed without that.
fn with_tenant(
    server: Server,
    state: &ServerState,
    at: &str,
    template: fn(&ServerState, &str) -> ResourceTemplate,
) -> Server {
    let server = match state.settings.is_authenticated {
        true => server.resource_template(template(state, at)),
        false => server,
    };
    server.resource_template(if_chosen(state, template(state, &format!("{at}{TENANT_QUERY}"))))
}

fn entity(state: &ServerState, at: &str) -> ResourceTemplate {
    let (entity, names) = (state.clone(), state.clone());
    ResourceTemplate::new(at, "entity")
        .title("Entity")
        .description("What is known about one entity, and its relations")
        .mime_type("application/json")
        .reader(move |vars: Vars, cx: Cx| {
            let (state, name) = (entity.clone(), vars.get("name").unwrap_or_default().to_owned());
            async move {
                let memory = state.admitted_memory(&cx)?;
                let found = memory.view({
                    let name = name.clone();
                    move |view| read::open(view, &[name])
                });
                let found = found.await?;
                if found.entities.is_empty() {
                    memory.exists().await?;
                    return Err(no_entity(&name, vars.uri()));
                }
                pretty(&found)
            }
        })
        .complete("name", move |typed: Completing, cx: Cx| {
            let memory = names.admitted_memory(&cx);
            async move {
                let Ok(memory) = memory else { return Vec::new() };
                let found = memory.view(move |view| entities::starting(view, &typed.value, OFFERED)).await;
                found.unwrap_or_default()
            }
        })
}

/// The whole graph of whoever reads it.
async fn read_graph(state: ServerState, cx: Cx) -> Result<String, ToolError> {
    pretty(&state.admitted_memory(&cx)?.view(read::all).await?)
}

/// An entity as it is listed.
fn entry(entity: &list::Newest, chosen: Option<&str>) -> Resource {
    Resource::new(qualified(&entity_uri(&entity.name), chosen), entity.name.clone())
        .title(entity.name.clone())
        .description(format!("What is known about {}, of type {}", entity.name, entity.entity_type))
        .mime_type("application/json")
        .last_modified(moment(entity.updated_at))
}

/// A moment as annotations have it.
pub(crate) fn moment(ms: i64) -> String {
    tidegate_service::rfc3339_ms(ms.max(0) as u64)
}

/// The number after which a list goes on that is in the order of falling numbers.
pub(crate) fn number_after(request: &PageRequest) -> Result<Option<i64>, ToolError> {
    let wrong = |_| Fault::input("cursor", "must be the nextCursor of the previous page");
    Ok(request.after.as_deref().map(str::parse).transpose().map_err(wrong)?)
}

fn no_entity(name: &str, uri: &str) -> ToolError {
    let mut what = format!("There is no entity {name:?} in the memory");
    if let Some(Err(why)) = uri.strip_prefix(BEFORE_NAME).map(unescaped) {
        what.push_str(&format!("; the URI may be wrong: {why}"));
    }
    ToolError::new(Symbol::ResourceNotFound, what)
}

fn pretty(value: &impl serde::Serialize) -> Result<String, ToolError> {
    serde_json::to_string_pretty(value).map_err(ToolError::from_error)
}
