//! Noticing that the lock file has changed: somebody has approved something, here or on another machine.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tidegate_config::PinMode;
use tokio_util::sync::CancellationToken;

use super::{Lock, Pins};
use crate::router::Router;

/// How often the file is looked at.
const LOOK: Duration = Duration::from_secs(1);

/// Tells two states of a file apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stamp(SystemTime, u64);

impl Stamp {
    /// The state of a file; `None` if there is no such file.
    pub(super) fn of(path: &Path) -> Option<Stamp> {
        let about = std::fs::metadata(path).ok()?;
        Some(Stamp(about.modified().ok()?, about.len()))
    }
}

/// Watches the lock file for as long as these pins are in force.
pub(crate) fn watch(router: &Arc<Router>, pins: &mut Pins) {
    if pins.mode == PinMode::Off {
        return;
    }
    let over = CancellationToken::new();
    pins.watching = Some(over.clone().drop_guard());
    let (router, file) = (Arc::downgrade(router), pins.file.clone());
    let mut seen = pins.stamp;
    tokio::spawn(async move {
        loop {
            tokio::select! {
                () = over.cancelled() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
            let place = file.clone();
            let read = move || {
                let stamp = Stamp::of(&place);
                // A file that is gone approves nothing, and takes nothing back: what was approved stays so.
                let lock = (stamp.is_some() && stamp != seen).then(|| Lock::load(&place));
                (stamp, lock)
            };
            let Ok((stamp, lock)) = tokio::task::spawn_blocking(read).await else { return };
            let Some(router) = router.upgrade() else { return };
            match lock {
                None => {}
                Some(Ok(lock)) => {
                    let over = over.clone();
                    let _ = tokio::task::spawn_blocking(move || router.repin(lock, &over)).await;
                }
                Some(Err(error)) => tracing::error!(%error, "keeping the previous pins"),
            }
            seen = stamp.or(seen);
        }
    });
}
