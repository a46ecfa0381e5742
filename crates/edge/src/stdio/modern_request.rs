//! A modern request over stdio that takes a while: its notifications, its answer, and the end of it.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use tidegate_protocol::{Id, Revision};
use tidegate_service::{Notice, Outbox, Reply, Subscription};
use tokio_util::sync::CancellationToken;

use super::output::Output;
use crate::call_id::CallId;
use crate::in_flight::{InFlight, Turn};
use crate::{modern, wire};

pub(super) type ReplyFuture = Pin<Box<dyn Future<Output = Reply> + Send>>;

/// A modern request that is not answered at once.
pub(super) struct Modern {
    pub(super) running: Running,
    /// What the answer calls it.
    pub(super) call: Option<CallId>,
    /// What the caller speaks.
    pub(super) revision: Revision,
    pub(super) cancel: CancellationToken,
    pub(super) outbox: Option<Outbox>,
    pub(super) reply: ReplyFuture,
    pub(super) out: Output,
    /// Fires when the connection ends.
    pub(super) over: CancellationToken,
}

impl Modern {
    pub(super) async fn run(mut self) {
        // A cancelled request gets no response (2026-07-28 basic/patterns/cancellation).
        let cancel = self.cancel.clone();
        match cancel.run_until_cancelled(self.answer()).await {
            Some(Reply::Subscription(subscription)) => {
                listen(&self.running.id, subscription, &self.out, &cancel, &self.over).await;
            }
            // A service that heard of the cancellation first may have answered all the same.
            Some(reply) if !cancel.is_cancelled() => {
                self.out.line(&wire::modern_reply(&self.running.id, self.call, &reply, self.revision))
            }
            _ => {}
        }
    }

    async fn answer(&mut self) -> Reply {
        let Some(outbox) = &self.outbox else { return self.reply.as_mut().await };
        let pass_on = |notice: &Notice| {
            if *notice != Notice::CloseStream {
                let mut message = Vec::with_capacity(160);
                notice.write(&mut message, None);
                self.out.line(&message);
            }
        };
        let reply = loop {
            tokio::select! {
                biased;
                Some(notice) = outbox.next() => pass_on(&notice),
                reply = &mut self.reply => break reply,
            }
        };
        while let Some(notice) = outbox.try_next() {
            pass_on(&notice);
        }
        reply
    }
}

/// Passes a subscription's events on until one side ends it.
async fn listen(
    id: &Id,
    subscription: Subscription,
    out: &Output,
    cancel: &CancellationToken,
    over: &CancellationToken,
) {
    out.line(&modern::acknowledgement(id, &subscription));
    loop {
        tokio::select! {
            () = cancel.cancelled() => break,
            () = over.cancelled() => {
                out.line(&modern::subscription_end(id));
                break;
            }
            notice = subscription.events.next() => match notice {
                Some(notice) => out.line(&modern::subscription_notice(id, &notice)),
                None => {
                    out.line(&modern::subscription_end(id));
                    break;
                }
            },
        }
    }
    subscription.events.close();
}

/// Takes the request off the list of running ones, however it ends.
pub(super) struct Running {
    pub(super) in_flight: Arc<InFlight>,
    pub(super) id: Id,
    pub(super) turn: Turn,
}

impl Drop for Running {
    fn drop(&mut self) {
        self.in_flight.finish(&self.id, self.turn);
    }
}
