//! Resources: the whole graph, and each entity, for clients that show them or subscribe to what they show.

use tidegate_server::{
    Completing, Cx, PageRequest, Resource, ResourcePage, ResourceTemplate, Server, Symbol, ToolError, Vars,
};

use crate::escape::{escaped, unescaped};
use crate::graph::{entities, list, read};
use crate::store::Fault;
use crate::{Recall, tenant};

/// The whole graph.
pub(crate) const GRAPH: &str = "memory://knowledge-graph";
/// The same of a tenant that is named.
const GRAPH_OF: &str = "memory://knowledge-graph{?tenant_id}";
/// One entity.
const ENTITY: &str = "memory://entities/{name}{?tenant_id}";
/// What stands before its name.
const BEFORE_NAME: &str = "memory://entities/";
/// How many names are offered as completions.
pub(crate) const OFFERED: usize = 100;

/// What came to the tables later: things are listed in parts, and found by how their names begin.
pub(crate) const TABLES: &[&str] = &[
    "CREATE INDEX entities_listed ON entities (tenant, key) WHERE gone IS NULL",
    "CREATE INDEX entities_begin ON entities (tenant, LOWER(name), name) WHERE gone IS NULL",
    "CREATE INDEX documents_begin ON documents (tenant, LOWER(title), title) WHERE gone IS NULL",
];

pub(crate) fn add(server: Server, recall: &Recall) -> Server {
    let (graph, graph_of, entity) = (recall.clone(), recall.clone(), recall.clone());
    let (names, listed) = (recall.clone(), recall.clone());
    server
        .resource(
            Resource::new(GRAPH, "knowledge-graph")
                .title("Knowledge Graph")
                .description("Everything that is known: entities, observations and relations")
                .mime_type("application/json")
                .reader(move |cx: Cx| whole(graph.clone(), cx)),
        )
        .resource_template(
            ResourceTemplate::new(GRAPH_OF, "knowledge-graph-of")
                .title("Knowledge Graph of a Tenant")
                .description("Everything that is known in one tenant, where callers are not authenticated")
                .mime_type("application/json")
                .reader(move |_: Vars, cx: Cx| whole(graph_of.clone(), cx)),
        )
        .resource_template(
            ResourceTemplate::new(ENTITY, "entity")
                .title("Entity")
                .description("What is known about one entity, and its relations")
                .mime_type("application/json")
                .reader(move |vars: Vars, cx: Cx| {
                    let (recall, name) = (entity.clone(), vars.get("name").unwrap_or_default().to_owned());
                    async move {
                        let memory = tenant::memory(&recall, &cx)?;
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
                    let memory = tenant::memory(&names, &cx);
                    async move {
                        let Ok(memory) = memory else { return Vec::new() };
                        let found =
                            memory.view(move |view| entities::starting(view, &typed.value, OFFERED)).await;
                        found.unwrap_or_default()
                    }
                }),
        )
        .resource_source(move |request: PageRequest, cx: Cx| {
            let recall = listed.clone();
            async move {
                let (memory, chosen) = (tenant::memory(&recall, &cx)?, tenant::chosen(&cx));
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

/// The whole graph of whoever reads it.
async fn whole(recall: Recall, cx: Cx) -> Result<String, ToolError> {
    pretty(&tenant::memory(&recall, &cx)?.view(read::whole).await?)
}

/// An entity as it is listed.
fn entry(entity: &list::Newest, chosen: Option<&str>) -> Resource {
    Resource::new(tenant::qualified(&entity_uri(&entity.name), chosen), entity.name.clone())
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

/// The address of an entity: [`ENTITY`] with its name, escaped where it must be.
pub(crate) fn entity_uri(name: &str) -> String {
    format!("{BEFORE_NAME}{}", escaped(name))
}

/// The name of the entity at an address, if that is one.
pub(crate) fn entity_at(uri: &str) -> Option<String> {
    let name = uri.strip_prefix(BEFORE_NAME)?;
    // What is no escape stands for itself, as it does when the address is read.
    Some(unescaped(name).unwrap_or_else(|_| name.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(entity_uri("a b/ü"), "memory://entities/a%20b%2F%C3%BC");
        assert_eq!(entity_at("memory://entities/a%20b%2f%C3%BC").as_deref(), Some("a b/ü"));
        assert_eq!(entity_at("memory://entities/100%").as_deref(), Some("100%"));
        assert_eq!(entity_at("memory://documents/doc-1"), None);
    }
}
