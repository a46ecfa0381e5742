//! Writing JSON-RPC messages.

use tidegate_protocol::json::write_str;
use tidegate_protocol::{Error, Id, Json, Revision};
use tidegate_service::Reply;

/// `{"jsonrpc":"2.0","id":…,"result":…}`.
pub(crate) fn result(id: &Id, result: &Json) -> Vec<u8> {
    let mut out = head_with_room(id, result.len() + 1);
    out.extend_from_slice(result.as_str().as_bytes());
    out.push(b'}');
    out
}

/// A response up to its result; what is left is the result and a brace.
pub(crate) fn result_head(id: &Id) -> Vec<u8> {
    head_with_room(id, 0)
}

fn head_with_room(id: &Id, room: usize) -> Vec<u8> {
    const BEFORE_ID: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    const BEFORE_RESULT: &[u8] = b",\"result\":";
    let id = id.as_json().as_bytes();
    // Exactly as much as is needed: a buffer that is full is shared without another allocation.
    let mut out = Vec::with_capacity(BEFORE_ID.len() + id.len() + BEFORE_RESULT.len() + room);
    out.extend_from_slice(BEFORE_ID);
    out.extend_from_slice(id);
    out.extend_from_slice(BEFORE_RESULT);
    out
}

/// An error response. `revision` is that of the client, as far as it is known.
pub(crate) fn error(id: Option<&Id>, error: &Error, revision: Option<Revision>) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\"");
    match id {
        Some(id) => {
            out.extend_from_slice(b",\"id\":");
            out.extend_from_slice(id.as_json().as_bytes());
        }
        None if Error::omits_unknown_id(revision) => {}
        None => out.extend_from_slice(b",\"id\":null"),
    }
    out.extend_from_slice(b",\"error\":");
    error.write(&mut out, revision.unwrap_or(Revision::LATEST_MODERN));
    out.push(b'}');
    out
}

/// A request from the server to a legacy client.
pub(crate) fn request(id: u64, method: &str, params: &Json) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + params.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.to_string().as_bytes());
    out.push(b',');
    end_with(out, method, params)
}

/// A notification with parameters.
pub(crate) fn notification(method: &str, params: &Json) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + params.len());
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",");
    end_with(out, method, params)
}

fn end_with(mut out: Vec<u8>, method: &str, params: &Json) -> Vec<u8> {
    out.extend_from_slice(b"\"method\":");
    write_str(&mut out, method);
    out.extend_from_slice(b",\"params\":");
    out.extend_from_slice(params.as_str().as_bytes());
    out.push(b'}');
    out
}

/// The response to a request of a modern revision. Subscriptions are streams and not written here.
pub(crate) fn modern_reply(id: &Id, reply: &Reply, revision: Revision) -> Vec<u8> {
    match reply {
        Reply::Complete(json) | Reply::Task(json) => result(id, json),
        Reply::InputRequired(questions) => result(id, &questions.to_json()),
        Reply::Error(e) => error(Some(id), e, Some(revision)),
        Reply::Subscription(_) => error(Some(id), &Error::internal(), Some(revision)),
    }
}

/// The responses to a batch as one array.
pub(crate) fn batch(responses: Vec<impl AsRef<[u8]>>) -> Vec<u8> {
    let mut out = Vec::with_capacity(responses.iter().map(|r| r.as_ref().len() + 1).sum::<usize>() + 1);
    out.push(b'[');
    for (i, response) in responses.into_iter().enumerate() {
        if i > 0 {
            out.push(b',');
        }
        out.extend_from_slice(response.as_ref());
    }
    out.push(b']');
    out
}
