//! [`Caller`]: who asks, whose agents those are, and what is somebody else's.

use tidegate_server::Cx;

use super::check;
use crate::store::{Code, Fault, Memory, Result};
use crate::{DEFAULT_TENANT, Recall};

/// What is said to those who ask for what is not theirs.
const DENIED: &str = "Access denied: can only access your own tenant's agents";

/// Who asks.
pub(crate) struct Caller {
    pub(crate) memory: Memory,
    tenant: Option<String>,
    subject: Option<String>,
}

impl Caller {
    pub(crate) fn new(recall: &Recall, cx: &Cx) -> Caller {
        let principal = cx.principal();
        Caller {
            memory: crate::tools::memory(recall, cx),
            tenant: principal.tenant.as_deref().map(str::to_owned),
            subject: principal.subject.as_deref().map(str::to_owned),
        }
    }

    /// The tenant: that of the caller, or the caller.
    fn tenant(&self) -> &str {
        self.tenant.as_deref().or(self.subject.as_deref()).unwrap_or(DEFAULT_TENANT)
    }

    /// Who agents are made by and sessions are held with. Checks what the caller says about it: a tenant and a user
    /// that are given must be the caller's own. Only where nobody is known may users name themselves.
    pub(crate) fn user(&self, tenant: Option<&str>, user: Option<&str>) -> Result<String> {
        if tenant.is_some_and(|tenant| tenant != self.tenant()) {
            return Err(Fault::input("tenant_id", DENIED));
        }
        match (&self.subject, user) {
            (Some(subject), Some(user)) if user != subject => {
                Err(Fault::input("user_id", "must be your own"))
            }
            (None, Some(user)) => check::user("user_id", user).map(|()| user.to_owned()),
            _ => Ok(in_address(self.subject.as_deref().unwrap_or(self.tenant()))),
        }
    }

    /// Whether this is what the caller, or the caller's tenant, is called.
    pub(crate) fn is(&self, name: &str) -> bool {
        let own = [self.tenant(), self.subject.as_deref().unwrap_or(DEFAULT_TENANT)];
        own.into_iter().any(|known| known == name || in_address(known) == name)
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
