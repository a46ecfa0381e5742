//! Whether a server may do in the name of its caller what it has itself: an agent of the memory that uses the memory's own tools does
//! not come through the gateway for that, and still reaches no more than whoever asked it.

use bytestring::ByteString;
use tidegate_config::PinMode;
use tidegate_protocol::{Error, Json, Method};
use tidegate_service::{Call, unknown_tool};

use crate::router::{Router, refused};
use crate::view::{Offer, OfferKind, Permit};

/// Whether the caller of `call`, a call of a tool or for a resource by the names of `server`, could make it through the gateway.
pub(crate) fn check(router: &Router, server: &str, call: &Call) -> Result<(), Error> {
    let state = router.state.load_full();
    let Some(at) = state.mounts.iter().position(|mount| mount.name() == server) else {
        return Err(Error::method_not_found(call.method.as_str()));
    };
    let mount = &state.mounts[at];
    match call.method {
        Method::ToolsCall => {
            let own = call.params.str("name").unwrap_or_default();
            let unknown = || Err(unknown_tool(&own, std::iter::empty()));
            if !mount.settings.offers(&own) {
                return unknown();
            }
            let listed = state.snapshot.tools.iter().find(|(_, row)| row.server == at && row.own == *own);
            let name: ByteString = match listed {
                Some((_, row)) if row.withheld.is_some() => {
                    return row.withheld.clone().map_or(Ok(()), Err);
                }
                Some((name, _)) => name.clone(),
                // What nobody lists is called behind the prefix, unless nothing may be called that was not approved.
                None if state.tools.pin == PinMode::Off => format!("{}{own}", mount.settings.prefix).into(),
                None => return unknown(),
            };
            let offer = Offer { kind: OfferKind::Tool, name: &name, server };
            let arguments = || call.params.json("arguments");
            // The call at hand is another one, and what is said to that stays in its record.
            match router.views.judge(&state, &call.context, &offer, None, arguments).0 {
                Permit::Granted => {}
                Permit::Refused => return Err(refused(&offer)),
                Permit::Unknown => return unknown(),
            }
            let mut call = call.clone();
            call.params = call.params.with("name", &Json::string(&name));
            router.checks.iter().try_for_each(|check| check(&call))
        }
        Method::ResourcesRead => {
            let own = call.params.text("uri").unwrap_or_default();
            let uri = state.snapshot.uris.offered(at, &own).unwrap_or(own);
            match router.views.may_read(&state, &call.context, &uri, mount) {
                true => router.checks.iter().try_for_each(|check| check(call)),
                false => Err(Error::resource_not_found(&uri)),
            }
        }
        _ => Err(Error::method_not_found(call.method.as_str())),
    }
}
