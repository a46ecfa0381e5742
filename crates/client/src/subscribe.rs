//! Subscriptions with a modern server: one stream, taken up again when it breaks.

use std::sync::{Arc, Weak};
use std::time::Duration;

use tidegate_protocol::{Error, Revision, Symbol};
use tidegate_service::{Call, Notice, Outbox, Pause, Reply, Subscription};

use crate::counted::Counted;
use crate::modern::{ExchangeError, Modern, SubscriptionEvent, SubscriptionStream};
use crate::notices::{notice_of, other_notice};
use crate::time_budget::TimeBudget;
use crate::upstream::{Negotiated, Upstream};
use crate::upstream_error::passed_task;
use tidegate_service::Filter;

/// How often to see whether anybody still listens, where nothing tells.
const LOOK: Duration = Duration::from_millis(500);
/// The pause before a broken stream is opened again.
const PAUSE: Pause = Pause::new(Duration::from_millis(250), Duration::from_secs(30));

/// Opens a subscription and keeps it open for as long as somebody listens.
pub(crate) async fn listen(
    upstream: &Arc<Upstream>,
    modern: &Arc<Modern>,
    call: &Call,
    budget: TimeBudget,
) -> Result<Reply, ExchangeError> {
    let filter = Filter::read(call.params.object())?;
    let (stream, acknowledged) = modern.open_subscription(call, &budget).await?;
    let events = Outbox::new(256);
    let (over, open) = (upstream.over.clone(), Counted::one_more(&upstream.subscriptions));
    let (upstream, outbox, mut call) = (Arc::downgrade(upstream), events.clone(), call.clone());
    call.context.outbox = None;
    tokio::spawn(async move {
        let _open = open;
        tokio::select! {
            () = keep_open(stream, &outbox, &upstream, &call, &filter) => {}
            () = over.cancelled() => {}
        }
        outbox.close();
    });
    Ok(Reply::Subscription(Subscription { acknowledged, events }))
}

/// Passes on what the server tells, and opens the stream again when it breaks, until one side wants no more.
async fn keep_open(
    stream: SubscriptionStream,
    outbox: &Outbox,
    upstream: &Weak<Upstream>,
    call: &Call,
    filter: &Filter,
) {
    let mut stream = Some(stream);
    let mut pause = PAUSE;
    loop {
        if let Some(stream) = stream.take() {
            match pump(stream, outbox).await {
                Ended::ByServer | Ended::Unwanted => return,
                Ended::Broken => {}
            }
        }
        if unwanted(outbox) {
            return;
        }
        tokio::time::sleep(pause.get()).await;
        let Some(upstream) = upstream.upgrade() else { return };
        match again(&upstream, call).await {
            Ok(opened) => {
                stream = Some(opened);
                pause.reset();
                // What happened in the meantime nobody knows.
                outbox.push_missed(filter.everything());
            }
            Err(error) => {
                tracing::debug!(server = %upstream.dialer.name, %error, "the subscription is still broken");
                pause.failed();
            }
        }
    }
}

async fn again(upstream: &Arc<Upstream>, call: &Call) -> Result<SubscriptionStream, Error> {
    let budget = upstream.budget(call);
    match upstream.negotiated(call).await? {
        Negotiated::Modern(modern) => match modern.open_subscription(call, &budget).await {
            Ok((stream, _)) => Ok(stream),
            Err(ExchangeError::Error(error) | ExchangeError::WrongEra(error)) => Err(error),
        },
        Negotiated::Legacy(_) => Err(Error::new(Symbol::Unavailable, "The server speaks another era now")),
    }
}

enum Ended {
    ByServer,
    Unwanted,
    Broken,
}

async fn pump(mut stream: SubscriptionStream, outbox: &Outbox) -> Ended {
    let profile = stream.modern.dialer.settings.profile;
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            told = stream.next() => match told {
                Ok(SubscriptionEvent::Told(told)) => {
                    if let Some(notice) = notice_of(&told).or_else(|| other_notice(&told)) {
                        outbox.push(match notice {
                            Notice::Task { id, task } => {
                                Notice::Task { id, task: passed_task(profile, Revision::INTERNAL, task) }
                            }
                            notice => notice,
                        });
                    }
                }
                Ok(SubscriptionEvent::Ended) => return Ended::ByServer,
                Err(_) => return Ended::Broken,
            },
            _ = look.tick() => {
                if unwanted(outbox) {
                    return Ended::Unwanted;
                }
            }
        }
    }
}

fn unwanted(outbox: &Outbox) -> bool {
    outbox.is_closed() || outbox.is_abandoned()
}
