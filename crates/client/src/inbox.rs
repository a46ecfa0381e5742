//! [`Inbox`]: where a transport delivers what the server sends.

use tidegate_protocol::{Error, Id, Message};

/// Takes what comes from the server. Nothing here waits: a transport's reader must always go on reading, so that
/// answers and cancellations get through.
pub(crate) trait Inbox: Send + Sync + 'static {
    /// A message came. `on` names the request on whose stream it came, where the transport has such streams.
    fn message(&self, message: Message, on: Option<&Id>);

    /// Something came that cannot be used: an answer too large or broken. `id` names the request it belongs to, where
    /// that could still be read.
    fn spoiled(&self, id: Option<&Id>, why: Error);

    /// For a while nobody listened: something may have been missed.
    fn missed(&self) {}

    /// Nothing more will come. Everything that waits fails with `why`. From the byte `unread` on nobody has read what was
    /// sent, or ever will, where the transport knows that.
    fn closed(&self, why: Error, unread: Option<u64>);
}
