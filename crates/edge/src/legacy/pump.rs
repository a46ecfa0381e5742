//! Feeds a legacy client's stream from one internal subscription.

use std::sync::Arc;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Method, Params};
use tidegate_service::{Door, Notice, Outbox, Reply};

use super::drive::{Lane, OWN, notice_for};
use super::peer::Peer;

/// Passes changes on until the session ends or nobody reads. A changed filter opens the new subscription before the
/// old one is closed, so that nothing falls between them.
///
/// After a `gap` in which nobody listened, the client is told that everything may have changed.
pub(crate) async fn pump<D: Door>(door: D, peer: Arc<Peer>, lane: Arc<dyn Lane>, gap: bool) {
    let mut events = listen(&door, &peer).await;
    if gap {
        announce_everything(&peer, &*lane);
    }
    loop {
        let changed = peer.subscriptions_changed.notified();
        tokio::select! {
            () = peer.ended.cancelled() => break,
            () = changed => {
                let next = listen(&door, &peer).await;
                while let Some(notice) = events.as_ref().and_then(Outbox::try_next) {
                    lane.send(notice_for(&notice, peer.revision));
                }
                close(events);
                events = next;
            }
            notice = next(&events) => match notice {
                Some(notice) => lane.send(notice_for(&notice, peer.revision)),
                // The service ended the subscription; there is nothing more to pass on.
                None => events = None,
            }
        }
    }
    close(events);
}

async fn next(events: &Option<Outbox>) -> Option<Notice> {
    match events {
        Some(events) => events.next().await,
        None => std::future::pending().await,
    }
}

fn close(events: Option<Outbox>) {
    if let Some(events) = events {
        events.close();
    }
}

async fn listen<D: Door>(door: &D, peer: &Peer) -> Option<Outbox> {
    let mut w = ObjectWriter::new();
    w.json("notifications", &peer.filter());
    let params = Params::parse(&w.finish(), &OWN).ok()?;
    let call = peer.call(Method::Listen, params, peer.ended.child_token(), None).ok()?;
    match door.answer(call).await {
        Ok(Reply::Subscription(subscription)) => Some(subscription.events),
        // A service without subscriptions simply never changes.
        Ok(_) => None,
    }
}

fn announce_everything(peer: &Peer, lane: &dyn Lane) {
    let lists = [
        (peer.offers.tools, Notice::ToolsChanged),
        (peer.offers.prompts, Notice::PromptsChanged),
        (peer.offers.resources, Notice::ResourcesChanged),
    ];
    for (_, notice) in lists.into_iter().filter(|(offered, _)| *offered) {
        lane.send(notice_for(&notice, peer.revision));
    }
    for uri in peer.subscribed() {
        lane.send(notice_for(&Notice::ResourceUpdated(uri), peer.revision));
    }
}
