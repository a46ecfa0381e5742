//! [`Scope`]: for whom or what something is limited.

use std::borrow::Cow;

use tidegate_service::fair_queue::FairKey;
use tidegate_service::{Call, Principal};

use crate::Target;
use crate::keyed::{CounterKey, KeyMaker};

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

    /// Whom or what a call counts for; `None` if it has no such thing.
    pub(crate) fn subject(
        self,
        call: &Call,
        target: Target<'_>,
        limit: u64,
        keys: &KeyMaker,
    ) -> Option<CounterKey> {
        let Principal { issuer, subject, tenant } = &call.context.principal;
        let user = [issuer.as_deref(), subject.as_deref(), tenant.as_deref()];
        let subject = match self {
            Scope::User => keys.hash(limit, user),
            Scope::Tenant => match tenant {
                Some(tenant) => keys.hash(limit, [Some(&**tenant)]),
                None => keys.hash(limit, user),
            },
            Scope::Endpoint => keys.hash(limit, [call.context.endpoint.as_deref()]),
            Scope::Tool if target.is_unlisted => keys.hash(limit, [target.tool.and(target.server), None]),
            Scope::Tool => keys.hash(limit, [Some(target.tool?)]),
            Scope::Server => keys.hash(limit, [Some(target.server?)]),
        };
        Some(CounterKey { limit, subject })
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
