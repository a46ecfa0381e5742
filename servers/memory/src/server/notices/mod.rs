//! Notices: the clients of a server hear of changes that they subscribed to, those of their own memory and no others.

mod touched;

use std::sync::Arc;

use tidegate_server::{Principal, ServerHandle, WeakServerHandle};

use super::tenant::{self, users_of};
use crate::agents::address::is_of_user;
use crate::error::Result;
use crate::store::{ChangeListener, ChangeNotice, DEFAULT_TENANT, Store, View, tenant_key};
use crate::uri::{TENANT_NAMES, in_query, without_query};
use touched::{Interest, WatchedResource};

/// Lets the clients of a server know of every change of the store.
/// If its callers are authenticated, nobody hears of a tenant by naming it.
pub(crate) fn begin(store: &Store, server: &ServerHandle, is_authenticated: bool) {
    store.listen(Arc::new(Clients { server: server.downgrade(), is_authenticated }));
}

/// The clients of a server.
struct Clients {
    server: WeakServerHandle,
    is_authenticated: bool,
}

impl ChangeListener for Clients {
    fn is_gone(&self) -> bool {
        self.server.upgrade().is_none()
    }

    fn is_listening(&self) -> bool {
        self.server.upgrade().is_some_and(|server| server.subscriptions() > 0)
    }

    fn is_interested(&self, tenant: &str) -> bool {
        !self.interest(tenant).is_none()
    }

    fn notice(&self, view: &mut View<'_>, tenant: &str, change: i64) -> Result<Option<ChangeNotice>> {
        let interest = self.interest(tenant);
        match interest.is_none() {
            true => Ok(None),
            false => touched::notice_of(view, change, change, &interest).map(Some),
        }
    }

    fn tell(&self, tenant: &str, notice: &ChangeNotice) {
        let Some(server) = self.server.upgrade() else { return };
        for group in Group::watching(tenant, self.is_authenticated) {
            for uri in notice.uris.iter().filter(|uri| group.may_read(uri, tenant)) {
                server.resource_updated_for(&group.principal, uri);
            }
            if notice.list && group.lists {
                server.resources_changed_for(&group.principal);
            }
        }
    }
}

impl Clients {
    /// What is to be told of changes of a tenant's memory.
    fn interest(&self, tenant: &str) -> Interest {
        let Some(server) = self.server.upgrade() else { return Interest::default() };
        let mut interest = Interest::default();
        for group in Group::watching(tenant, self.is_authenticated) {
            let watched = server.watched_by(&group.principal);
            interest.list |= watched.list && group.lists;
            for uri in watched.uris.into_iter().filter(|uri| group.may_read(uri, tenant)) {
                let Some(thing) = WatchedResource::at(without_query(&uri)) else { continue };
                let uris = interest.things.entry(thing).or_default();
                if !uris.contains(&uri) {
                    uris.push(uri);
                }
            }
        }
        interest
    }
}

/// Subscribers who can read the same memory in the same way.
struct Group {
    principal: Principal,
    /// Whether it is their own memory, which they see listed.
    lists: bool,
}

impl Group {
    /// Those who can read a tenant's memory: its own users, and, where callers need not be authenticated, whoever is not and
    /// names it.
    fn watching(tenant: &str, is_authenticated: bool) -> impl Iterator<Item = Group> {
        let users = users_of(tenant).map(|principal| Group { principal, lists: true });
        let nobody = (tenant != DEFAULT_TENANT && !is_authenticated)
            .then(|| Group { principal: Principal::default(), lists: false });
        users.into_iter().chain(nobody)
    }

    /// Whether a URI leads them to this tenant's memory.
    fn may_read(&self, uri: &str, tenant: &str) -> bool {
        let named = TENANT_NAMES.iter().find_map(|name| in_query(uri, name)).filter(|name| !name.is_empty());
        let is_nobody = self.principal == Principal::default();
        match named {
            Some(name) if is_nobody && name == DEFAULT_TENANT => tenant == DEFAULT_TENANT,
            Some(name) if is_nobody => tenant_key(Some(&name)) == tenant,
            // Its users were let in with what they named.
            Some(_) => true,
            // The URI of an agent need not name its tenant.
            None => self.lists || is_of_user(uri) && tenant::name_of(tenant).is_some(),
        }
    }
}
