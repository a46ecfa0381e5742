//! `tenant_id`: an argument that some assistants must give. It never chooses a memory: whose memory it is, is decided by
//! who calls.

use tidegate_server::Principal;

use crate::DEFAULT_TENANT;
use crate::store::{Fault, Result};

/// Refuses the name of any tenant but the caller's own.
pub(crate) fn check(principal: &Principal, given: Option<&str>) -> Result<()> {
    let own = principal.tenant.as_deref().unwrap_or(DEFAULT_TENANT);
    match given {
        Some(given) if given != own => Err(Fault::input(
            "tenant_id",
            format!("access denied: it must be your own tenant, {own:?}; leave it out to mean that"),
        )),
        _ => Ok(()),
    }
}
