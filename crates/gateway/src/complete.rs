//! `completion/complete`: arguments of prompts and of resource templates.

use std::sync::Arc;

use tidegate_protocol::{Error, Json};
use tidegate_service::{Call, Reply};

use crate::kind::Kind;
use crate::router::{Route, Router};
use crate::view::{Offer, OfferKind};

/// Completes an argument of a prompt or of a resource template.
pub(crate) async fn answer(router: &Arc<Router>, mut call: Call) -> Result<Reply, Error> {
    let wrong = || Error::invalid_params("\"ref\" must name a prompt or a resource template");
    let reference = call.params.object().object("ref").ok_or_else(wrong)?;
    let (route, member) = match reference.str("type").as_deref() {
        Some("ref/prompt") => {
            let route = router.known_prompt(&reference, &call.context)?;
            (route.ok_or_else(|| router.unknown(Kind::Prompts, &reference, &call.context))?, "name")
        }
        Some("ref/resource") => {
            let uri = reference.text("uri").ok_or_else(wrong)?;
            let state = router.state.load_full();
            let template = state.snapshot.uris.find_template(&uri).map(|(server, own)| Route {
                mount: state.mounts[server].clone(),
                own: (own != uri).then_some(own),
            });
            let template = template.filter(|route| {
                let server = route.mount.name();
                let offer = Offer { kind: OfferKind::ResourceTemplate, name: &uri, server };
                router.views.admits(&state, &call.context, &offer)
            });
            let route = template.or_else(|| router.whose(&uri, &call));
            (route.ok_or_else(|| router.no_resource(&uri, &call.context))?, "uri")
        }
        _ => return Err(wrong()),
    };
    if let Some(own) = &route.own {
        let reference = reference.with(member, &Json::string(own));
        call.params = call.params.with("ref", &reference);
    }
    router.send(Route { own: None, ..route }, "", call).await
}
