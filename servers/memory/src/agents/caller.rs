//! [`Caller`]: who asks, whose agents those are, and what is somebody else's.

use tidegate_server::Cx;

use super::check;
use crate::store::{Code, Fault, Memory, Result};
use crate::tenant;
use crate::{DEFAULT_TENANT, Recall};

/// What is said to those who ask for what is not theirs.
const DENIED: &str = "Access denied: can only access your own tenant's agents";

/// Who asks.
pub(crate) struct Caller {
    pub(crate) memory: Memory,
    /// The tenant, if one is known or was named.
    tenant: Option<String>,
    subject: Option<String>,
    /// Who they say they are, where nobody is known.
    said: Option<String>,
}

impl Caller {
    pub(crate) fn new(recall: &Recall, cx: &Cx) -> Caller {
        let principal = cx.principal();
        let said = cx.arguments().and_then(|arguments| Some(arguments.str("user_id")?.into_owned()));
        Caller {
            memory: crate::tools::memory(recall, cx),
            tenant: principal.tenant.as_deref().map(str::to_owned).or_else(|| tenant::chosen(cx)),
            subject: principal.subject.as_deref().map(str::to_owned),
            said: said.filter(|user| check::user("user_id", user).is_ok()),
        }
    }

    /// The tenant: that of the caller, or the caller.
    fn tenant(&self) -> &str {
        self.tenant.as_deref().or(self.subject.as_deref()).unwrap_or(DEFAULT_TENANT)
    }

    /// Who agents are made by and sessions are held with. Checks what the caller says about it: a user that is given must
    /// be the caller. Only where nobody is known may users name themselves.
    pub(crate) fn user(&self, user: Option<&str>) -> Result<String> {
        match (&self.subject, user) {
            (Some(subject), Some(user)) if user != subject => {
                Err(Fault::input("user_id", "must be your own"))
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
        self.subject.as_deref().or(self.said.as_deref()).map(in_address)
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

/// The name as it can stand in an address.
fn in_address(name: &str) -> String {
    let fits = |c: char| check::user("", c.encode_utf8(&mut [0; 4])).is_ok();
    name.chars().map(|c| if fits(c) { c } else { '-' }).take(200).collect()
}

/// Somebody else's agent.
pub(crate) fn denied() -> Fault {
    Fault::new(Code::InvalidInput, DENIED)
}
