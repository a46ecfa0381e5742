//! Feeds a legacy client's stream from one internal subscription.

use std::future::Future;
use std::sync::Arc;

use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Method, Params};
use tidegate_service::{Door, Notice, Outbox, Reply};

use super::client_session::ClientSession;
use super::drive::{MessageSink, OWN, notice_for};

/// What a client hears of changes, for longer than any of its streams: what happens while nobody reads is told to the next
/// stream, and nothing has to be guessed.
#[derive(Default)]
pub(crate) struct ChangeSubscription {
    /// The subscription, once there was one.
    events: Option<Arc<Events>>,
    /// Whether a stream has told anything, of which nobody knows whether it arrived when that stream broke.
    told: bool,
    /// Whether nobody listened for a while.
    missed: bool,
}

impl ChangeSubscription {
    /// Something happened that nobody has listened for.
    pub(super) fn miss(&mut self) {
        self.missed = true;
    }

    /// Nobody listens any more.
    pub(super) fn end(&mut self) {
        self.missed |= self.events.take().is_some();
    }
}

/// Passes changes on until the session ends or nobody reads. A changed filter opens the new subscription before the
/// old one is closed, so that nothing falls between them.
///
/// Where it is not known what the client has heard last, it is told once that everything may have changed: the stream before
/// broke after it had told something (unless this one is `resumed`), it came back after too long, or the service has ended
/// the subscription.
pub(crate) fn pass_on_changes<D: Door>(
    door: D,
    client: Arc<ClientSession>,
    sink: Arc<dyn MessageSink>,
    resumed: bool,
) -> impl Future<Output = ()> + Send {
    // From here on, and not from when the future first runs, subscribing waits for this stream.
    let mut changed = client.subscriptions_changed.subscribe();
    changed.mark_changed();
    async move {
        let (mut events, mut gap) = {
            let mut changes = client.changes();
            let told = std::mem::take(&mut changes.told) && !resumed;
            let ended = changes.events.as_ref().is_some_and(|events| events.0.is_closed());
            (changes.events.clone(), told || ended || std::mem::take(&mut changes.missed))
        };
        loop {
            tokio::select! {
                biased;
                () = client.ended.cancelled() => break,
                Ok(()) = changed.changed() => {
                    let changes = *changed.borrow_and_update();
                    let next = listen(&door, &client).await.map(Arc::new);
                    while let Some(notice) = events.as_ref().and_then(|events| events.0.try_next()) {
                        if !(gap && is_announced(&notice)) {
                            pass_on(&client, &*sink, &notice);
                        }
                    }
                    events = next;
                    client.changes().events = events.clone();
                    // Never back: the feed before this one may have its last word only now.
                    client.subscriptions_heard.send_modify(|heard| *heard = changes.max(*heard));
                    if std::mem::take(&mut gap) {
                        announce_everything(&client, &*sink);
                    }
                }
                notice = next(&events) => match notice {
                    Some(notice) => pass_on(&client, &*sink, &notice),
                    // The service ended the subscription; there is nothing more to pass on.
                    None => events = None,
                }
            }
        }
        client.changes().end();
    }
}

/// Passes on what the service tells. Log messages are told at the level that the client wants.
fn pass_on(client: &ClientSession, sink: &dyn MessageSink, notice: &Notice) {
    match notice {
        Notice::Log(params) if !client.wants_log(params) => {}
        _ => sink.send(notice_for(notice, client.revision)),
    }
    client.changes().told |= is_announced(notice);
}

async fn next(events: &Option<Arc<Events>>) -> Option<Notice> {
    match events {
        Some(events) => events.0.next().await,
        None => std::future::pending().await,
    }
}

/// What the service tells. When nobody holds it any more, the service hears that nobody listens.
pub(crate) struct Events(Outbox);

impl Drop for Events {
    fn drop(&mut self) {
        self.0.close();
    }
}

async fn listen<D: Door>(door: &D, client: &ClientSession) -> Option<Events> {
    let mut w = ObjectWriter::new();
    w.json("notifications", &client.filter());
    let params = Params::parse(&w.finish(), &OWN).ok()?;
    let call = client.call(Method::Listen, params, client.ended.child_token(), None).ok()?;
    match door.answer(call).await {
        Ok(Reply::Subscription(subscription)) => Some(Events(subscription.events)),
        // A service without subscriptions simply never changes.
        Ok(_) => None,
    }
}

/// Whether it is among what is told when everything may have changed.
fn is_announced(notice: &Notice) -> bool {
    use Notice::{PromptsChanged, ResourceUpdated, ResourcesChanged, ToolsChanged};
    matches!(notice, ToolsChanged | PromptsChanged | ResourcesChanged | ResourceUpdated(_))
}

fn announce_everything(client: &ClientSession, sink: &dyn MessageSink) {
    let lists = [
        (client.offers.tools, Notice::ToolsChanged),
        (client.offers.prompts, Notice::PromptsChanged),
        (client.offers.resources, Notice::ResourcesChanged),
    ];
    for (_, notice) in lists.into_iter().filter(|(offered, _)| *offered) {
        sink.send(notice_for(&notice, client.revision));
    }
    for uri in client.subscribed() {
        sink.send(notice_for(&Notice::ResourceUpdated(uri), client.revision));
    }
}
