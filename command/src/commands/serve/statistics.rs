//! What was done, in the log: every five minutes, and when it ends.

use std::sync::Arc;
use std::time::Duration;

use tidegate_service::events::{self, Event, Recorder, StatisticsDue};
use tidegate_service::stats::{Health, Thresholds};
use tokio::task::JoinHandle;
use tracing::{Level, enabled};

/// How often it is said.
const PERIOD: Duration = Duration::from_secs(300);

/// Counts calls for as long as somebody can read of it.
pub(super) struct Statistics(Option<Counting>);

struct Counting {
    counted: Arc<tidegate_service::stats::Statistics>,
    recorder: Arc<dyn Recorder>,
    reporting: JoinHandle<()>,
}

impl Statistics {
    /// Starts to count, unless the log leaves such lines out.
    pub(super) fn start() -> Statistics {
        if !enabled!(target: "tidegate::statistics", Level::INFO) {
            return Statistics(None);
        }
        let counted = Arc::new(tidegate_service::stats::Statistics::default());
        let recorder: Arc<dyn Recorder> = counted.clone();
        events::add(recorder.clone());
        let reported = counted.clone();
        let reporting = tokio::spawn(async move {
            let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + PERIOD, PERIOD);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                report(&reported, false);
            }
        });
        Statistics(Some(Counting { counted, recorder, reporting }))
    }

    /// Says what was done in all.
    pub(super) fn end(self) {
        if let Some(counting) = self.0 {
            counting.reporting.abort();
            report(&counting.counted, true);
            events::remove(&counting.recorder);
        }
    }
}

fn report(counted: &tidegate_service::stats::Statistics, is_final: bool) {
    let health = Health::judge(counted.snapshot(), None, &Thresholds::default());
    let (stats, report) = (&health.stats, &health.stats.report());
    events::emit(&Event::StatisticsDue(StatisticsDue { stats, report, warn: health.warn, is_final }));
}
