//! The watch: looks now and then whether somebody should look at something.

use std::path::{Path, PathBuf};
use std::sync::Weak;
use std::time::Duration;

use tidegate_config::{HealthSettings, Settings};
use tidegate_gateway::ServerStatus;
use tidegate_service::budget::Budget;
use tidegate_service::events::{self, AlertChanged, Event};
use tidegate_service::layers::BreakerState;
use tidegate_telemetry::{AlertChange, AlertThresholds, Seen};

use super::Inner;

/// When somebody should look.
pub(super) fn thresholds(health: &HealthSettings) -> AlertThresholds {
    AlertThresholds {
        success_rate: health.warn,
        min_calls: health.min_calls,
        window: health.window,
        slower: health.latency_factor,
        quick: health.latency_floor,
        disk_percent: health.disk_percent,
        disk_free: health.disk_free,
        buffer_percent: health.buffer_percent,
    }
}

/// Looks that often, for as long as anything is monitored.
pub(super) async fn watch(monitoring: Weak<Inner>, every: Duration) {
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(monitoring) = monitoring.upgrade() else { return };
        // Asking about a disk may take a while.
        let _ = tokio::task::spawn_blocking(move || monitoring.look()).await;
    }
}

impl Inner {
    /// Looks whether somebody should look at something, and says what has changed.
    fn look(&self) {
        let metrics = self.measured.as_ref().map(|measured| &measured.metrics);
        let budget = Budget::of_process();
        let open = |server: &ServerStatus| server.breaker == BreakerState::Open;
        let seen = Seen {
            calls: metrics.map_or((0, 0), |metrics| metrics.recent()),
            latency: metrics.and_then(|metrics| metrics.latency(self.health.min_calls)),
            open_circuits: self.gateway.status().into_iter().filter(open).map(|server| server.name).collect(),
            disk: self.folders.iter().filter_map(|folder| room_at(folder)).min_by_key(|(_, free, _)| *free),
            buffered: (budget.used() as u64, budget.limit() as u64),
        };
        let changes = self.alerts().look(&seen);
        for AlertChange { alert, is_raised, message } in &changes {
            let changed = AlertChanged { alert: alert.as_str(), is_raised: *is_raised, message };
            events::emit(&Event::AlertChanged(changed));
        }
    }
}

/// Where the gateway writes: what it keeps, the audit trail, the log and the stories.
pub(super) fn written_folders(settings: &Settings) -> Vec<PathBuf> {
    let trail = settings.audit.as_ref().and_then(|audit| audit.file.as_ref()).map(|file| &file.path);
    let log = settings.log.file.as_ref().map(|file| &file.path);
    let files = trail.into_iter().chain(log).chain(&settings.telemetry.stories.file);
    let folders = files.filter_map(|file| file.parent()).map(|folder| match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder.to_owned(),
    });
    settings.state_dir.clone().into_iter().chain(folders).collect()
}

/// How much room there is at a place: its name, how many bytes are free, and how many there are.
#[cfg(unix)]
fn room_at(folder: &Path) -> Option<(String, u64, u64)> {
    let room = rustix::fs::statvfs(folder).ok()?;
    Some((folder.display().to_string(), room.f_bavail * room.f_frsize, room.f_blocks * room.f_frsize))
}

#[cfg(not(unix))]
fn room_at(_: &Path) -> Option<(String, u64, u64)> {
    None
}
