//! Listening to a legacy server for as long as somebody has subscribed to something.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::call::Legacy;
use super::lane::{Lane, Terms};
use crate::allowance::Allowance;

/// How often to see whether anything else is wanted.
const LOOK: Duration = Duration::from_secs(1);
/// The longest pause before a lost session is opened again.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// Sees to it that there is a session on which the server tells what is wanted, until nothing is.
pub(super) fn listening(legacy: &Arc<Legacy>, terms: &Terms) {
    if legacy.listening.swap(true, Ordering::AcqRel) {
        return;
    }
    let (legacy, terms) = (legacy.clone(), terms.clone());
    tokio::spawn(async move {
        let (mut last, mut pause) = (None, LOOK);
        while wanted(&legacy) {
            match look(&legacy, &terms, &last).await {
                Some(lane) => {
                    pause = LOOK;
                    tokio::select! {
                        () = lane.peer.desk.over.cancelled() => {}
                        () = tokio::time::sleep(LOOK) => {}
                    }
                    last = Some(lane);
                }
                None => {
                    tokio::time::sleep(pause).await;
                    pause = (pause * 2).min(MAX_PAUSE);
                }
            }
        }
    });
}

/// Whether anybody has subscribed to anything. If not, whoever does next begins anew.
fn wanted(legacy: &Legacy) -> bool {
    if legacy.changes.is_wanted() {
        return true;
    }
    legacy.listening.store(false, Ordering::Release);
    // Somebody may have come in between, and seen that it was taken care of.
    legacy.changes.is_wanted() && !legacy.listening.swap(true, Ordering::AcqRel)
}

/// The session, with exactly what is wanted subscribed to. After a gap everybody is told that anything may have changed.
async fn look(legacy: &Legacy, terms: &Terms, last: &Option<Arc<Lane>>) -> Option<Arc<Lane>> {
    let within = Allowance::new(Instant::now(), legacy.options.timeout, false, None);
    let lane = legacy.lane(terms).await.ok()?;
    lane.touch();
    let is_new = last.as_ref().is_some_and(|last| !Arc::ptr_eq(last, &lane));
    if lane.facts.has_capability("resources.subscribe") {
        lane.subscribe(legacy.changes.uris(), &within).await.ok()?;
    }
    if is_new {
        legacy.changes.tell_everything();
    }
    Some(lane)
}
