//! [`Caller`]: who asks, whose agents those are, and what is somebody else's.

use tidegate_server::Cx;

use crate::agents::check;
use crate::agents::owner::in_address;
use crate::error::{Code, Fault, Result};
use crate::server::state::ServerState;
use crate::server::tenant;
use crate::store::{DEFAULT_TENANT, Memory};

/// What is said to those who ask for what is not theirs.
const DENIED: &str = "Access denied: can only access your own tenant's agents";

/// Who asks.
pub(crate) struct Caller {
    pub(crate) memory: Memory,
    /// The tenant, if it is known or was named.
    tenant: Option<String>,
    subject: Option<String>,
    /// Whom that is, in addresses and in the store: a subject of one issuer and of no other.
    key: Option<String>,
    /// Who they say they are, if they are not authenticated.
    said: Option<String>,
    is_authenticated: bool,
    /// The tenant that they named, if they are not authenticated.
    pub(crate) chosen: Option<String>,
    /// Whether they named a tenant, which may be the default one.
    names_tenant: bool,
    /// Whether an agent calls, and not somebody directly.
    is_agent: bool,
}

impl Caller {
    pub(crate) fn new(state: &ServerState, cx: &Cx) -> Caller {
        let principal = cx.principal();
        let (said, chosen) = (tenant::user(cx), tenant::chosen(cx));
        Caller {
            memory: state.memory(cx),
            tenant: principal.tenant.as_deref().map(str::to_owned).or_else(|| chosen.clone()),
            subject: principal.subject.as_deref().map(str::to_owned),
            key: tenant::user_key(principal),
            said: said.filter(|user| check::user("user_id", user).is_ok()),
            is_authenticated: state.settings.is_authenticated
                || principal.subject.is_some()
                || principal.tenant.is_some(),
            chosen,
            names_tenant: tenant::is_named(cx),
            is_agent: crate::server::runs::depth(cx) > 0,
        }
    }

    /// Who reads a resource, if they may read it as whom they say they are. Tools check that by their arguments.
    pub(crate) fn reading(state: &ServerState, cx: &Cx) -> Result<Caller> {
        tenant::admit(cx)?;
        let caller = Caller::new(state, cx);
        caller.user(tenant::user(cx).as_deref())?;
        Ok(caller)
    }

    /// Whether nobody is authenticated, so that every tenant could be named.
    pub(crate) fn is_anybody(&self) -> bool {
        !self.is_authenticated
    }

    /// Whether every tenant could be named and none is.
    pub(crate) fn names_no_tenant(&self) -> bool {
        self.is_anybody() && !self.names_tenant && !self.is_agent
    }

    /// The tenant: that of the caller, or the caller.
    fn tenant(&self) -> &str {
        self.tenant.as_deref().or(self.subject.as_deref()).unwrap_or(DEFAULT_TENANT)
    }

    /// Who agents are made by and sessions are held with. A user that is given must be the caller; only a caller who is not
    /// authenticated may be anybody.
    pub(crate) fn user(&self, user: Option<&str>) -> Result<String> {
        match (&self.subject, user) {
            (Some(_), Some(user)) if !self.is_alias(user) && self.key.as_deref() != Some(user) => {
                Err(Fault::foreign_user())
            }
            (None, Some(user)) => check::user("user_id", user).map(|()| user.to_owned()),
            _ => Ok(self.owner()),
        }
    }

    /// Who the caller is, as it stands in addresses.
    pub(crate) fn owner(&self) -> String {
        self.named().unwrap_or_else(|| in_address(self.tenant()))
    }

    /// The same, if it is known or was said.
    pub(crate) fn named(&self) -> Option<String> {
        self.key.clone().or_else(|| self.said.as_deref().map(in_address))
    }

    /// Whether this is what the caller is called by their issuer, under which another issuer may know somebody else.
    pub(crate) fn is_alias(&self, name: &str) -> bool {
        self.subject.as_deref().is_some_and(|subject| name == subject || name == in_address(subject))
    }

    /// Whether this is what the caller's tenant is called, and not the caller.
    pub(crate) fn is_tenant(&self, name: &str) -> bool {
        let tenant = self.tenant();
        (name == tenant || name == in_address(tenant)) && self.named().as_deref() != Some(name)
    }

    /// Whether this is what the caller, or the caller's tenant, is called.
    pub(crate) fn is(&self, name: &str) -> bool {
        let own = [self.tenant(), self.subject.as_deref().unwrap_or(DEFAULT_TENANT)];
        own.into_iter().any(|known| known == name || in_address(known) == name)
            || self.named().is_some_and(|known| known == name)
    }
}

/// Somebody else's agent.
pub(crate) fn denied() -> Fault {
    Fault::new(Code::InvalidInput, DENIED)
}
