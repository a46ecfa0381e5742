//! [`Inbox`]: where a transport delivers what the server sends.

use tidegate_protocol::{Error, Id, Message, Request};

/// Takes what comes from the server. Nothing here waits: a transport's reader must always go on reading, so that
/// answers and cancellations get through.
pub(crate) trait Inbox: Send + Sync + 'static {
    /// A message came. `on` names the request on whose stream it came, where the transport has such streams.
    fn message(&self, message: Message, on: Option<&Id>);

    /// Something came that cannot be used: an answer too large or broken. `id` names the request it belongs to, where
    /// that could still be read.
    fn spoiled(&self, id: Option<&Id>, why: Error);

    /// What speaks for a question, which every connection was told, being for this one.
    fn claim(&self, _question: &Request) -> Claim {
        Claim::Nothing
    }

    /// A question that every connection was told, and that could be for several of them: the server is told so.
    fn unclear(&self, _question: &Request) {}

    /// For a while nobody listened: something may have been missed.
    fn missed(&self) {}

    /// Nothing more will come. Everything that waits fails with `why`. From the byte `unread` on nobody has read what was
    /// sent, or ever will, where the transport knows that.
    fn closed(&self, why: Error, unread: Option<u64>);
}

/// What speaks for a question being for a connection, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Claim {
    /// No call is in flight that may be asked anything.
    Nothing,
    /// One whose caller cannot be asked this.
    Unable,
    /// One whose caller can.
    Able,
    /// It names a call or a task of this connection.
    Certain,
}
