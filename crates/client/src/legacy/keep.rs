//! Listening to a legacy server for as long as somebody has subscribed to something.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use super::call::Legacy;
use super::lane::Lane;
use super::whose::{LaneKey, Terms};
use crate::allowance::Allowance;

/// How often to see whether anything else is wanted.
const LOOK: Duration = Duration::from_secs(1);
/// The longest pause before a lost session is opened again.
const MAX_PAUSE: Duration = Duration::from_secs(30);

/// The sessions that somebody sees to it are listened to.
#[derive(Clone, Default)]
pub(crate) struct Listening(Arc<Mutex<HashSet<LaneKey>>>);

impl Listening {
    fn sessions(&self) -> MutexGuard<'_, HashSet<LaneKey>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Sees to it that there is a session on which the server tells these subscribers what they want, until nothing is wanted.
pub(super) fn listening(legacy: &Arc<Legacy>, terms: &Terms) {
    let key = legacy.lanes.key_for(terms);
    if !legacy.listening.sessions().insert(key.clone()) {
        return;
    }
    let legacy = legacy.clone();
    tokio::spawn(async move {
        let (mut last, mut pause, mut bound) = (None, LOOK, legacy.lanes.bound());
        while let Some(terms) = wanted(&legacy, &key) {
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
            // A session that has become one client's is listened to for that client, and another for the rest.
            if std::mem::replace(&mut bound, legacy.lanes.bound()) != legacy.lanes.bound() {
                last = last.filter(|lane: &Arc<Lane>| lane.key() == key);
                legacy.changes.terms().iter().for_each(|terms| listening(&legacy, terms));
            }
        }
    });
}

/// Somebody who has subscribed to something in this session. If there is nobody, whoever does next begins anew.
fn wanted(legacy: &Legacy, key: &LaneKey) -> Option<Terms> {
    let subscriber = || legacy.changes.terms().into_iter().find(|terms| legacy.lanes.key_for(terms) == *key);
    if let Some(terms) = subscriber() {
        return Some(terms);
    }
    legacy.listening.sessions().remove(key);
    // Somebody may have come in between, and seen that it was taken care of.
    subscriber().filter(|_| legacy.listening.sessions().insert(key.clone()))
}

/// The session, with exactly what is wanted subscribed to. After a gap everybody is told that anything may have changed.
async fn look(legacy: &Legacy, terms: &Terms, last: &Option<Arc<Lane>>) -> Option<Arc<Lane>> {
    let within = Allowance::new(Instant::now(), legacy.options.timeout, false, None);
    let lane = legacy.lane(terms).await.ok()?;
    lane.touch();
    let is_new = last.as_ref().is_some_and(|last| !Arc::ptr_eq(last, &lane));
    if lane.facts.has_capability("resources.subscribe") {
        lane.subscribe(legacy.wanted_in(&lane.key()), &within).await.ok()?;
    }
    if is_new {
        legacy.changes.tell_everything(&lane.key());
    }
    Some(lane)
}
