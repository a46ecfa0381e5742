//! [`Address`]: how an agent is named, in the ways in which people name them.

use super::check;
use crate::error::{Fault, Result};
use crate::uri::{escaped_but, unescaped, without_query};

/// Where an agent is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Address {
    /// One that comes with the server.
    System(String),
    /// Somebody's own.
    User { owner: String, name: String },
    /// Somebody's own if there is one, else one that comes with the server.
    Plain(String),
    /// Either, by the name that it has in code: `tidegate.agents.Researcher`.
    Full(String),
}

/// What the name of a user may have besides letters and digits that may stand in an address as it is.
const PLAIN: &str = "@+:";
/// The agents of the user who reads it.
pub(crate) const OWN: &str = "my-agents://list";
/// How addresses begin.
const SCHEME: &str = "agentlet://";

impl Address {
    /// `researcher`, `system/researcher`, `user/ann/my-agent`, `tidegate.agents.Researcher`, each with or without
    /// `agentlet://`.
    pub(crate) fn parse(field: &str, text: &str) -> Result<Address> {
        let wrong = |reason: &str| {
            let ways = "name an agent like \"researcher\", \"system/researcher\" or \"user/<you>/<name>\", with or \
                        without agentlet:// in front";
            Fault::input(field, format!("{reason}; {ways}"))
        };
        let text = text.trim();
        if text.len() > 512 {
            return Err(wrong("is too long"));
        }
        // Whose memory it is in was read from the query where the call came in.
        let text = match text.starts_with(SCHEME) {
            true => without_query(text),
            false => text,
        };
        let path = match text.split_once("://") {
            Some(_) => {
                let path = text
                    .strip_prefix(SCHEME)
                    .ok_or_else(|| wrong("must start with agentlet:// if it is a URI"))?;
                unescaped(path).map_err(|why| wrong(&format!("is not a valid URI: {why}")))?
            }
            None => text.to_owned(),
        };
        let parts: Vec<&str> = path.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(wrong(if path.is_empty() { "is empty" } else { "has an empty part" }));
        }
        let name = |part: &str| -> Result<String> {
            check::name(field, part).map_err(|_| wrong(&format!("{part:?} is not the name of an agent")))?;
            Ok(part.to_owned())
        };
        match parts[..] {
            [full] if check::full_name(full) => Ok(Address::Full(full.to_owned())),
            [plain] => Ok(Address::Plain(name(plain)?)),
            ["system", system] => Ok(Address::System(name(system)?)),
            ["user", owner, own] => {
                check::owner(field, owner).map_err(|_| wrong(&format!("{owner:?} is not a user name")))?;
                Ok(Address::User { owner: owner.to_owned(), name: name(own)? })
            }
            _ => Err(wrong("is not the URI of an agent")),
        }
    }

    pub(crate) fn name(&self) -> &str {
        match self {
            Address::System(name)
            | Address::Plain(name)
            | Address::Full(name)
            | Address::User { name, .. } => name,
        }
    }
}

/// The text of an address without its scheme and its query.
pub(crate) fn bare(text: &str) -> &str {
    let text = text.trim();
    text.strip_prefix(SCHEME).map_or(text, without_query)
}

/// The address of an agent that comes with the server.
pub(crate) fn system(name: &str) -> String {
    format!("{SCHEME}system/{name}")
}

/// The address of somebody's own agent.
pub(crate) fn user(owner: &str, name: &str) -> String {
    format!("{SCHEME}user/{}/{name}", escaped_but(owner, PLAIN))
}

/// Whether this is the URI of one user's agent.
pub(crate) fn is_of_user(uri: &str) -> bool {
    uri.contains("://") && matches!(Address::parse("uri", uri), Ok(Address::User { .. }))
}

/// The name of the agent at an address, if that is one that people made, all in small letters.
pub(crate) fn name_at(uri: &str) -> Option<String> {
    match Address::parse("uri", Some(uri).filter(|uri| uri.contains("://"))?).ok()? {
        Address::System(_) | Address::Full(_) => None,
        Address::User { name, .. } | Address::Plain(name) => Some(name.to_lowercase()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_of_any_name_have_addresses() {
        for owner in ["ann", "jürgen@example.org", "auth0|7", "a+b:c_d.e-f"] {
            let uri = super::user(owner, "x");
            assert!(uri.is_ascii() && !uri.contains('|'), "{uri}");
            let address = Address::User { owner: owner.to_owned(), name: "x".to_owned() };
            assert_eq!(Address::parse("uri", &uri), Ok(address));
        }
        assert_eq!(super::user("ann@example.org", "x"), "agentlet://user/ann@example.org/x");
    }

    #[test]
    fn agents_are_named_in_many_ways() {
        let plain = Address::Plain("researcher".into());
        let system = Address::System("x".into());
        let user = Address::User { owner: "t-1".into(), name: "mine".into() };
        for (text, address) in [
            ("researcher", &plain),
            ("agentlet://researcher", &plain),
            ("system/x", &system),
            ("agentlet://system/x", &system),
            ("user/t-1/mine", &user),
            ("tidegate.agents.X", &Address::Full("tidegate.agents.X".into())),
            (" agentlet://user/t-1/mine ", &user),
            ("agentlet://user/t-1/mine?tenant_id=acme", &user),
            ("agentlet://user/t%2D1/mine", &user),
        ] {
            assert_eq!(Address::parse("agent_uri", text).as_ref(), Ok(address), "{text}");
        }
        for bad in [
            "",
            "agentlet://",
            "http://x",
            "system/",
            "system/a/b",
            "user/x",
            "user//x",
            "user/../x/y",
            "a b",
            "user/a\nb/c",
            "other/x",
            "researcher?tenant_id=acme",
            "agentlet://researcher?version=2",
            "agentlet://%zz",
            "agentlet://user/%FF/x",
            "a..b",
            ".a",
            &"x".repeat(600),
        ] {
            let fault = Address::parse("agent_uri", bad).unwrap_err();
            assert!(
                fault.message.starts_with("agent_uri: ") && fault.message.contains("researcher"),
                "{fault}"
            );
        }
    }
}
