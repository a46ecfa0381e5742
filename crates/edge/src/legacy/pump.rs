//! Feeds a legacy client's stream from one internal subscription.

use std::future::Future;
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
pub(crate) fn pump<D: Door>(
    door: D,
    peer: Arc<Peer>,
    lane: Arc<dyn Lane>,
    gap: bool,
) -> impl Future<Output = ()> + Send {
    // From here on, and not from when the future first runs, subscribing waits for this stream.
    let mut changed = peer.subscriptions_changed.subscribe();
    changed.mark_changed();
    async move {
        let mut events = None;
        let mut gap = gap;
        loop {
            tokio::select! {
                () = peer.ended.cancelled() => break,
                Ok(()) = changed.changed() => {
                    let changes = *changed.borrow_and_update();
                    let next = listen(&door, &peer).await;
                    while let Some(notice) = events.as_ref().and_then(|events: &Events| events.0.try_next()) {
                        pass_on(&peer, &*lane, &notice);
                    }
                    events = next;
                    // Never back: the feed before this one may have its last word only now.
                    peer.subscriptions_heard.send_modify(|heard| *heard = changes.max(*heard));
                    if std::mem::take(&mut gap) {
                        announce_everything(&peer, &*lane);
                    }
                }
                notice = next(&events) => match notice {
                    Some(notice) => pass_on(&peer, &*lane, &notice),
                    // The service ended the subscription; there is nothing more to pass on.
                    None => events = None,
                }
            }
        }
    }
}

/// Passes on what the service tells. Log messages are told at the level that the client wants.
fn pass_on(peer: &Peer, lane: &dyn Lane, notice: &Notice) {
    match notice {
        Notice::Log(params) if !peer.wants_log(params) => {}
        _ => lane.send(notice_for(notice, peer.revision)),
    }
}

async fn next(events: &Option<Events>) -> Option<Notice> {
    match events {
        Some(events) => events.0.next().await,
        None => std::future::pending().await,
    }
}

/// What the service tells. However the pump ends, the service hears that nobody listens any more.
struct Events(Outbox);

impl Drop for Events {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn listen<D: Door>(door: &D, peer: &Peer) -> Option<Events> {
    let mut w = ObjectWriter::new();
    w.json("notifications", &peer.filter());
    let params = Params::parse(&w.finish(), &OWN).ok()?;
    let call = peer.call(Method::Listen, params, peer.ended.child_token(), None).ok()?;
    match door.answer(call).await {
        Ok(Reply::Subscription(subscription)) => Some(Events(subscription.events)),
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
