//! Loops of gateways: each says which gateways it leads to, so that none lists itself, however far round.

use tidegate_client::ServerInfo;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Error, Json, Object, Symbol};

/// Under which name a gateway says so, among its experimental capabilities: both eras have those.
pub(crate) const GATEWAYS: &str = "dev.tidegate/gateways";

/// The gateways that a server leads to, itself included. None if it is no gateway.
pub(crate) fn behind(facts: &ServerInfo) -> Vec<String> {
    let said = || Object::of(&facts.capabilities)?.object("experimental")?.object(GATEWAYS)?.json("ids");
    said().and_then(|ids| ids.to().ok()).unwrap_or_default()
}

/// What a gateway says about where it leads.
pub(crate) fn said(ids: &[String]) -> Json {
    let mut w = ObjectWriter::new();
    w.value("ids", ids);
    w.finish()
}

/// Refuses a server that leads back to this gateway.
pub(crate) fn check(own: &str, facts: &ServerInfo) -> Result<(), Error> {
    match behind(facts).iter().any(|id| id == own) {
        false => Ok(()),
        true => {
            let what = "it is this gateway itself, or leads back to it: they are connected in a loop";
            Err(Error::new(Symbol::LoopDetected, what))
        }
    }
}
