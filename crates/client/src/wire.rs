//! What this client puts into messages beyond JSON-RPC itself: parameters that keep their bytes, and members of `_meta`.

use std::io::Write;

use tidegate_protocol::{Error, Id, Json, Object, Params, Revision, meta, write};
use tidegate_service::Context;
use tidegate_service::trace::{self, TraceContext};

/// `notifications/cancelled` for a request that is no longer wanted.
pub(crate) fn cancelled(id: &Id, why: &str) -> Vec<u8> {
    let mut params = tidegate_protocol::json::ObjectWriter::new();
    params.json("requestId", &id.to_json()).str("reason", why);
    write::notification("notifications/cancelled", Some(params.finish().as_str().as_bytes()))
}

/// The answer to a question of a legacy server.
pub(crate) fn answer(id: &Id, answer: &Result<Json, Error>, revision: Revision) -> Vec<u8> {
    match answer {
        Ok(result) => write::result(id, result),
        Err(error) => write::error(Some(id), error, Some(revision)),
    }
}

/// A notification whose parameters are written already; there are none if they are empty.
pub(crate) fn notification(method: &str, params: &[u8]) -> Vec<u8> {
    write::notification(method, (params != b"{}").then_some(params))
}

/// Writes parameters as they are but for `_meta` and the members in `without`; `meta` writes members of `_meta`
/// (each after [`comma`]) in front of those that stay. `drops` says which of the caller's `_meta` keys do not. Where
/// there was a `_meta`, there it stays.
pub(crate) fn params(
    out: &mut Vec<u8>,
    params: &Params,
    without: &[&str],
    drops: impl Fn(&str) -> bool,
    meta: impl FnOnce(&mut Vec<u8>),
) {
    let mut meta = Some(meta);
    let mut write_meta = |out: &mut Vec<u8>| {
        let Some(meta) = meta.take() else { return };
        let before = out.len();
        comma(out);
        out.extend_from_slice(b"\"_meta\":{");
        let empty = out.len();
        meta(out);
        if let Some(own) = params.meta() {
            members(out, own, &drops);
        }
        if out.len() == empty && !params.meta().is_some_and(Object::is_empty) {
            out.truncate(before);
        } else {
            out.push(b'}');
        }
    };
    out.push(b'{');
    for (at, member) in params.object().members().enumerate() {
        if member.name == "_meta" {
            write_meta(out);
        } else if !without.contains(&&*member.name) {
            comma(out);
            out.extend_from_slice(params.object().raw_member(at).as_bytes());
        }
    }
    write_meta(out);
    out.push(b'}');
}

fn members(out: &mut Vec<u8>, object: &Object, skip: impl Fn(&str) -> bool) {
    for (at, member) in object.members().enumerate() {
        if !skip(&member.name) {
            comma(out);
            out.extend_from_slice(object.raw_member(at).as_bytes());
        }
    }
}

/// The name of a member, which must have nothing to escape.
pub(crate) fn plain_name(out: &mut Vec<u8>, name: &str) {
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// A comma, unless the object has just begun.
pub(crate) fn comma(out: &mut Vec<u8>) {
    if out.last() != Some(&b'{') {
        out.push(b',');
    }
}

/// Through how many gateways a call has come, if it has come through any: a member of `_meta`.
pub(crate) fn hops(out: &mut Vec<u8>, hops: u8) {
    if hops > 0 {
        comma(out);
        plain_name(out, meta::HOPS);
        let _ = write!(out, "{hops}");
    }
}

/// The span that a request belongs to, for the server to go on from. `None` if it is not recorded here: then what the caller says stays as it
/// is.
pub(crate) fn span_of(context: &Context) -> Option<TraceContext> {
    context.trace.filter(|trace| trace.is_sampled && trace::is_on())
}

/// The same as a member of `_meta`, in place of what the caller says.
pub(crate) fn traceparent(out: &mut Vec<u8>, span: Option<TraceContext>) {
    if let Some(span) = span {
        comma(out);
        out.extend_from_slice(b"\"traceparent\":\"");
        out.extend_from_slice(span.traceparent().as_str().as_bytes());
        out.push(b'"');
    }
}

/// Which members of a caller's `_meta` are not passed on with a request that has this span.
pub(crate) fn is_replaced(span: Option<TraceContext>) -> impl Fn(&str) -> bool {
    move |key| is_request_meta(key) || (span.is_some() && key == meta::TRACEPARENT)
}

/// The client behind a call in a session that is used for several: a member of `_meta`.
pub(crate) fn caller(out: &mut Vec<u8>, context: &Context) {
    comma(out);
    plain_name(out, meta::CALLER);
    out.push(b'{');
    if let Some(info) = &context.client_info {
        plain_name(out, "clientInfo");
        out.extend_from_slice(info.as_str().as_bytes());
        out.push(b',');
    }
    plain_name(out, "clientCapabilities");
    out.extend_from_slice(context.capabilities.as_json().as_str().as_bytes());
    out.push(b'}');
}

/// The members of `_meta` that say on which terms a modern request is made. They are the client's own, not what a
/// caller of another revision sent along.
pub(crate) fn is_request_meta(key: &str) -> bool {
    matches!(
        key,
        meta::PROTOCOL_VERSION
            | meta::CLIENT_INFO
            | meta::CLIENT_CAPABILITIES
            | meta::LOG_LEVEL
            | meta::PROGRESS_TOKEN
            | meta::HOPS
            | meta::CALLER
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_protocol::Limits;

    fn written(text: &'static str, without: &[&str], own: &str) -> String {
        let given = Params::parse(&Json::trusted(text), &Limits::default()).unwrap();
        let mut out = Vec::new();
        params(&mut out, &given, without, is_request_meta, |out| {
            if !own.is_empty() {
                comma(out);
                out.extend_from_slice(own.as_bytes());
            }
        });
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn parameters_keep_their_bytes() {
        let text = r#"{"name":"x","_meta":{"progressToken":1,"vendor/k": 1.0},"arguments":{"a" : 1e2}}"#;
        assert_eq!(
            written(text, &[], r#""progressToken":"t""#),
            r#"{"name":"x","_meta":{"progressToken":"t","vendor/k": 1.0},"arguments":{"a" : 1e2}}"#
        );
        assert_eq!(written(r#"{"a":1,"b":2,"_meta":{"progressToken":1}}"#, &["a"], ""), r#"{"b":2}"#);
        assert_eq!(written("{}", &[], ""), "{}");
        assert_eq!(written("{}", &[], r#""k":1"#), r#"{"_meta":{"k":1}}"#);
    }
}
