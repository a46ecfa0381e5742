//! Subscriptions with a modern server: one stream, taken up again when it breaks.

use std::sync::Arc;
use std::time::Duration;

use tidegate_protocol::{Error, Symbol};
use tidegate_service::{Call, Outbox, Reply, Subscription};

use crate::allowance::Allowance;
use crate::modern::{Fed, Feed, Modern, Trouble};
use crate::peer::notice_of;
use crate::upstream::{Known, Upstream};
use tidegate_service::Filter;

/// How often to see whether anybody still listens, where nothing tells.
const LOOK: Duration = Duration::from_millis(500);
/// The longest pause before a broken stream is opened again.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Opens a subscription and keeps it open for as long as somebody listens.
pub(crate) async fn listen(
    upstream: &Arc<Upstream>,
    modern: &Arc<Modern>,
    call: &Call,
    allowance: Allowance,
) -> Result<Reply, Trouble> {
    let filter = Filter::read(call.params.object())?;
    let (feed, acknowledged) = modern.feed(call, &allowance).await?;
    let events = Outbox::new(256);
    let over = upstream.over.clone();
    let (upstream, outbox, mut call) = (Arc::downgrade(upstream), events.clone(), call.clone());
    call.context.outbox = None;
    let listening = events.clone();
    let keeping = async move {
        let mut feed = Some(feed);
        let mut pause = Duration::from_millis(250);
        loop {
            if let Some(feed) = feed.take() {
                match pump(feed, &outbox).await {
                    Ended::ByServer | Ended::Unwanted => return outbox.close(),
                    Ended::Broken => {}
                }
            }
            if unwanted(&outbox) {
                return outbox.close();
            }
            tokio::time::sleep(pause).await;
            let Some(upstream) = upstream.upgrade() else { return outbox.close() };
            match again(&upstream, &call).await {
                Ok(opened) => {
                    feed = Some(opened);
                    pause = Duration::from_millis(250);
                    // What happened in the meantime nobody knows.
                    for notice in filter.everything() {
                        outbox.push(notice);
                    }
                }
                Err(error) => {
                    tracing::debug!(server = %upstream.dialer.name, %error, "the subscription is still broken");
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    };
    tokio::spawn(async move {
        tokio::select! {
            () = keeping => {}
            () = over.cancelled() => listening.close(),
        }
    });
    Ok(Reply::Subscription(Subscription { acknowledged, events }))
}

async fn again(upstream: &Arc<Upstream>, call: &Call) -> Result<Feed, Error> {
    let allowance = upstream.allowance(call);
    match upstream.known(call).await? {
        Known::Modern(modern) => match modern.feed(call, &allowance).await {
            Ok((feed, _)) => Ok(feed),
            Err(Trouble::Error(error) | Trouble::WrongEra(error)) => Err(error),
        },
        Known::Legacy(_) => Err(Error::new(Symbol::Unavailable, "The server speaks another era now")),
    }
}

enum Ended {
    ByServer,
    Unwanted,
    Broken,
}

async fn pump(mut feed: Feed, outbox: &Outbox) -> Ended {
    let mut look = tokio::time::interval(LOOK);
    loop {
        tokio::select! {
            told = feed.next() => match told {
                Ok(Fed::Told(told)) => {
                    if let Some(notice) = notice_of(&told) {
                        outbox.push(notice);
                    }
                }
                Ok(Fed::Ended) => return Ended::ByServer,
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
