//! Every message that comes in or goes out: counted, and in the log at debug level.

use tidegate_service::usage::NetworkTransport;
use tidegate_service::wire_trace;

/// A message came in.
#[inline]
pub(crate) fn received(over: NetworkTransport, message: &[u8]) {
    over.has_received(message.len());
    wire_trace::received(message);
}

/// A message goes out.
#[inline]
pub(crate) fn sent(over: NetworkTransport, message: &[u8]) {
    over.has_sent(message.len());
    wire_trace::sent(message);
}
