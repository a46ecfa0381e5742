//! Finding an agent by its address.

use super::address::{self, Address};
use super::agentlet::Agent;
use super::caller::{Caller, denied};
use super::kept::{self, Kept};
use super::system;
use crate::store::{Code, Fault, Result, View};

/// How many names are offered instead of one that is not known.
const OFFERED: usize = 3;

/// An agent that was found.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) uri: String,
    pub(crate) agent: Agent,
    /// As it is kept; `None` if it comes with the server.
    pub(crate) kept: Option<Kept>,
}

impl Found {
    fn system(agent: &Agent) -> Found {
        Found { uri: address::system(&agent.name), agent: agent.clone(), kept: None }
    }

    fn own(kept: Kept) -> Found {
        let uri = address::user(&kept.owner, &kept.agent.name);
        Found { uri, agent: kept.agent.clone(), kept: Some(kept) }
    }
}

/// The agent at an address. `field` is what the address was given as.
pub(crate) async fn agent(caller: &Caller, field: &'static str, text: &str) -> Result<Found> {
    let address = Address::parse(field, text)?;
    let wanted = address.name().to_owned();
    let (own, known) = caller
        .memory
        .view(move |view| {
            let own = kept::find(view, &wanted)?;
            let known = if own.is_none() { names(view)? } else { Vec::new() };
            Ok((own, known))
        })
        .await?;
    let found = match &address {
        Address::System(name) => system::named(name).map(Found::system),
        Address::Plain(name) => own.map(Found::own).or_else(|| system::named(name).map(Found::system)),
        Address::User { owner, .. } => match own {
            Some(kept) if kept.owner == *owner || caller.is(owner) => Some(Found::own(kept)),
            None if caller.is(owner) => None,
            // Whether there is one of that name is not said.
            _ => return Err(denied()),
        },
    };
    found.ok_or_else(|| unknown(field, text, address.name(), known))
}

/// The names of all agents.
pub(crate) fn names(view: &mut View<'_>) -> Result<Vec<String>> {
    let mut names: Vec<String> = kept::all(view)?.into_iter().map(|kept| kept.agent.name).collect();
    names.extend(system::all().iter().map(|agent| agent.name.clone()));
    Ok(names)
}

/// A sentence about a name that nobody has, with those that are nearest.
fn unknown(field: &str, text: &str, name: &str, mut known: Vec<String>) -> Fault {
    if known.is_empty() {
        known = system::all().iter().map(|agent| agent.name.clone()).collect();
    }
    let near = |other: &str| strsim::jaro_winkler(&name.to_lowercase(), &other.to_lowercase());
    known.sort_by(|a, b| near(b).total_cmp(&near(a)));
    known.dedup();
    known.truncate(OFFERED);
    let text: String = text.chars().take(100).collect();
    Fault::new(
        Code::NotFound,
        format!(
            "{field}: there is no agent {text:?}. The nearest are {}; list_agents shows all",
            known.join(", ")
        ),
    )
}
