//! Finding an agent by its address.

use super::caller::{Caller, denied};
use crate::agents::address::{self, Address};
use crate::agents::agentlet::Agent;
use crate::agents::repository::{self, AgentRow};
use crate::agents::system;
use crate::error::{Code, Fault, Result};
use crate::server::state::ServerState;
use crate::store::{DEFAULT_TENANT, View};
use crate::uri::qualified;

/// How many names are offered instead of one that is not known.
const OFFERED: usize = 3;
/// What Percolate puts before the names of the agents that come with it.
const PREFIX: &str = "percolate-";

/// An agent that was found.
#[derive(Debug)]
pub(crate) struct FoundAgent {
    pub(crate) uri: String,
    pub(crate) agent: Agent,
    /// As it is kept; `None` if it comes with the server.
    pub(crate) kept: Option<AgentRow>,
}

impl FoundAgent {
    fn system(agent: &Agent) -> FoundAgent {
        FoundAgent { uri: address::system(&agent.name), agent: agent.clone(), kept: None }
    }

    fn own(kept: AgentRow) -> FoundAgent {
        let uri = address::user(&kept.owner, &kept.agent.name);
        FoundAgent { uri, agent: kept.agent.clone(), kept: Some(kept) }
    }
}

/// Whose name stands in an address.
#[derive(Clone, Copy, PartialEq)]
enum Standing {
    Own,
    /// The caller, by a name that others may have, too.
    Alias,
    /// The caller's tenant, which may stand for whoever has the agent there.
    Tenant,
    Other,
}

/// What was found in a memory.
enum Lookup {
    Found(Box<AgentRow>),
    /// None that was made: perhaps one comes with the server. These are the names of all.
    None(Vec<String>),
    /// Several people have one of this name, and the caller has none.
    Several(Vec<String>),
    Denied,
}

/// The agent at an address. `field` is what the address was given as.
pub(crate) async fn agent(caller: &Caller, field: &'static str, text: &str) -> Result<FoundAgent> {
    let address = Address::parse(field, text)?;
    let (wanted, owner) = (address.clone(), caller.owner());
    let standing = match &address {
        Address::User { owner: named, .. } if *named != owner && caller.is_alias(named) => Standing::Alias,
        Address::User { owner, .. } if caller.is_tenant(owner) => Standing::Tenant,
        Address::User { owner, .. } if !caller.is(owner) => Standing::Other,
        _ => Standing::Own,
    };
    let outcome = caller.memory.view(move |view| look_up(view, &wanted, &owner, standing)).await?;
    let (name, known) = match outcome {
        Lookup::Found(kept) => return Ok(FoundAgent::own(*kept)),
        // Whether there is one of that name is not said, unless anybody could ask for it in any tenant.
        Lookup::Denied if !caller.is_anybody() => return Err(denied()),
        Lookup::Denied => (address.name(), Vec::new()),
        Lookup::Several(owners) => {
            let all: Vec<_> = owners.iter().map(|owner| address::user(owner, address.name())).collect();
            let reason = format!("several users have an agent of this name, say which: {}", all.join(", "));
            return Err(Fault::input(field, reason));
        }
        Lookup::None(known) => (address.name(), known),
    };
    let found = match &address {
        Address::User { .. } => None,
        Address::Full(full) => system::called(full),
        Address::System(name) | Address::Plain(name) => {
            system::named(name).or_else(|| system::named(bare(name)?))
        }
    };
    match found {
        Some(agent) => Ok(FoundAgent::system(agent)),
        None => {
            caller.memory.exists().await?;
            Err(unknown(field, text, name, known))
        }
    }
}

/// The agent at a URI that is read. If nobody is authenticated, its tenant need not be named where only one has it.
pub(crate) async fn to_read(state: &ServerState, caller: &Caller, uri: &str) -> Result<FoundAgent> {
    let missing = match agent(caller, "uri", uri).await {
        Err(fault) if fault.code == Code::AgentNotFound && caller.names_no_tenant() => fault,
        found => return found,
    };
    let Ok(Address::User { owner, name }) = Address::parse("uri", uri) else { return Err(missing) };
    match state.store.tenants_with_agent(&owner, &name).await?.as_slice() {
        [] => Err(missing),
        [only] => {
            let kept = state.store.of(only).view(move |view| repository::find(view, &owner, &name)).await?;
            kept.map(FoundAgent::own).ok_or(missing)
        }
        _ => {
            let what = "several tenants have this agent: add ?tenant_id=<tenant> to say which";
            Err(Fault::new(Code::AgentNotFound, format!("uri: {what}")))
        }
    }
}

/// The URI under which an agent of the caller can be read: without its tenant, if that leads to it all the same.
pub(crate) async fn uri(state: &ServerState, caller: &Caller, owner: &str, name: &str) -> Result<String> {
    let uri = address::user(owner, name);
    let Some(tenant) = &caller.chosen else { return Ok(uri) };
    let (whose, named) = (owner.to_owned(), name.to_owned());
    let default =
        state.store.of(DEFAULT_TENANT).view(move |view| repository::find(view, &whose, &named)).await?;
    let others = state.store.tenants_with_agent(owner, name).await?;
    // The name of the default tenant stands for any of its users.
    let is_alone = default.is_none() && owner != DEFAULT_TENANT && others.len() == 1;
    Ok(if is_alone { uri } else { qualified(&uri, Some(tenant)) })
}

/// The name without what Percolate puts before it.
fn bare(name: &str) -> Option<&str> {
    let (before, rest) = name.split_at_checked(PREFIX.len())?;
    before.eq_ignore_ascii_case(PREFIX).then_some(rest)
}

/// Looks in a memory: for the caller's own first, then, if the server has none of that name, for the only one.
fn look_up(view: &mut View<'_>, address: &Address, caller: &str, standing: Standing) -> Result<Lookup> {
    let found = match address {
        Address::System(_) => None,
        Address::Plain(name) => match repository::find(view, caller, name)? {
            None if system::named(name).is_some() || bare(name).and_then(system::named).is_some() => None,
            None => match repository::owners_of(view, name)?.as_slice() {
                [] => None,
                [only] => repository::find(view, only, name)?,
                several => return Ok(Lookup::Several(several.to_vec())),
            },
            own => own,
        },
        Address::Full(full) => {
            let fits = |kept: &AgentRow| kept.agent.fully_qualified_name().eq_ignore_ascii_case(full);
            let mut all: Vec<AgentRow> = match system::called(full) {
                Some(_) => Vec::new(),
                None => repository::all(view)?.into_iter().filter(fits).collect(),
            };
            all.sort_by_key(|kept| kept.owner != caller);
            all.into_iter().next()
        }
        Address::User { name, .. }
            if standing == Standing::Alias && repository::find(view, caller, name)?.is_some() =>
        {
            repository::find(view, caller, name)?
        }
        Address::User { owner, name } => match repository::find(view, owner, name)? {
            None if standing == Standing::Tenant => match repository::find(view, caller, name)? {
                None => match repository::owners_of(view, name)?.as_slice() {
                    [only] => repository::find(view, only, name)?,
                    _ => None,
                },
                own => own,
            },
            None if standing == Standing::Other && !repository::knows(view, owner)? => {
                return Ok(Lookup::Denied);
            }
            found => found,
        },
    };
    Ok(match found {
        Some(kept) => Lookup::Found(Box::new(kept)),
        None => Lookup::None(names(view)?),
    })
}

/// The names of all agents.
pub(crate) fn names(view: &mut View<'_>) -> Result<Vec<String>> {
    let mut names: Vec<String> = repository::all(view)?.into_iter().map(|kept| kept.agent.name).collect();
    names.extend(system::all().iter().map(|agent| agent.name.clone()));
    Ok(names)
}

/// A sentence about a name that nobody has, with those that are nearest.
fn unknown(field: &str, text: &str, name: &str, mut known: Vec<String>) -> Fault {
    let near = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    known.sort_by(|a, b| near(b).total_cmp(&near(a)));
    known.dedup();
    known.truncate(OFFERED);
    let text: String = address::bare(text).chars().take(100).collect();
    let near = match known.is_empty() {
        true => String::new(),
        false => format!(" Similar agents: {}.", known.join(", ")),
    };
    Fault::new(
        Code::AgentNotFound,
        format!("{field}: Agent not found: there is no agent {text:?}.{near} Use list_agents to see all"),
    )
}
