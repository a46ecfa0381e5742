//! Resources: the whole graph, and each entity, for clients that subscribe to what they show.

use tidegate_server::{Completing, Cx, Resource, ResourceTemplate, Server, Symbol, ToolError, Vars};

use crate::Recall;
use crate::graph::{entities, read};
use crate::tools::memory;

/// The whole graph.
const GRAPH: &str = "memory://knowledge-graph";
/// One entity.
const ENTITY: &str = "memory://entities/{name}";
/// How many names are offered as completions.
const OFFERED: usize = 100;

pub(crate) fn add(server: Server, recall: &Recall) -> Server {
    let (graph, entity, names) = (recall.clone(), recall.clone(), recall.clone());
    server
        .resource(
            Resource::new(GRAPH, "knowledge-graph")
                .title("Knowledge Graph")
                .description("Everything that is known: entities, observations and relations")
                .mime_type("application/json")
                .reader(move |cx: Cx| {
                    let memory = memory(&graph, &cx);
                    async move { pretty(&memory.view(read::whole).await?) }
                }),
        )
        .resource_template(
            ResourceTemplate::new(ENTITY, "entity")
                .title("Entity")
                .description("What is known of one entity, and its relations")
                .mime_type("application/json")
                .reader(move |vars: Vars, cx: Cx| {
                    let (memory, name) =
                        (memory(&entity, &cx), vars.get("name").unwrap_or_default().to_owned());
                    async move {
                        let found = memory.view({
                            let name = name.clone();
                            move |view| read::open(view, &[name])
                        });
                        let found = found.await?;
                        if found.entities.is_empty() {
                            let what = format!("There is no entity {name:?} in the memory");
                            return Err(ToolError::new(Symbol::ResourceNotFound, what));
                        }
                        pretty(&found)
                    }
                })
                .complete("name", move |typed: Completing, cx: Cx| {
                    let memory = memory(&names, &cx);
                    async move {
                        let found =
                            memory.view(move |view| entities::starting(view, &typed.value, OFFERED)).await;
                        found.unwrap_or_default()
                    }
                }),
        )
}

fn pretty(value: &impl serde::Serialize) -> Result<String, ToolError> {
    serde_json::to_string_pretty(value).map_err(ToolError::from_error)
}

/// Tells subscribers that these entities have changed, and with them the graph: those who share the memory of whoever
/// changed them, and nobody else.
pub(crate) fn changed(cx: &Cx, names: &[String]) {
    let (server, whose) = (cx.server(), cx.principal());
    server.resource_updated_for(whose, GRAPH);
    for name in names {
        server.resource_updated_for(whose, &entity_uri(name));
    }
}

/// The address of an entity: [`ENTITY`] with its name, escaped where it must be.
pub(crate) fn entity_uri(name: &str) -> String {
    let mut uri = String::from("memory://entities/");
    for byte in name.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => uri.push(char::from(byte)),
            _ => uri.push_str(&format!("%{byte:02X}")),
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_escaped() {
        assert_eq!(entity_uri("Ann-1_b.c~"), "memory://entities/Ann-1_b.c~");
        assert_eq!(entity_uri("a b/ü"), "memory://entities/a%20b%2F%C3%BC");
    }
}
