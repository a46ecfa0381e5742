//! Telling: the clients of a server hear of changes that they subscribed to, those of their own memory and no others.

use std::sync::Arc;

use tidegate_server::{Principal, ServerHandle, WeakServerHandle};

use crate::store::{Store, Watcher};
use crate::tenant::{in_query, without_query};
use crate::touched::{Interest, Thing, Told};
use crate::{DEFAULT_TENANT, agents, tenant, tenant_key};

/// How the memory of a tenant is called, and that of a person who has none.
pub(crate) const TENANT: &str = "tenant:";
const SUBJECT: &str = "subject:";
/// Between an issuer and a subject. No issuer's name has it.
const OF_ISSUER: char = '\u{1f}';

/// Whose memory somebody uses.
pub(crate) fn tenant_of(principal: &Principal) -> String {
    // A tenant and a person of the same name are not the same, and neither is nobody.
    match (&principal.tenant, &principal.subject) {
        (Some(tenant), _) => format!("{TENANT}{tenant}"),
        // Two issuers may know different people by the same name.
        (None, Some(subject)) => match &principal.issuer {
            Some(issuer) => format!("{SUBJECT}{issuer}{OF_ISSUER}{subject}"),
            None => format!("{SUBJECT}{subject}"),
        },
        (None, None) => DEFAULT_TENANT.to_owned(),
    }
}

/// Those who use a memory, if they are clients of a server.
fn users_of(tenant: &str) -> Option<Principal> {
    let mut principal = Principal::default();
    if let Some(name) = tenant.strip_prefix(TENANT) {
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

/// Lets the clients of a server know of every change of the store.
pub(crate) fn begin(store: &Store, server: &ServerHandle) {
    store.watched_by(Arc::new(Clients(server.downgrade())));
}

/// The clients of a server.
struct Clients(WeakServerHandle);

impl Watcher for Clients {
    fn is_gone(&self) -> bool {
        self.0.upgrade().is_none()
    }

    fn is_watching(&self) -> bool {
        self.0.upgrade().is_some_and(|server| server.subscriptions() > 0)
    }

    fn interest(&self, tenant: &str) -> Interest {
        let Some(server) = self.0.upgrade() else { return Interest::default() };
        let mut interest = Interest::default();
        for group in Group::watching(tenant) {
            let watched = server.watched_by(&group.principal);
            interest.list |= watched.list && group.lists;
            for uri in watched.uris.into_iter().filter(|uri| group.may_read(uri, tenant)) {
                let Some(thing) = Thing::at(without_query(&uri)) else { continue };
                let uris = interest.things.entry(thing).or_default();
                if !uris.contains(&uri) {
                    uris.push(uri);
                }
            }
        }
        interest
    }

    fn tell(&self, tenant: &str, told: &Told) {
        let Some(server) = self.0.upgrade() else { return };
        for group in Group::watching(tenant) {
            for uri in told.uris.iter().filter(|uri| group.may_read(uri, tenant)) {
                server.resource_updated_for(&group.principal, uri);
            }
            if told.list && group.lists {
                server.resources_changed_for(&group.principal);
            }
        }
    }
}

/// Subscribers who can read the same memory in the same way.
struct Group {
    principal: Principal,
    /// Whether it is their own memory, which they see listed.
    lists: bool,
}

impl Group {
    /// Those who can read a tenant's memory: its own users, and whoever is not authenticated and names it.
    fn watching(tenant: &str) -> impl Iterator<Item = Group> {
        let users = users_of(tenant).map(|principal| Group { principal, lists: true });
        let nobody =
            (tenant != DEFAULT_TENANT).then(|| Group { principal: Principal::default(), lists: false });
        users.into_iter().chain(nobody)
    }

    /// Whether a URI leads them to this tenant's memory.
    fn may_read(&self, uri: &str, tenant: &str) -> bool {
        let named = tenant::NAMES.iter().find_map(|name| in_query(uri, name)).filter(|name| !name.is_empty());
        let is_nobody = self.principal == Principal::default();
        match named {
            Some(name) if is_nobody && name == DEFAULT_TENANT => tenant == DEFAULT_TENANT,
            Some(name) if is_nobody => tenant_key(Some(&name)) == tenant,
            Some(name) => tenant::check(&self.principal, Some(&name)).is_ok(),
            // The URI of an agent need not name its tenant.
            None => self.lists || agents::is_of_user(uri) && tenant::name_of(tenant).is_some(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
