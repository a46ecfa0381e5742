//! Writing JSON-RPC messages.
//!
//! Each function makes one message in one buffer. Payloads are taken as they are: nothing is parsed or checked here.

use crate::error::Error;
use crate::id::Id;
use crate::json::{Json, write_str};
use crate::result_id::Splices;
use crate::revision::Revision;

const HEAD: &[u8] = b"{\"jsonrpc\":\"2.0\"";
const HEAD_ID: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
const METHOD: &[u8] = b",\"method\":";
const PARAMS: &[u8] = b",\"params\":";
const RESULT: &[u8] = b",\"result\":";
const ERROR: &[u8] = b",\"error\":";

/// A request whose parameters are written by `params`, which takes about `room` bytes.
///
/// ```
/// use tidegate_protocol::{Id, write};
///
/// let message = write::request(&Id::from(1), "ping", 2, |out| out.extend_from_slice(b"{}"));
/// assert_eq!(message, br#"{"jsonrpc":"2.0","id":1,"method":"ping","params":{}}"#);
/// ```
pub fn request(id: &Id, method: &str, room: usize, params: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + id.as_json().len() + method.len() + room);
    out.extend_from_slice(HEAD_ID);
    out.extend_from_slice(id.as_json().as_bytes());
    out.extend_from_slice(METHOD);
    write_str(&mut out, method);
    out.extend_from_slice(PARAMS);
    params(&mut out);
    out.push(b'}');
    out
}

/// A notification, with parameters that are JSON, or without.
pub fn notification(method: &str, params: Option<&[u8]>) -> Vec<u8> {
    let mut out = Vec::with_capacity(64 + method.len() + params.map_or(0, <[u8]>::len));
    out.extend_from_slice(HEAD);
    out.extend_from_slice(METHOD);
    write_str(&mut out, method);
    if let Some(params) = params {
        out.extend_from_slice(PARAMS);
        out.extend_from_slice(params);
    }
    out.push(b'}');
    out
}

/// The response with a result.
pub fn result(id: &Id, result: &Json) -> Vec<u8> {
    let mut out = head_with_room(id, result.len() + 1);
    out.extend_from_slice(result.as_str().as_bytes());
    out.push(b'}');
    out
}

/// The same with a result that is changed on the way.
pub fn spliced_result(id: &Id, result: &Json, splices: &Splices) -> Vec<u8> {
    let mut out = head_with_room(id, result.len() + splices.room() + 1);
    splices.write(result, &mut out);
    out.push(b'}');
    out
}

/// A response up to its result; what is left is the result and a brace.
pub fn result_head(id: &Id) -> Vec<u8> {
    head_with_room(id, 0)
}

fn head_with_room(id: &Id, room: usize) -> Vec<u8> {
    let id = id.as_json().as_bytes();
    // Exactly as much as is needed: a buffer that is full is shared without another allocation.
    let mut out = Vec::with_capacity(HEAD_ID.len() + id.len() + RESULT.len() + room);
    out.extend_from_slice(HEAD_ID);
    out.extend_from_slice(id);
    out.extend_from_slice(RESULT);
    out
}

/// The response with an error. `revision` is that of the peer, as far as it is known.
///
/// ```
/// use tidegate_protocol::{Error, Revision, write};
///
/// let unreadable = write::error(None, &Error::internal(), Some(Revision::LATEST_MODERN));
/// assert_eq!(unreadable, br#"{"jsonrpc":"2.0","error":{"code":-32603,"message":"Internal error"}}"#);
/// ```
pub fn error(id: Option<&Id>, error: &Error, revision: Option<Revision>) -> Vec<u8> {
    let mut out = Vec::with_capacity(160);
    match id {
        Some(id) => {
            out.extend_from_slice(HEAD_ID);
            out.extend_from_slice(id.as_json().as_bytes());
        }
        None if Error::omits_unknown_id(revision) => out.extend_from_slice(HEAD),
        None => out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":null"),
    }
    out.extend_from_slice(ERROR);
    error.write(&mut out, revision.unwrap_or(Revision::LATEST_MODERN));
    out.push(b'}');
    out
}
