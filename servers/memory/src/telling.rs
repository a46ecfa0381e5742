//! Telling: the clients of a server hear of changes that they subscribed to, those of their own memory and no others.

use std::sync::Arc;

use tidegate_server::{Principal, ServerHandle, WeakServerHandle};

use crate::DEFAULT_TENANT;
use crate::store::{Store, Watcher};
use crate::touched::{Interest, Thing, Told};

/// How the memory of a tenant is called, and that of a person who has none.
const TENANT: &str = "tenant:";
const SUBJECT: &str = "subject:";

/// Whose memory somebody uses.
pub(crate) fn tenant_of(principal: &Principal) -> String {
    // A tenant and a person of the same name are not the same, and neither is nobody.
    match (&principal.tenant, &principal.subject) {
        (Some(tenant), _) => format!("{TENANT}{tenant}"),
        (None, Some(subject)) => format!("{SUBJECT}{subject}"),
        (None, None) => DEFAULT_TENANT.to_owned(),
    }
}

/// Those who use a memory, if they are clients of a server.
fn users_of(tenant: &str) -> Option<Principal> {
    let mut principal = Principal::default();
    if let Some(name) = tenant.strip_prefix(TENANT) {
        principal.tenant = Some(name.into());
    } else if let Some(name) = tenant.strip_prefix(SUBJECT) {
        principal.subject = Some(name.into());
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
        let (Some(server), Some(users)) = (self.0.upgrade(), users_of(tenant)) else {
            return Interest::default();
        };
        let watched = server.watched_by(&users);
        let mut interest = Interest { list: watched.list, ..Interest::default() };
        for uri in watched.uris {
            if let Some(thing) = Thing::at(&uri) {
                interest.things.entry(thing).or_default().push(uri);
            }
        }
        interest
    }

    fn tell(&self, tenant: &str, told: &Told) {
        let (Some(server), Some(users)) = (self.0.upgrade(), users_of(tenant)) else { return };
        for uri in &told.uris {
            server.resource_updated_for(&users, uri);
        }
        if told.list {
            server.resources_changed_for(&users);
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
        };
        assert_eq!(users_of(&tenant_of(&of(Some("ann"), Some("acme")))), Some(of(None, Some("acme"))));
        for one in [of(Some("acme"), None), of(Some("tenant:acme"), None), of(None, None)] {
            assert_eq!(users_of(&tenant_of(&one)), Some(one));
        }
        assert_eq!(users_of("somebody else's"), None);
    }
}
