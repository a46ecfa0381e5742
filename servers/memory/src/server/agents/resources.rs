//! Resources: lists of agents with their schemas, and each agent as a document.

use serde_json::{Value, json};
use tidegate_server::{
    Completing, Cx, PageRequest, Resource, ResourceContents, ResourcePage, ResourceTemplate, Server, Symbol,
    ToolError, Vars,
};

use super::caller::Caller;
use super::find;
use crate::agents::address::{self, OWN};
use crate::agents::agentlet::Agent;
use crate::agents::repository::{self, AgentRow};
use crate::agents::system;
use crate::error::{Code, Fault, Result as Stored};
use crate::models::answer;
use crate::server::resources::{OFFERED, if_chosen, moment};
use crate::server::state::ServerState;
use crate::server::tenant;
use crate::store::{Value as Stated, View};
use crate::uri::{AFTER, escaped, qualified};

/// The agents that come with the server.
const SYSTEM: &str = "system-agents://list";
/// The same for a tenant and a user that are named, and from where on.
const OWN_OF: &str = "my-agents://list{?tenant_id,user_id,after}";
/// One agent. A tenant may be named in a query, which is part of `uri` for the template.
const AGENT: &str = "agentlet://{+uri}";
/// How long the text of a list may be, in bytes. What does not fit is read from another URI.
const MAX_LIST: usize = 1024 * 1024;
/// Where `_meta` says at which URI a list goes on.
const NEXT: &str = "dev.tidegate/next";

pub(super) fn add(server: Server, state: &ServerState) -> Server {
    let (own, own_of, one) = (state.clone(), state.clone(), state.clone());
    let (named, listed) = (state.clone(), state.clone());
    let server = server
        .resource(
            Resource::new(SYSTEM, "system-agents")
                .title("System Agents")
                .description("The agents that come with the server, with their schemas")
                .mime_type("application/json")
                .reader(|_: Cx| async {
                    let item = |agent: &Agent| schema(&address::system(&agent.name), agent, true);
                    Ok(pretty(&system::all().iter().map(item).collect()))
                }),
        )
        .resource(
            Resource::new(OWN, "my-agents")
                .title("My Agents")
                .description("The agents that you have made, with their schemas")
                .mime_type("application/json")
                .reader(move |cx: Cx| own_agents(own.clone(), None, cx)),
        )
        .resource_template(if_chosen(
            state,
            ResourceTemplate::new(OWN_OF, "my-agents-of")
                .title("My Agents in a Tenant")
                .description("The agents of one user, with their schemas, where callers are not authenticated")
                .mime_type("application/json")
                .reader(move |vars: Vars, cx: Cx| {
                    own_agents(own_of.clone(), vars.get(AFTER).map(str::to_owned), cx)
                }),
        ))
        .resource_template(
            ResourceTemplate::new(AGENT, "agentlet")
                .title("Agent")
                .description(match state.settings.is_authenticated {
                    true => "An agent as a document: its prompt, the schema of its answers, its tools",
                    false => {
                        "An agent as a document: its prompt, the schema of its answers, its tools. ?tenant_id=<tenant> \
                         names the tenant, where callers are not authenticated"
                    }
                })
                .mime_type("application/json")
                .reader(move |vars: Vars, cx: Cx| {
                    let state = one.clone();
                    async move {
                        let caller = Caller::reading(&state, &cx)?;
                        let found = find::to_read(&state, &caller, vars.uri()).await;
                        Ok(pretty(&found.map_err(missing)?.agent.document()))
                    }
                })
                .complete("uri", move |typed: Completing, cx: Cx| {
                    let state = named.clone();
                    async move {
                        let Ok(caller) = Caller::reading(&state, &cx) else { return Vec::new() };
                        let own = caller.memory.view(repository::all).await.unwrap_or_default();
                        let own = own.iter().map(|kept| {
                            let uri = format!("user/{}/{}", kept.owner, kept.agent.name);
                            qualified(&uri, caller.chosen.as_deref())
                        });
                        let system = system::all().iter().map(|agent| format!("system/{}", agent.name));
                        let mut offered = typed.filter(own.chain(system));
                        offered.truncate(OFFERED);
                        offered
                    }
                }),
        )
        .resource_source(move |request: PageRequest, cx: Cx| {
            let state = listed.clone();
            async move {
                let (memory, chosen) = (state.admitted_memory(&cx)?, tenant::chosen(&cx));
                let limit = request.limit;
                let found = memory.view(move |view| page(view, request.after, chosen.as_deref(), limit + 1));
                let mut found = found.await?;
                let more = found.len() > limit;
                found.truncate(limit);
                let next = found.last().filter(|_| more).map(|last| last.place.clone());
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

/// The list of the reader's own agents, from after one on.
async fn own_agents(
    state: ServerState,
    after: Option<String>,
    cx: Cx,
) -> Result<ResourceContents, ToolError> {
    let caller = Caller::reading(&state, &cx)?;
    let (owner, chosen) = (caller.owner(), caller.chosen.as_deref());
    let (whose, after) = (owner.clone(), after.unwrap_or_default());
    let kept =
        caller.memory.view(move |view| repository::owned(view, &whose, &after, repository::MOST)).await?;
    let (mut items, mut bytes, mut last, count) = (Vec::new(), 0, None, kept.len());
    for AgentRow { agent, owner, .. } in kept {
        let item = schema(&qualified(&address::user(&owner, &agent.name), chosen), &agent, false);
        bytes += pretty(&item).len();
        if bytes > MAX_LIST && !items.is_empty() {
            break;
        }
        items.push(item);
        last = Some(agent.name);
    }
    let is_cut = items.len() < count;
    let contents = ResourceContents::text("", pretty(&items.into())).mime_type("application/json");
    Ok(match last.filter(|_| is_cut) {
        Some(last) => {
            let tenant = chosen.map(|tenant| format!("tenant_id={}&", escaped(tenant))).unwrap_or_default();
            let user = named_user(&caller, &owner);
            contents.meta(json!({NEXT: format!("{OWN}?{tenant}{user}{}={last}", AFTER)}))
        }
        None => contents,
    })
}

/// The user in the URI of a list, if it must be named there.
fn named_user(caller: &Caller, owner: &str) -> String {
    match caller.is_anybody() && caller.named().is_some() {
        true => format!("user_id={}&", escaped(owner)),
        false => String::new(),
    }
}

/// Why there is nothing at a URI.
fn missing(fault: Fault) -> ToolError {
    match fault.code {
        Code::Database | Code::TenantNotFound => fault.into(),
        code => {
            let data = json!({"code": code.as_str()});
            ToolError::new(Symbol::ResourceNotFound, fault.message).data(data.into())
        }
    }
}

/// An agent in the list of those that people made.
struct Listed {
    /// Its place in the list.
    place: String,
    entry: Resource,
}

/// The agents of one tenant by name and user, from those after a place.
fn page(
    view: &mut View<'_>,
    after: Option<String>,
    chosen: Option<&str>,
    limit: usize,
) -> Stored<Vec<Listed>> {
    let after = after.unwrap_or_default();
    // No name has a slash in it.
    let (name, owner) = after.split_once('/').unwrap_or((&after, ""));
    let values = [Stated::Text(name.into()), Stated::Text(owner.into()), Stated::Int(limit as i64)];
    view.all(
        "SELECT name, owner, document, since FROM agents
         WHERE tenant = ?1 AND gone IS NULL AND (name > ?2 OR name = ?2 AND owner > ?3)
         ORDER BY name, owner LIMIT ?4",
        &values,
        |row| {
            let document: Value = serde_json::from_str(&row.text(2)?).unwrap_or_default();
            let (agent, owner) = (Agent::trusted(&document)?, row.text(1)?);
            let entry = entry(&qualified(&address::user(&owner, &agent.name), chosen), &agent);
            let place = format!("{}/{owner}", row.text(0)?);
            Ok(Listed { place, entry: entry.last_modified(moment(row.int(3)?)) })
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

/// An agent with its whole schema: the document, and where it is.
fn schema(uri: &str, agent: &Agent, system: bool) -> Value {
    let mut document = agent.document();
    (document["uri"], document["name"]) = (uri.into(), agent.name.as_str().into());
    document["system"] = system.into();
    document
}

fn pretty(value: &Value) -> String {
    format!("{value:#}")
}
