//! Listening to a legacy server for as long as somebody has subscribed to something.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tidegate_service::Pause;

use super::call::Legacy;
use super::owner::{SessionOwner, SessionSpec};
use super::session::UpstreamSession;
use crate::time_budget::TimeBudget;

/// How often to see whether anything else is wanted.
const LOOK: Duration = Duration::from_secs(1);
/// The pause before a lost session is opened again.
const PAUSE: Pause = Pause::new(LOOK, Duration::from_secs(30));

/// The sessions that somebody sees to it are listened to.
#[derive(Clone, Default)]
pub(crate) struct Listening(Arc<Mutex<HashSet<SessionOwner>>>);

impl Listening {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.sessions().len()
    }

    fn sessions(&self) -> MutexGuard<'_, HashSet<SessionOwner>> {
        self.0.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Sees to it that there is a session on which the server tells these subscribers what they want, until nothing is wanted.
pub(super) fn listening(legacy: &Arc<Legacy>, spec: &SessionSpec) {
    let owner = legacy.sessions.owner_for(spec);
    if !legacy.listening.sessions().insert(owner.clone()) {
        return;
    }
    let legacy = legacy.clone();
    tokio::spawn(async move {
        let (mut last, mut pause, mut bound) = (None, PAUSE, legacy.sessions.bound());
        while let Some(spec) = wanted(&legacy, &owner) {
            match look(&legacy, &spec, &last).await {
                Some(session) => {
                    pause.reset();
                    tokio::select! {
                        () = session.connection.router.over.cancelled() => {}
                        () = tokio::time::sleep(LOOK) => {}
                    }
                    last = Some(session);
                }
                None => {
                    tokio::time::sleep(pause.get()).await;
                    pause.failed();
                }
            }
            // A session that has become one client's is listened to for that client, and another for the rest.
            if std::mem::replace(&mut bound, legacy.sessions.bound()) != legacy.sessions.bound() {
                last = last.filter(|session: &Arc<UpstreamSession>| session.owner() == owner);
                legacy.changes.spec().iter().for_each(|spec| listening(&legacy, spec));
            }
        }
    });
}

/// Somebody who has subscribed to something in this session. If there is nobody, whoever does next begins anew.
fn wanted(legacy: &Legacy, owner: &SessionOwner) -> Option<SessionSpec> {
    let subscriber =
        || legacy.changes.spec().into_iter().find(|spec| legacy.sessions.owner_for(spec) == *owner);
    if let Some(spec) = subscriber() {
        return Some(spec);
    }
    legacy.listening.sessions().remove(owner);
    // Somebody may have come in between, and seen that it was taken care of.
    subscriber().filter(|_| legacy.listening.sessions().insert(owner.clone()))
}

/// The session, with exactly what is wanted subscribed to. After a gap everybody is told that anything may have changed.
async fn look(
    legacy: &Legacy,
    spec: &SessionSpec,
    last: &Option<Arc<UpstreamSession>>,
) -> Option<Arc<UpstreamSession>> {
    let within = TimeBudget::new(Instant::now(), legacy.settings.timeout, false, None);
    let session = legacy.session(spec).await.ok()?;
    session.touch();
    let is_new = last.as_ref().is_some_and(|last| !Arc::ptr_eq(last, &session));
    if session.server_info.has_capability("resources.subscribe") {
        session.subscribe(legacy.wanted_in(&session.owner()), &within).await.ok()?;
    }
    if is_new {
        legacy.changes.tell_everything(&session.owner());
    }
    Some(session)
}
