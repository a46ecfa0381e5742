//! [`Scope`]: for whom or what something is limited.

use std::borrow::Cow;

use tidegate_service::fair_queue::FairKey;
use tidegate_service::{Call, Principal};

use crate::Target;
use crate::group::Limit;
use crate::keyed::{CounterKey, KeyMaker};

/// Whom and what a call counts for. Each is hashed once, however many limits there are for it.
pub(crate) struct Subjects<'a> {
    pub(crate) call: &'a Call,
    pub(crate) target: Target<'a>,
    keys: &'a KeyMaker,
    /// By scope.
    hashes: [Option<u64>; 5],
}

impl<'a> Subjects<'a> {
    pub(crate) fn of(call: &'a Call, target: Target<'a>, keys: &'a KeyMaker) -> Subjects<'a> {
        Subjects { call, target, keys, hashes: [None; 5] }
    }

    /// What a limit counts the call under; `None` if the call has no such thing.
    pub(crate) fn key<T>(&mut self, limit: &Limit<T>) -> Option<CounterKey> {
        let subject = match self.hashes[limit.scope as usize] {
            Some(known) => known,
            None => *self.hashes[limit.scope as usize].insert(self.hash(limit.scope)?),
        };
        Some(CounterKey::new(limit.number, subject))
    }

    fn hash(&self, scope: Scope) -> Option<u64> {
        let Principal { issuer, subject, tenant } = &self.call.context.principal;
        let user = || self.keys.hash([issuer.as_deref(), subject.as_deref(), tenant.as_deref()]);
        let target = self.target;
        Some(match (scope, tenant) {
            (Scope::Tenant, Some(tenant)) => self.keys.hash([Some(&**tenant)]),
            (Scope::User | Scope::Tenant, _) => user(),
            (Scope::Endpoint, _) => self.keys.hash([self.call.context.endpoint.as_deref()]),
            (Scope::Tool, _) if target.is_unlisted => self.keys.hash([target.tool.and(target.server), None]),
            (Scope::Tool, _) => self.keys.hash([Some(target.tool?)]),
            (Scope::Server, _) => self.keys.hash([Some(target.server?)]),
        })
    }
}

/// For whom or what something is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Scope {
    /// Each user.
    User,
    /// Each tenant; a caller without one is one by itself.
    Tenant,
    /// Each endpoint.
    Endpoint,
    /// Each tool.
    Tool,
    /// Each server.
    Server,
}

impl Scope {
    /// All of them.
    pub const ALL: [Scope; 5] = [Scope::User, Scope::Tenant, Scope::Endpoint, Scope::Tool, Scope::Server];

    /// The word for it in a configuration and in the data of refusals.
    pub const fn as_str(self) -> &'static str {
        match self {
            Scope::User => "user",
            Scope::Tenant => "tenant",
            Scope::Endpoint => "endpoint",
            Scope::Tool => "tool",
            Scope::Server => "server",
        }
    }

    /// Whether a call that is part of another has a place here already, through that one.
    pub(crate) const fn is_of_outer_call(self) -> bool {
        matches!(self, Scope::User | Scope::Tenant | Scope::Endpoint)
    }

    /// Between whom a queue for this is fair.
    pub(crate) fn fair_key(self, principal: &Principal) -> FairKey {
        match self {
            Scope::User | Scope::Tenant => FairKey::of_user(principal),
            Scope::Endpoint | Scope::Tool | Scope::Server => FairKey::of_tenant(principal),
        }
    }

    /// The name of that, for whoever runs the gateway.
    pub(crate) fn name<'a>(self, call: &'a Call, target: Target<'a>) -> Cow<'a, str> {
        let principal = &call.context.principal;
        let user = || principal.subject.as_deref().unwrap_or("(nobody)");
        Cow::Borrowed(match self {
            Scope::User => user(),
            Scope::Tenant => principal.tenant.as_deref().unwrap_or_else(user),
            Scope::Endpoint => call.context.endpoint.as_deref().unwrap_or("default"),
            Scope::Tool if target.is_unlisted => "(unlisted)",
            Scope::Tool => target.tool.unwrap_or_default(),
            Scope::Server => target.server.unwrap_or_default(),
        })
    }
}
