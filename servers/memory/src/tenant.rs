//! Whose memory a call is about: the caller's own if the caller is authenticated, else the tenant that the call names.
//!
//! A call names its tenant as `tenant_id`: in the arguments of a tool, in the query of a URI
//! (`memory://knowledge-graph?tenant_id=acme`), or in `_meta`. It never leads an authenticated caller to somebody else's
//! memory: then it may only repeat what is known.

use tidegate_protocol::meta;
use tidegate_server::{Cx, Principal};

use crate::escape::{escaped, unescaped};
use crate::store::{Fault, Memory, Result};
use crate::{DEFAULT_TENANT, Recall, agents, telling, tenant_key};

/// The argument, in the two ways in which it is written.
pub(crate) const NAMES: [&str; 2] = ["tenant_id", "tenantId"];
/// The same for the user.
const USERS: [&str; 2] = ["user_id", "userId"];
/// Where a list goes on, in the query of its URI.
pub(crate) const AFTER: &str = "after";
/// Longest name of a tenant, in characters.
const MAX_NAME: usize = 200;

/// What the memory of a call is called in the store.
pub(crate) fn of(cx: &Cx) -> String {
    match chosen(cx) {
        Some(name) => tenant_key(Some(&name)),
        None => telling::tenant_of(cx.principal()),
    }
}

/// The memory that a call is about, if the caller may name it. For whatever is no tool: those are checked where they are
/// called.
pub(crate) fn memory(recall: &Recall, cx: &Cx) -> Result<Memory> {
    admit(cx)?;
    Ok(recall.of(cx))
}

/// The tenant that a call names, if the caller is not authenticated; `None` for the default one.
pub(crate) fn chosen(cx: &Cx) -> Option<String> {
    if is_known(cx.principal()) {
        return None;
    }
    let mut named = named(cx, &NAMES, meta::TENANT).into_iter().flatten().filter(|name| !name.is_empty());
    named.next().filter(|name| name != DEFAULT_TENANT)
}

/// Whether a call names a tenant. The default one counts: who names it means it and no other.
pub(crate) fn is_named(cx: &Cx) -> bool {
    named(cx, &NAMES, meta::TENANT).into_iter().flatten().any(|name| !name.is_empty())
}

/// The user that a call names. It counts only if the caller is not authenticated.
pub(crate) fn user(cx: &Cx) -> Option<String> {
    named(cx, &USERS, USERS[0]).into_iter().flatten().find(|name| !name.is_empty())
}

/// What a call has under these names, wherever it may: the first is what counts. `None` stands for what is no text.
fn named(cx: &Cx, names: &[&str], in_meta: &str) -> Vec<Option<String>> {
    let mut found = Vec::new();
    let mut look = |object: &tidegate_protocol::Object, names: &mut dyn Iterator<Item = &str>| {
        for name in names {
            match object.get(name) {
                None | Some("null") => {}
                Some(_) => found.push(object.str(name).map(|text| text.into_owned())),
            }
        }
    };
    let arguments = cx.arguments();
    if let Some(arguments) = &arguments {
        look(arguments, &mut names.iter().copied());
    }
    // An agent looks only into the memory that it was asked in, whatever URIs its model or its author writes.
    if agents::depth(cx) > 0 {
        return found;
    }
    if let Some(meta) = cx.meta() {
        look(meta, &mut names.iter().copied().chain((in_meta != names[0]).then_some(in_meta)));
    }
    let uris = [cx.uri(), arguments.and_then(|arguments| Some(arguments.str("agent_uri")?.into_owned()))];
    let in_uris = uris.iter().flatten().flat_map(|uri| names.iter().filter_map(|name| in_query(uri, name)));
    found.extend(in_uris.map(Some));
    found
}

/// What the query of a URI says under a name.
pub(crate) fn in_query(uri: &str, name: &str) -> Option<String> {
    let (_, query) = split(uri)?;
    let value = query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('='))?;
    Some(unescaped(value).unwrap_or_else(|_| value.to_owned()))
}

/// The URI without its query.
pub(crate) fn without_query(uri: &str) -> &str {
    split(uri).map_or(uri, |(path, _)| path)
}

/// The URI and its query, if everything in that is known here. Any other question mark belongs to a name.
fn split(uri: &str) -> Option<(&str, &str)> {
    let (path, query) = uri.split_once('?')?;
    let known = |pair: &str| {
        let name = pair.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| NAMES.contains(&name) || USERS.contains(&name) || name == AFTER)
    };
    query.split('&').all(known).then_some((path, query))
}

/// The URI under which a thing of this tenant can be read by somebody who is not authenticated.
pub(crate) fn qualified(uri: &str, chosen: Option<&str>) -> String {
    match chosen {
        Some(tenant) => format!("{uri}?{}={}", NAMES[0], escaped(tenant)),
        None => uri.to_owned(),
    }
}

/// The name of the tenant that a memory belongs to, if somebody who is not authenticated can name it.
pub(crate) fn name_of(key: &str) -> Option<&str> {
    key.strip_prefix(telling::TENANT)
}

/// Refuses a call that names a tenant which is not the caller's own, or no possible tenant, or two.
pub(crate) fn admit(cx: &Cx) -> Result<()> {
    let mut first: Option<String> = None;
    for given in named(cx, &NAMES, meta::TENANT) {
        let Some(given) = given else { return Err(Fault::input("tenant_id", "must be a string")) };
        check(cx.principal(), Some(&given))?;
        match &first {
            _ if given.is_empty() => {}
            Some(first) if *first != given => {
                let reason = format!("the call names two tenants, {first:?} and {given:?}: name one");
                return Err(Fault::input("tenant_id", reason));
            }
            _ => first = Some(given),
        }
    }
    Ok(())
}

/// Refuses one name for these reasons.
pub(crate) fn check(principal: &Principal, given: Option<&str>) -> Result<()> {
    let Some(given) = given.filter(|given| !given.is_empty()) else { return Ok(()) };
    let own = match (&principal.tenant, &principal.subject) {
        (Some(tenant), _) => &**tenant,
        (None, Some(subject)) if given != DEFAULT_TENANT => &**subject,
        (None, Some(_)) => return Ok(()),
        (None, None) if given.trim().is_empty() => {
            return Err(Fault::input("tenant_id", "must not be blank"));
        }
        (None, None) if given.chars().count() > MAX_NAME || given.chars().any(char::is_control) => {
            let reason = format!("must be one line of at most {MAX_NAME} characters");
            return Err(Fault::input("tenant_id", reason));
        }
        (None, None) => return Ok(()),
    };
    match given == own {
        true => Ok(()),
        false => Err(Fault::input(
            "tenant_id",
            format!("Access denied: it must be your own tenant, {own:?}. Leave it out to use that one"),
        )),
    }
}

fn is_known(principal: &Principal) -> bool {
    principal.tenant.is_some() || principal.subject.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tenants_are_named_in_queries() {
        for (uri, tenant) in [
            ("memory://knowledge-graph", None),
            ("memory://knowledge-graph?tenant_id=acme", Some("acme")),
            ("my-agents://list?user_id=ann&tenant_id=a%20b", Some("a b")),
            ("my-agents://list?not_tenant_id=acme", None),
            ("agentlet://x?tenant_id=", Some("")),
        ] {
            assert_eq!(in_query(uri, "tenant_id").as_deref(), tenant, "{uri}");
        }
        let uri = qualified("agentlet://user/ann/x", Some("a&b"));
        assert_eq!(uri, "agentlet://user/ann/x?tenant_id=a%26b");
        assert_eq!(in_query(&uri, "tenant_id").as_deref(), Some("a&b"));
        assert_eq!(without_query(&uri), "agentlet://user/ann/x");
    }

    #[test]
    fn who_is_known_may_only_repeat_it() {
        let principal = |subject: Option<&str>, tenant: Option<&str>| Principal {
            subject: subject.map(Into::into),
            tenant: tenant.map(Into::into),
            issuer: None,
        };
        for (who, given, fine) in [
            (principal(None, None), "acme", true),
            (principal(None, None), "", true),
            (principal(None, None), " ", false),
            (principal(None, None), "a\nb", false),
            (principal(None, Some("acme")), "acme", true),
            (principal(None, Some("acme")), "default", false),
            (principal(Some("ann"), Some("acme")), "ann", false),
            (principal(Some("ann"), None), "ann", true),
            (principal(Some("ann"), None), "default", true),
            (principal(Some("ann"), None), "acme", false),
        ] {
            assert_eq!(check(&who, Some(given)).is_ok(), fine, "{who:?} {given:?}");
            assert!(check(&who, None).is_ok());
        }
    }
}
