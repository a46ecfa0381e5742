//! Whose memory a call is about: the caller's own if the caller is authenticated, else the tenant that the call names.
//!
//! A call names its tenant as `tenant_id`: in the arguments of a tool, in the query of a URI
//! (`memory://knowledge-graph?tenant_id=acme`), or in `_meta`. It never leads an authenticated caller to somebody else's
//! memory: then it may only repeat what is known, and [`gate`] refuses everything else in one sentence, which says nothing
//! of which tenants there are.

use tidegate_protocol::{Json, Object, meta};
use tidegate_server::{Cx, Principal};
use tidegate_service::Call;

use super::runs::{depth, depth_in};
use crate::agents::owner;
use crate::error::{Fault, Result};
use crate::store::{DEFAULT_TENANT, TENANT_PREFIX, tenant_key};
use crate::uri::{TENANT_NAMES, USER_NAMES, all_in_query, in_query, is_own_scheme};

/// Longest name of a tenant, in characters.
const MAX_NAME: usize = 200;
/// Longest argument that may be an address, in bytes as it is written.
const MAX_URI: usize = 8 * 1024;

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

/// Who somebody is among the users of a memory, if that is known: the same subject of the same issuer.
pub(crate) fn user_key(principal: &Principal) -> Option<String> {
    Some(owner::of(principal.issuer.as_deref(), principal.subject.as_deref()?))
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
    let mut look = |object: &Object, names: &mut dyn Iterator<Item = &str>| {
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

/// Refuses a call of somebody who is not authenticated if it names no possible tenant, or two. What others may name is
/// settled by then, see [`gate`].
pub(crate) fn admit(cx: &Cx) -> Result<()> {
    if is_known(cx.principal()) {
        return Ok(());
    }
    let mut first: Option<String> = None;
    for given in named(cx, &TENANT_NAMES, meta::TENANT) {
        let Some(given) = given else { return Err(Fault::input("tenant_id", "must be a string")) };
        check(&given)?;
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

/// Refuses what cannot be the name of a tenant.
fn check(given: &str) -> Result<()> {
    if !given.is_empty() && given.trim().is_empty() {
        return Err(Fault::input("tenant_id", "must not be blank"));
    }
    if given.chars().count() > MAX_NAME || given.chars().any(char::is_control) {
        let reason = format!("must be one line of at most {MAX_NAME} characters");
        return Err(Fault::input("tenant_id", reason));
    }
    Ok(())
}

/// Refuses a call that names a tenant or a user which is not the caller's own, before anything else looks at it and
/// whatever it wants. If every caller `is_authenticated`, that goes for those who are not known, too: the user of this
/// machine has the default tenant and no other.
pub(crate) fn gate(call: &Call, is_authenticated: bool) -> Result<()> {
    let principal = &call.context.principal;
    if !is_authenticated && !is_known(principal) {
        return Ok(());
    }
    let params = call.params.object();
    let arguments = params.object("arguments").or_else(|| params.object("context")?.object("arguments"));
    if let Some(arguments) = &arguments {
        for (at, member) in arguments.members().enumerate() {
            let value = || arguments.json_at(at);
            // Arguments may be spelled in more than one way.
            let name = match spelling(&member.name).as_str() {
                "tenantid" => TENANT_NAMES[0],
                "userid" => USER_NAMES[0],
                _ => {
                    // The address of something, which may name a tenant.
                    if member.value.len() <= MAX_URI
                        && let Some(uri) = value().and_then(text).filter(|text| is_own_scheme(text.trim()))
                    {
                        check_uri(principal, uri.trim())?;
                    }
                    continue;
                }
            };
            check_value(principal, name, value())?;
        }
    }
    // What an agent that was asked in a tenant that somebody chose looks into is settled: see `named`.
    if principal.subject.is_none() && call.params.meta().is_some_and(|meta| depth_in(meta) > 0) {
        return Ok(());
    }
    if let Some(meta) = call.params.meta() {
        for name in TENANT_NAMES.into_iter().chain([meta::TENANT]) {
            check_value(principal, TENANT_NAMES[0], meta.json(name))?;
        }
        for name in USER_NAMES {
            check_value(principal, name, meta.json(name))?;
        }
    }
    let completed = params.object("ref");
    let uris = [params.str("uri"), completed.as_ref().and_then(|completed| completed.str("uri"))];
    uris.iter().flatten().try_for_each(|uri| check_uri(principal, uri))
}

/// Whether somebody may watch what is at a URI: one that names no tenant, or their own.
pub(crate) fn may_watch(principal: &Principal, uri: &str, is_authenticated: bool) -> bool {
    !is_authenticated && !is_known(principal) || check_uri(principal, uri).is_ok()
}

/// What is common to all spellings of an argument's name.
fn spelling(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn text(value: Json) -> Option<String> {
    value.to::<String>().ok()
}

/// Refuses a URI whose query names somebody else.
fn check_uri(principal: &Principal, uri: &str) -> Result<()> {
    for (name, value) in all_in_query(uri) {
        check_name(principal, name, Some(&value))?;
    }
    Ok(())
}

/// Refuses what is given under a name, if it names somebody else. Nothing and an empty text name nobody.
fn check_value(principal: &Principal, name: &str, given: Option<Json>) -> Result<()> {
    match given {
        Some(given) if given.as_str() != "null" => check_name(principal, name, text(given).as_deref()),
        _ => Ok(()),
    }
}

/// The same for a text; `None` is something else.
fn check_name(principal: &Principal, name: &str, given: Option<&str>) -> Result<()> {
    if given == Some("") {
        return Ok(());
    }
    if TENANT_NAMES.contains(&name) {
        return match given.is_some_and(|given| is_own(principal, given)) {
            true => Ok(()),
            false => Err(Fault::foreign_tenant()),
        };
    }
    match &principal.subject {
        Some(subject) if USER_NAMES.contains(&name) => {
            let is_own = |given: &str| *given == **subject || user_key(principal).as_deref() == Some(given);
            if given.is_some_and(is_own) { Ok(()) } else { Err(Fault::foreign_user()) }
        }
        _ => Ok(()),
    }
}

/// Whether this is what the tenant of somebody is called, to the letter.
fn is_own(principal: &Principal, given: &str) -> bool {
    match (&principal.tenant, &principal.subject) {
        (Some(tenant), _) => given == &**tenant,
        (None, Some(subject)) => given == &**subject || given == DEFAULT_TENANT,
        (None, None) => given == DEFAULT_TENANT,
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
        for (given, fine) in
            [("acme", true), ("", true), (" ", false), ("a\nb", false), (&*"x".repeat(201), false)]
        {
            assert_eq!(check(given).is_ok(), fine, "{given:?}");
        }
        for (who, given, fine) in [
            (principal(None, None), "acme", false),
            (principal(None, None), "default", true),
            (principal(None, Some("acme")), "", true),
            (principal(None, Some("acme")), "Acme", false),
            (principal(None, Some("acme")), "acme ", false),
            (principal(None, Some("acme")), "аcme", false),
            (principal(None, Some("acme")), "acme", true),
            (principal(None, Some("acme")), "default", false),
            (principal(Some("ann"), Some("acme")), "ann", false),
            (principal(Some("ann"), None), "ann", true),
            (principal(Some("ann"), None), "default", true),
            (principal(Some("ann"), None), "acme", false),
        ] {
            let refused = check_name(&who, "tenant_id", Some(given)).err();
            assert_eq!(refused, (!fine).then(Fault::foreign_tenant), "{who:?} {given:?}");
            assert_eq!(check_name(&who, "tenant_id", None), Err(Fault::foreign_tenant()), "no text");
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
