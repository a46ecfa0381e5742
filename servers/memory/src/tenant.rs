//! Whose memory a call is about: that of whoever is known to call, and where nobody is, the one that `tenant_id` names.
//!
//! Assistants that know Percolate give a `tenant_id` with every call. It never leads to the memory of somebody who must
//! say who they are: then it may only repeat what is known.

use tidegate_server::{Cx, Principal};

use crate::store::{Fault, Result};
use crate::{DEFAULT_TENANT, telling, tenant_key};

/// The argument, in the two ways in which it is written.
pub(crate) const NAMES: [&str; 2] = ["tenant_id", "tenantId"];
/// Longest name of a tenant, in characters.
const MAX_NAME: usize = 200;

/// What the memory of a call is called in the store.
pub(crate) fn of(cx: &Cx) -> String {
    match chosen(cx) {
        Some(name) => tenant_key(Some(&name)),
        None => telling::tenant_of(cx.principal()),
    }
}

/// The tenant that a call names, where nobody is known; `None` for the usual one.
pub(crate) fn chosen(cx: &Cx) -> Option<String> {
    if is_known(cx.principal()) {
        return None;
    }
    let arguments = cx.arguments()?;
    let given = NAMES.iter().find_map(|name| arguments.str(name))?;
    (!is_usual(&given)).then(|| given.into_owned())
}

/// Refuses a call that names a tenant which is not the caller's own, or none at all.
pub(crate) fn admit(cx: &Cx) -> Result<()> {
    let Some(arguments) = cx.arguments() else { return Ok(()) };
    for name in NAMES {
        match (arguments.get(name), arguments.str(name)) {
            (None | Some("null"), _) => {}
            (_, Some(given)) => check(cx.principal(), Some(&given))?,
            (_, None) => return Err(Fault::input("tenant_id", "must be a text")),
        }
    }
    Ok(())
}

/// The same for a tenant that was read out of the arguments already.
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
            let reason = format!("must have at most {MAX_NAME} characters, in one line");
            return Err(Fault::input("tenant_id", reason));
        }
        (None, None) => return Ok(()),
    };
    match given == own {
        true => Ok(()),
        false => Err(Fault::input(
            "tenant_id",
            format!("Access denied: it must be your own tenant, {own:?}; leave it out to mean that"),
        )),
    }
}

fn is_known(principal: &Principal) -> bool {
    principal.tenant.is_some() || principal.subject.is_some()
}

/// Whether this is another way to say nothing.
fn is_usual(name: &str) -> bool {
    name.is_empty() || name == DEFAULT_TENANT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_known_may_only_repeat_it() {
        let principal = |subject: Option<&str>, tenant: Option<&str>| Principal {
            subject: subject.map(Into::into),
            tenant: tenant.map(Into::into),
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
