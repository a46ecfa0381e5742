//! Resources: the agents that there are, and each of them as a document.

use serde_json::{Value, json};
use tidegate_server::{
    Completing, Cx, Resource, ResourceTemplate, Server, ServerHandle, Symbol, ToolError, Vars,
};

use super::agentlet::Agent;
use super::caller::Caller;
use super::{address, answer, find, kept, system};
use crate::Recall;
use crate::store::Code;

/// The agents that come with the server.
const SYSTEM: &str = "system-agents://list";
/// The agents that the reader made.
const OWN: &str = "my-agents://list";
/// One agent.
const AGENT: &str = "agentlet://{+uri}";

pub(super) fn add(server: Server, recall: &Recall) -> Server {
    let (own, one, named) = (recall.clone(), recall.clone(), recall.clone());
    server
        .resource(
            Resource::new(SYSTEM, "system-agents")
                .title("System Agents")
                .description("The agents that come with the server")
                .mime_type("application/json")
                .reader(|_: Cx| async {
                    let item = |agent: &Agent| item(&address::system(&agent.name), agent, true);
                    pretty(&system::all().iter().map(item).collect())
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
                        pretty(&kept.iter().map(item).collect())
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
                        pretty(&found.agent.document())
                    }
                })
                .complete("uri", move |typed: Completing, cx: Cx| {
                    let caller = Caller::new(&named, &cx);
                    async move {
                        let own = caller.memory.view(kept::all).await.unwrap_or_default();
                        let own = own.iter().map(|kept| format!("user/{}/{}", kept.owner, kept.agent.name));
                        let system = system::all().iter().map(|agent| format!("system/{}", agent.name));
                        typed.filter(own.chain(system))
                    }
                }),
        )
}

/// An agent as it is listed.
pub(super) fn item(uri: &str, agent: &Agent, system: bool) -> Value {
    json!({
        "uri": uri, "name": agent.name, "description": answer::short(agent.description.clone()),
        "version": agent.version, "fully_qualified_name": agent.fully_qualified_name(), "system": system,
    })
}

fn pretty(value: &Value) -> Result<String, ToolError> {
    serde_json::to_string_pretty(value).map_err(ToolError::from_error)
}

/// Tells subscribers that an agent has changed, and with it the list.
pub(super) fn changed(server: &ServerHandle, uri: &str) {
    server.resource_updated(OWN);
    server.resource_updated(uri);
}
