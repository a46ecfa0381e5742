//! A modern request becomes a call: its `_meta` says all there is to know about it.

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{
    Error, Id, Json, Meta, Method, Notification, Object, Profile, Request, Revision, meta,
};
use tidegate_service::trace::TraceContext;
use tidegate_service::{
    Call, Context, ContextParts, CorrelationId, Door, Extensions, Identity, Notice, Outbox, Principal, Reply,
    Subscription,
};
use tokio_util::sync::CancellationToken;

use crate::edge_settings::{EdgeSettings, Eras};
use crate::wire;

/// How large the parameters of a subscription may be, which are kept as long as it is open.
const MAX_LISTEN: usize = 256 * 1024;

/// Reads `_meta`, or says what is wrong with it. The version is checked apart, because on HTTP a disagreement
/// between header and body comes first (2026-07-28 streamable-http, Server Validation).
pub(crate) fn read_meta(request: &Request) -> Result<Meta, Error> {
    Meta::read(request.params.meta())
}

/// The call that a modern request is.
pub(crate) fn call(
    request: Request,
    meta: Meta,
    edge: &EdgeSettings,
    caller: Identity,
) -> Result<Call, Error> {
    let revision = meta.revision(edge.eras.revisions())?;
    if request.method == Method::Listen && request.params.as_str().len() > MAX_LISTEN {
        let what = format_args!("the parameters of a subscription may have at most {MAX_LISTEN} bytes");
        return Err(Error::invalid_params(what));
    }
    let trace = meta.traceparent.as_deref().and_then(TraceContext::parse);
    let mut context = Context::from(ContextParts {
        correlation: trace.map_or_else(CorrelationId::new, CorrelationId::from),
        revision,
        client_info: meta.client_info,
        capabilities: meta.capabilities,
        log_level: meta.log_level,
        progress_token: meta.progress_token,
        principal: Principal::default(),
        claims: None,
        endpoint: edge.endpoint.clone(),
        caller: None,
        deadline: None,
        cancel: CancellationToken::new(),
        outbox: None,
        hops: meta.hops,
        errors: Profile::Strict,
        param_headers: None,
        is_admitted: false,
        trace,
        origin: None,
        extensions: Extensions::default(),
    });
    context.identify(caller);
    Ok(Call { method: request.method, params: request.params, context })
}

/// The call that a modern client's notification is. It need not say on which terms it is sent, and then the newest ones hold.
pub(crate) fn told(notification: Notification, edge: &EdgeSettings, identity: Identity) -> Call {
    let meta = notification.params.meta();
    let mut context = traced(meta, Revision::LATEST_MODERN);
    if let Ok(meta) = Meta::read(meta)
        && let Ok(revision) = meta.revision(edge.eras.revisions())
    {
        context.revision = revision;
        context.client_info = meta.client_info;
        context.capabilities = meta.capabilities;
        context.hops = meta.hops;
    }
    context.endpoint = edge.endpoint.clone();
    context.identify(identity);
    Call { method: notification.method, params: notification.params, context }
}

/// Makes the call. What `server/discover` promises through this edge is what the edge speaks; the service behind it
/// may speak more.
pub(crate) fn answer<D: Door>(
    door: &D,
    call: Call,
    eras: Eras,
) -> impl Future<Output = Reply> + Send + use<D> {
    let narrowed = eras != Eras::Both && call.method == Method::Discover;
    let reply = door.answer(call);
    async move {
        match reply.await {
            Ok(Reply::Complete(result)) if narrowed => Reply::Complete(only_spoken(result, eras)),
            Ok(reply) => reply,
        }
    }
}

/// A discovery result without the versions that this edge does not speak.
fn only_spoken(discovered: Json, eras: Eras) -> Json {
    let Some(object) = Object::of(&discovered) else { return discovered };
    let Some(Ok(all)) = object.json("supportedVersions").map(|all| all.to::<Vec<String>>()) else {
        return discovered;
    };
    let spoken = all.iter().filter(|name| name.parse().is_ok_and(|r| eras.revisions().contains(&r)));
    match Json::of(&spoken.collect::<Vec<_>>()) {
        Ok(spoken) => object.with("supportedVersions", &spoken),
        Err(_) => discovered,
    }
}

/// Gives a call a place for its notifications, if it can have any: progress needs a token, logs a level, and neither
/// belongs on the stream of a subscription (2026-07-28 streamable-http, Receiving Messages).
///
/// Behind a relay it can always have some.
pub(crate) fn open_outbox(call: &mut Call, relays: bool) -> Option<Outbox> {
    let silent = !relays && call.context.progress_token.is_none() && call.context.log_level.is_none();
    if silent || call.method == Method::Listen {
        return None;
    }
    let outbox = Outbox::default();
    call.context.outbox = Some(outbox.clone());
    Some(outbox)
}

/// The correlation id of a call with this `_meta`: the caller's trace, or a new one.
pub(crate) fn correlation(meta: Option<&Object>) -> CorrelationId {
    trace_of(meta).map_or_else(CorrelationId::new, CorrelationId::from)
}

fn trace_of(meta: Option<&Object>) -> Option<TraceContext> {
    meta?.str(meta::TRACEPARENT).and_then(|text| TraceContext::parse(&text))
}

/// The context of a call with this `_meta`, in the caller's trace if it names one.
pub(crate) fn traced(meta: Option<&Object>, revision: Revision) -> Context {
    let trace = trace_of(meta);
    let mut context = Context::new(trace.map_or_else(CorrelationId::new, CorrelationId::from), revision);
    context.trace = trace;
    context
}

/// The first message of a subscription stream (2026-07-28 basic/patterns/subscriptions).
pub(crate) fn acknowledgement(id: &Id, subscription: &Subscription) -> Vec<u8> {
    let mut w = ObjectWriter::with_capacity(128);
    w.json("_meta", &subscription_tag(id)).json("notifications", &subscription.acknowledged);
    wire::notification("notifications/subscriptions/acknowledged", &w.finish())
}

/// The last message of a subscription that the server ends.
pub(crate) fn subscription_end(id: &Id) -> Vec<u8> {
    let mut w = ObjectWriter::with_capacity(128);
    w.str("resultType", "complete").json("_meta", &subscription_tag(id));
    wire::result(id, &w.finish())
}

/// A notification on a subscription.
pub(crate) fn subscription_notice(id: &Id, notice: &Notice) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    notice.write(&mut out, Some(&id.to_json()));
    out
}

fn subscription_tag(id: &Id) -> Json {
    let mut w = ObjectWriter::new();
    w.json(meta::SUBSCRIPTION_ID, &id.to_json());
    w.finish()
}
