//! [`Keys`]: the keys of one issuer, kept up to date by a task of their own.
//!
//! Whoever verifies a token reads what is there, without a lock. The task fetches when the [`Schedule`] says so, one fetch at a
//! time; whoever needs a key that is not there may bring that forward, at most once in the time of the cool-down, and waits for it
//! together with all others who do. So a flood of tokens with made-up `kid`s costs the issuer one request in 30 s. When a fetch brought
//! new keys, the next one may come after 5 s: whoever changes keys twice in a row is not kept out for long.

mod fetch;
mod file;
mod key_set;
mod schedule;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use tidegate_config::JwksSource;
use tokio::sync::{Notify, watch};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout};

use self::fetch::{Fetched, Remote};
use self::file::KeyFile;
use self::schedule::Schedule;
use super::SetupError;
use crate::Refusal;

pub(crate) use self::fetch::{checked, guarded};
pub(crate) use self::key_set::{Found, KeySet};
pub(crate) use self::schedule::Timing;

/// How long one fetch may take, with all its requests.
const FETCH: Duration = Duration::from_secs(30);
/// How many keys that cannot be used are named in the log.
const NOTES: usize = 8;

/// The keys of an issuer.
pub(crate) struct Keys {
    shared: Arc<Shared>,
    task: AbortHandle,
}

struct Shared {
    issuer: String,
    timing: Timing,
    current: ArcSwapOption<KeySet>,
    /// Counts how often a key went away.
    withdrawals: AtomicU64,
    /// `None` for a file.
    schedule: Option<Mutex<Schedule>>,
    /// Counts the fetches that have ended.
    fetches: watch::Sender<u64>,
    /// The schedule has changed.
    rescheduled: Notify,
}

impl Keys {
    /// Keys from a source. A file must be good; what is fetched may come later. Must be called inside a runtime of tokio.
    pub(crate) fn start(
        issuer: &str,
        source: &JwksSource,
        timing: Timing,
        web: tidegate_web::Settings,
    ) -> Result<Keys, SetupError> {
        let remote = match source {
            JwksSource::File(path) => {
                let (file, keys, notes) = KeyFile::open(path)?;
                let shared = Shared::new(issuer, timing, None);
                shared.take(keys, &notes);
                let task = tokio::spawn(watch_file(shared.clone(), file)).abort_handle();
                return Ok(Keys { shared, task });
            }
            JwksSource::Url(url) => Remote::at(url, web)?,
            JwksSource::Discovered => Remote::of_issuer(issuer, web)?,
        };
        let shared = Shared::new(issuer, timing, Some(Mutex::new(Schedule::new(timing, Instant::now()))));
        let task = tokio::spawn(keep_fetching(shared.clone(), remote)).abort_handle();
        Ok(Keys { shared, task })
    }

    /// The keys that there are. Waits for the first ones.
    pub(crate) async fn current(&self) -> Result<Arc<KeySet>, Refusal> {
        if let Some(keys) = self.shared.current.load_full() {
            return Ok(keys);
        }
        self.refreshed().await;
        self.shared.current.load_full().ok_or(Refusal::KeysUnavailable)
    }

    /// Waits for a fetch that is under way, or worth it. Whether there was one.
    pub(crate) async fn refreshed(&self) -> bool {
        let mut fetches = self.shared.fetches.subscribe();
        if !self.shared.schedule().is_some_and(|mut schedule| schedule.ask(Instant::now())) {
            return false;
        }
        self.shared.rescheduled.notify_one();
        timeout(self.shared.timing.patience, fetches.changed()).await.is_ok()
    }

    /// Fetches them anew, soon: somebody may wait for a key to go.
    pub(crate) fn fetch_again(&self) {
        if let Some(mut schedule) = self.shared.schedule() {
            schedule.bring_forward(Instant::now());
        }
        self.shared.rescheduled.notify_one();
    }

    /// Changes whenever a key that was there is not there any more.
    pub(crate) fn withdrawals(&self) -> u64 {
        self.shared.withdrawals.load(Ordering::Acquire)
    }
}

impl Drop for Keys {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Shared {
    fn new(issuer: &str, timing: Timing, schedule: Option<Mutex<Schedule>>) -> Arc<Shared> {
        Arc::new(Shared {
            issuer: issuer.to_owned(),
            timing,
            current: ArcSwapOption::empty(),
            withdrawals: AtomicU64::new(0),
            schedule,
            fetches: watch::Sender::new(0),
            rescheduled: Notify::new(),
        })
    }

    fn schedule(&self) -> Option<MutexGuard<'_, Schedule>> {
        self.schedule.as_ref().map(|schedule| schedule.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Uses these keys from now on. Whether some are new, where there were others before.
    fn take(&self, keys: KeySet, notes: &[String]) -> bool {
        let keys = Arc::new(keys);
        let before = self.current.swap(Some(keys.clone()));
        let same = before.as_ref().is_some_and(|before| keys.has_all_of(before) && before.has_all_of(&keys));
        if same {
            return false;
        }
        let is_rotation = before.as_ref().is_some_and(|before| !before.has_all_of(&keys));
        let issuer = self.issuer.as_str();
        if before.is_some_and(|before| !keys.has_all_of(&before)) {
            self.withdrawals.fetch_add(1, Ordering::Release);
        }
        for note in notes.iter().take(NOTES) {
            tracing::warn!(issuer, "of the keys of this issuer, {note}");
        }
        if keys.is_empty() {
            tracing::warn!(
                issuer,
                "the issuer has no keys that could verify a token: all its tokens are refused"
            );
        } else {
            tracing::info!(issuer, keys = keys.len(), "the keys of the issuer were read");
        }
        is_rotation
    }

    /// What has become of a fetch.
    fn end_fetch(&self, fetched: Result<Fetched, String>) {
        let now = Instant::now();
        let issuer = self.issuer.as_str();
        let Some(mut schedule) = self.schedule() else { return };
        match fetched {
            Ok(Fetched { keys, notes, fresh }) => {
                schedule.succeeded(now, fresh);
                drop(schedule);
                if self.take(keys, &notes)
                    && let Some(mut schedule) = self.schedule()
                {
                    schedule.rotated();
                }
            }
            Err(why) => {
                let chance = f64::from(u16::from_ne_bytes(tidegate_service::random())) / f64::from(u16::MAX);
                let again_s = (schedule.failed(now, chance).as_secs_f64() * 10.0).round() / 10.0;
                let good = schedule.is_good(now);
                drop(schedule);
                if good {
                    tracing::warn!(
                        issuer,
                        again_s,
                        "cannot fetch the keys of the issuer, the last ones go on: {why}"
                    );
                } else {
                    if self.current.swap(None).is_some() {
                        self.withdrawals.fetch_add(1, Ordering::Release);
                    }
                    tracing::error!(
                        issuer,
                        again_s,
                        "cannot fetch the keys of the issuer, its tokens are refused: {why}"
                    );
                }
            }
        }
        self.fetches.send_modify(|fetches| *fetches += 1);
    }
}

async fn keep_fetching(shared: Arc<Shared>, remote: Remote) {
    loop {
        let Some(due) = shared.schedule().map(|schedule| schedule.due()) else { return };
        if due > Instant::now() {
            tokio::select! {
                () = sleep_until(due) => {}
                () = shared.rescheduled.notified() => {}
            }
            continue;
        }
        if let Some(mut schedule) = shared.schedule() {
            schedule.begin();
        }
        let fetched = timeout(FETCH, remote.fetch()).await;
        shared.end_fetch(fetched.unwrap_or_else(|_| Err("it takes too long".to_owned())));
    }
}

async fn watch_file(shared: Arc<Shared>, mut file: KeyFile) {
    let issuer = shared.issuer.as_str();
    loop {
        tokio::time::sleep(shared.timing.look).await;
        // Reading a file may take its time, on a network drive for one.
        let looked = tokio::task::spawn_blocking(move || {
            let change = file.look();
            (file, change)
        });
        let Ok((back, change)) = looked.await else { return };
        file = back;
        match change {
            None => {}
            Some(Ok((keys, notes))) => drop(shared.take(keys, &notes)),
            Some(Err(error)) => tracing::error!(issuer, "{error}; the last good keys go on"),
        }
    }
}
