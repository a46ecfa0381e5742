//! Writing JSON-RPC messages: what servers send beyond [`tidegate_protocol::write`].

use tidegate_protocol::{Error, Id, Json, Revision, write};
use tidegate_service::Reply;

use crate::call_id::CallId;

pub(crate) use tidegate_protocol::write::{error, result, result_head};

/// A request from the server to a legacy client.
pub(crate) fn request(id: u64, method: &str, params: &Json) -> Vec<u8> {
    let id = Id::from(i64::try_from(id).unwrap_or(i64::MAX));
    write::request(&id, method, params.len(), |out| out.extend_from_slice(params.as_str().as_bytes()))
}

/// A notification with parameters.
pub(crate) fn notification(method: &str, params: &Json) -> Vec<u8> {
    write::notification(method, Some(params.as_str().as_bytes()))
}

/// The response to a request of a modern revision, which was this call. Subscriptions are streams and not written here.
pub(crate) fn modern_reply(id: &Id, call: Option<CallId>, reply: &Reply, revision: Revision) -> Vec<u8> {
    match reply {
        Reply::Complete(json) | Reply::Task(json) => CallId::result(call, id, json),
        Reply::InputRequired(questions) => CallId::result(call, id, &questions.to_json()),
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
