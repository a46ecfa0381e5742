//! Resources: the agents that there are, and each of them as a document.

use serde_json::{Value, json};
use tidegate_server::{
    Completing, Cx, PageRequest, Resource, ResourcePage, ResourceTemplate, Server, Symbol, ToolError, Vars,
};

use super::address::Address;
use super::agentlet::Agent;
use super::caller::Caller;
use super::{address, answer, find, kept, system};
use crate::Recall;
use crate::resources::{OFFERED, moment};
use crate::store::{Code, Result as Stored, Value as Stated, View};
use crate::tools::memory;

/// The agents that come with the server.
const SYSTEM: &str = "system-agents://list";
/// The agents that the reader made.
pub(crate) const OWN: &str = "my-agents://list";
/// One agent.
const AGENT: &str = "agentlet://{+uri}";

pub(super) fn add(server: Server, recall: &Recall) -> Server {
    let (own, one, named, listed) = (recall.clone(), recall.clone(), recall.clone(), recall.clone());
    let server = server
        .resource(
            Resource::new(SYSTEM, "system-agents")
                .title("System Agents")
                .description("The agents that come with the server")
                .mime_type("application/json")
                .reader(|_: Cx| async {
                    let item = |agent: &Agent| item(&address::system(&agent.name), agent, true);
                    Ok(pretty(&system::all().iter().map(item).collect()))
                }),
        )
        .resource(
            Resource::new(OWN, "my-agents")
                .title("My Agents")
                .description("The agents that you have made")
                .mime_type("application/json")
                .reader(move |cx: Cx| {
                    let caller = Caller::new(&own, &cx);
                    async move {
                        let kept = caller.memory.view(kept::all).await?;
                        let item = |kept: &kept::Kept| {
                            item(&address::user(&kept.owner, &kept.agent.name), &kept.agent, false)
                        };
                        Ok(pretty(&kept.iter().map(item).collect()))
                    }
                }),
        )
        .resource_template(
            ResourceTemplate::new(AGENT, "agentlet")
                .title("Agent")
                .description("An agent as a document: its prompt, the schema of its answers, its tools")
                .mime_type("application/json")
                .reader(move |vars: Vars, cx: Cx| {
                    let (caller, uri) =
                        (Caller::new(&one, &cx), vars.get("uri").unwrap_or_default().to_owned());
                    async move {
                        let found =
                            find::agent(&caller, "uri", &uri).await.map_err(|fault| match fault.code {
                                Code::Database => fault.into(),
                                _ => ToolError::new(Symbol::ResourceNotFound, fault.message),
                            })?;
                        Ok(pretty(&found.agent.document()))
                    }
                })
                .complete("uri", move |typed: Completing, cx: Cx| {
                    let caller = Caller::new(&named, &cx);
                    async move {
                        let own = caller.memory.view(kept::all).await.unwrap_or_default();
                        let own = own.iter().map(|kept| format!("user/{}/{}", kept.owner, kept.agent.name));
                        let system = system::all().iter().map(|agent| format!("system/{}", agent.name));
                        let mut offered = typed.filter(own.chain(system));
                        offered.truncate(OFFERED);
                        offered
                    }
                }),
        )
        .resource_source(move |request: PageRequest, cx: Cx| {
            let memory = memory(&listed, &cx);
            async move {
                let limit = request.limit;
                let mut found = memory.view(move |view| page(view, request.after, limit + 1)).await?;
                let more = found.len() > limit;
                found.truncate(limit);
                let next = found.last().filter(|_| more).map(|last| last.name.clone());
                let page = ResourcePage::new(found.into_iter().map(|listed| listed.entry));
                Ok(match next {
                    Some(next) => page.next(next),
                    None => page,
                })
            }
        });
    system::all().iter().fold(server, |server, agent| {
        server.resource(entry(&address::system(&agent.name), agent).fixed(pretty(&agent.document())))
    })
}

/// An agent in the list of those that people made.
struct Listed {
    /// The name that it is kept under: all in small letters.
    name: String,
    entry: Resource,
}

/// The agents of one tenant by name, from those after one.
fn page(view: &mut View<'_>, after: Option<String>, limit: usize) -> Stored<Vec<Listed>> {
    let values = [Stated::Text(after.unwrap_or_default().into()), Stated::Int(limit as i64)];
    view.all(
        "SELECT name, owner, document, since FROM agents WHERE tenant = ?1 AND gone IS NULL AND name > ?2
         ORDER BY name LIMIT ?3",
        &values,
        |row| {
            let document: Value = serde_json::from_str(&row.text(2)?).unwrap_or_default();
            let agent = Agent::trusted(&document)?;
            let entry = entry(&address::user(&row.text(1)?, &agent.name), &agent);
            Ok(Listed { name: row.text(0)?, entry: entry.last_modified(moment(row.int(3)?)) })
        },
    )
}

/// An agent as a resource.
fn entry(uri: &str, agent: &Agent) -> Resource {
    Resource::new(uri, agent.name.clone())
        .title(agent.title.clone().unwrap_or_else(|| agent.name.clone()))
        .description(answer::short(agent.description.clone()))
        .mime_type("application/json")
        .size(pretty(&agent.document()).len() as u64)
}

/// An agent as it is listed.
pub(super) fn item(uri: &str, agent: &Agent, system: bool) -> Value {
    json!({
        "uri": uri, "name": agent.name, "description": answer::short(agent.description.clone()),
        "version": agent.version, "fully_qualified_name": agent.fully_qualified_name(), "system": system,
    })
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}

/// The name of the agent at an address, if that is one that people made, all in small letters.
pub(crate) fn name_at(uri: &str) -> Option<String> {
    match Address::parse("uri", Some(uri).filter(|uri| uri.contains("://"))?).ok()? {
        Address::System(_) | Address::Full(_) => None,
        Address::User { name, .. } | Address::Plain(name) => Some(name.to_lowercase()),
    }
}
