//! Whose memory a call is about: the caller's own if the caller is authenticated, else the tenant that the call names.
//!
//! A call names its tenant as `tenant_id`: in the arguments of a tool, in the query of a URI
//! (`memory://knowledge-graph?tenant_id=acme`), or in `_meta`. It never leads an authenticated caller to somebody else's
//! memory: then it may only repeat what is known.

use tidegate_protocol::meta;
use tidegate_server::{Cx, Principal};

use super::runs::depth;
use crate::error::{Fault, Result};
use crate::store::{DEFAULT_TENANT, TENANT_PREFIX, tenant_key};
use crate::uri::{TENANT_NAMES, USER_NAMES, in_query};

/// Longest name of a tenant, in characters.
const MAX_NAME: usize = 200;

/// How the memory of a person who has no tenant is called.
const SUBJECT: &str = "subject:";
/// Between an issuer and a subject. No issuer's name has it.
const OF_ISSUER: char = '\u{1f}';

/// Whose memory somebody uses.
pub(crate) fn tenant_of(principal: &Principal) -> String {
    // A tenant and a person of the same name are not the same, and neither is nobody.
    match (&principal.tenant, &principal.subject) {
        (Some(tenant), _) => format!("{TENANT_PREFIX}{tenant}"),
        // Two issuers may know different people by the same name.
        (None, Some(subject)) => match &principal.issuer {
            Some(issuer) => format!("{SUBJECT}{issuer}{OF_ISSUER}{subject}"),
            None => format!("{SUBJECT}{subject}"),
        },
        (None, None) => DEFAULT_TENANT.to_owned(),
    }
}

/// Those who use a memory, if they are clients of a server.
pub(crate) fn users_of(tenant: &str) -> Option<Principal> {
    let mut principal = Principal::default();
    if let Some(name) = tenant.strip_prefix(TENANT_PREFIX) {
        principal.tenant = Some(name.into());
    } else if let Some(name) = tenant.strip_prefix(SUBJECT) {
        let (issuer, name) = match name.split_once(OF_ISSUER) {
            Some((issuer, name)) => (Some(issuer.into()), name),
            None => (None, name),
        };
        (principal.issuer, principal.subject) = (issuer, Some(name.into()));
    } else if tenant != DEFAULT_TENANT {
        return None;
    }
    Some(principal)
}

/// What the memory of a call is called in the store.
pub(crate) fn store_key(cx: &Cx) -> String {
    match chosen(cx) {
        Some(name) => tenant_key(Some(&name)),
        None => tenant_of(cx.principal()),
    }
}

/// The tenant that a call names, if the caller is not authenticated; `None` for the default one.
pub(crate) fn chosen(cx: &Cx) -> Option<String> {
    if is_known(cx.principal()) {
        return None;
    }
    let mut named =
        named(cx, &TENANT_NAMES, meta::TENANT).into_iter().flatten().filter(|name| !name.is_empty());
    named.next().filter(|name| name != DEFAULT_TENANT)
}

/// Whether a call names a tenant. The default one counts: who names it means it and no other.
pub(crate) fn is_named(cx: &Cx) -> bool {
    named(cx, &TENANT_NAMES, meta::TENANT).into_iter().flatten().any(|name| !name.is_empty())
}

/// The user that a call names. It counts only if the caller is not authenticated.
pub(crate) fn user(cx: &Cx) -> Option<String> {
    named(cx, &USER_NAMES, USER_NAMES[0]).into_iter().flatten().find(|name| !name.is_empty())
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
    if depth(cx) > 0 {
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

/// The name of the tenant that a memory belongs to, if somebody who is not authenticated can name it.
pub(crate) fn name_of(key: &str) -> Option<&str> {
    key.strip_prefix(TENANT_PREFIX)
}

/// Refuses a call that names a tenant which is not the caller's own, or no possible tenant, or two.
pub(crate) fn admit(cx: &Cx) -> Result<()> {
    let mut first: Option<String> = None;
    for given in named(cx, &TENANT_NAMES, meta::TENANT) {
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

    #[test]
    fn memories_are_their_users() {
        let of = |subject: Option<&str>, tenant: Option<&str>| Principal {
            subject: subject.map(Into::into),
            tenant: tenant.map(Into::into),
            issuer: None,
        };
        let issued = Principal::subject("ann").issued_by("https://id.example.com");
        assert_ne!(tenant_of(&issued), tenant_of(&of(Some("ann"), None)));
        assert_eq!(users_of(&tenant_of(&issued)), Some(issued));
        assert_eq!(users_of(&tenant_of(&of(Some("ann"), Some("acme")))), Some(of(None, Some("acme"))));
        for one in [of(Some("acme"), None), of(Some("tenant:acme"), None), of(None, None)] {
            assert_eq!(users_of(&tenant_of(&one)), Some(one));
        }
        assert_eq!(users_of("somebody else's"), None);
    }
}
