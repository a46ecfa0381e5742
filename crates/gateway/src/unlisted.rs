//! Tools that nobody lists. Some servers have tools that whoever knows them may call; they say so, and are asked.

use std::sync::Arc;
use std::time::Instant;

use bytestring::ByteString;
use tidegate_config::PinMode;
use tidegate_limits::Pass;
use tidegate_protocol::{Error, Json, Limits, Object, Params, Symbol, meta};
use tidegate_service::{Call, Current, Reply, UNLISTED};

use crate::kind::Kind;
use crate::merged_list::MergedList;
use crate::router::{Counted, Route, Router, refused};
use crate::view::{Offer, OfferKind, Permit};

/// Calls a tool that nobody lists, if one of the servers that have such tools knows it.
pub(crate) async fn call(router: &Arc<Router>, call: &mut Call) -> Option<Result<Reply, Error>> {
    let name = call.params.text("name")?;
    for route in routes(router, &name) {
        let offer = Offer { kind: OfferKind::Tool, name: &name, server: route.mount.name() };
        let arguments = || call.params.json("arguments");
        match router.views.permit(&router.state.load(), &call.context, &offer, None, arguments) {
            Permit::Granted => {}
            Permit::Refused => return Some(Err(refused(&offer))),
            Permit::Unknown => continue,
        }
        let reply = router.send(route, "name", call.clone()).await;
        // However many servers are asked, it is one call.
        call.context.extensions.insert(Arc::new(Counted));
        match reply {
            Ok(Reply::Error(error)) | Err(error) if error.symbol() == Symbol::ToolNotFound => {}
            Ok(Reply::Complete(result)) if says_unknown(&result) => {}
            reply => return Some(reply),
        }
    }
    Current::sent_nowhere();
    None
}

/// The definition of a tool that nobody lists, as a list of one; an empty list if nobody has it.
pub(crate) async fn definition(router: &Arc<Router>, call: &Call) -> Result<Reply, Error> {
    let name = asked_for(call).unwrap_or_default();
    let pass = router.enter_here(call).await?;
    router.all_settled().await;
    router.look_again(Kind::Tools).await;
    let mut found = None;
    let state = router.state.load_full();
    let is_seen =
        |route: &Route| router.views.sees(&state, &call.context, OfferKind::Tool, &name, route.mount.name());
    for route in routes(router, &name).into_iter().filter(is_seen) {
        let mut call = call.clone();
        call.context.extensions.insert(Arc::new(Counted));
        // Its parts wait for nothing that it has.
        if let Some(held) = pass.as_ref().and_then(Pass::held) {
            call.context.extensions.insert(held);
        }
        if let (Some(meta), Some(own)) = (call.params.meta(), &route.own) {
            let params = call.params.object().with("_meta", &meta.with(UNLISTED, &Json::string(own)));
            let limits = Limits { max_depth: 127, max_bytes: usize::MAX };
            call.params = Params::parse(&params, &limits).map_err(Error::invalid_params)?;
        }
        if let Ok(Reply::Complete(list)) = router.send(Route { own: None, ..route }, "", call).await {
            let tools = Object::of(&list).and_then(|list| list.json("tools")?.elements()).unwrap_or_default();
            if let [tool] = &tools[..]
                && let Some(tool) = Object::of(tool)
            {
                found = Some(tool.with("name", &Json::string(&name)));
                break;
            }
        }
    }
    let list = MergedList::new(Kind::Tools, found.iter(), usize::MAX).for_one_caller();
    Ok(Reply::Complete(list.page(0, call.context.revision, Instant::now(), &router.info, |_| String::new())))
}

/// The servers that may have a tool that nobody lists, the likeliest first, with its name there. Whether the caller may have it
/// is another question.
fn routes(router: &Router, name: &str) -> Vec<Route> {
    let state = router.state.load_full();
    // What nobody has seen cannot be pinned.
    if state.tools.pin != PinMode::Off {
        return Vec::new();
    }
    // What is listed is not looked for elsewhere because somebody may not have it: nobody else is to hear of the call.
    if state.snapshot.tools.get(name).is_some() {
        return Vec::new();
    }
    let mut routes: Vec<(usize, Route)> = state
        .mounts
        .iter()
        .enumerate()
        .filter(|(_, mount)| mount.has_unlisted_tools())
        .filter_map(|(at, mount)| {
            let own = name.strip_prefix(mount.settings.prefix.as_str())?;
            // What is listed has the name that it is listed under, which is the one that rules are about, and no other.
            if state.snapshot.tools.iter().any(|(_, row)| row.server == at && row.own == *own) {
                return None;
            }
            let route = Route { mount: mount.clone(), own: Some(own.into()) };
            mount.settings.offers(own).then_some((mount.settings.prefix.len(), route))
        })
        .collect();
    // The longest prefix says most.
    routes.sort_by_key(|(prefix, _)| std::cmp::Reverse(*prefix));
    routes.into_iter().map(|(_, route)| route).collect()
}

/// Whether a result says that there is no such tool, as servers with the numbers of the GBIF server do.
fn says_unknown(result: &Json) -> bool {
    let symbol = || Object::of(result)?.object("_meta")?.object(meta::ERROR)?.text("symbol");
    memchr::memmem::find(result.as_str().as_bytes(), Symbol::ToolNotFound.as_str().as_bytes()).is_some()
        && symbol().is_some_and(|symbol| symbol == Symbol::ToolNotFound.as_str())
}

/// The tool whose definition is asked for by its name.
pub(crate) fn asked_for(call: &Call) -> Option<ByteString> {
    call.params.meta()?.text(UNLISTED)
}
