//! What was done, in the log: every five minutes, and when it ends.

use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use tidegate_config::HealthSettings;
use tidegate_gateway::Gateway;
use tidegate_service::events::{self, Event, Recorder, StatisticsDue};
use tokio::task::JoinHandle;
use tracing::{Level, enabled};

use super::queues::Queues;

/// How often it is said.
const PERIOD: Duration = Duration::from_secs(300);

/// Counts calls for as long as somebody can read of it.
pub(super) struct Statistics(Option<Counting>);

struct Counting {
    counted: Arc<tidegate_service::stats::Statistics>,
    /// `None` if somebody else counts.
    recorder: Option<Arc<dyn Recorder>>,
    gateway: Gateway,
    health: HealthSettings,
    reporting: JoinHandle<()>,
}

impl Statistics {
    /// Starts to count, unless the log leaves such lines out or somebody counts already.
    pub(super) fn start(
        gateway: &Gateway,
        counted: Option<Arc<tidegate_service::stats::Statistics>>,
        health: HealthSettings,
    ) -> Statistics {
        if !enabled!(target: "tidegate::statistics", Level::INFO) {
            return Statistics(None);
        }
        let is_counted = counted.is_some();
        let counted = counted.unwrap_or_default();
        let recorder: Option<Arc<dyn Recorder>> = if is_counted { None } else { Some(counted.clone()) };
        recorder.iter().for_each(|recorder| events::add(recorder.clone()));
        let (reported, busy) = (counted.clone(), gateway.clone());
        let reporting = tokio::spawn(async move {
            let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + PERIOD, PERIOD);
            ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                report(&reported, &busy, &health, false);
            }
        });
        Statistics(Some(Counting { counted, recorder, gateway: gateway.clone(), health, reporting }))
    }

    /// Says what was done in all.
    pub(super) fn end(self) {
        if let Some(counting) = self.0 {
            counting.reporting.abort();
            report(&counting.counted, &counting.gateway, &counting.health, true);
            counting.recorder.iter().for_each(events::remove);
        }
    }
}

fn report(
    counted: &tidegate_service::stats::Statistics,
    gateway: &Gateway,
    health: &HealthSettings,
    is_final: bool,
) {
    let stats = &counted.snapshot();
    let report = &with_queues(stats.report(), &Queues::of(gateway));
    let is_enough = stats.success_count + stats.error_count >= health.min_calls;
    let warn = is_enough && stats.success_rate() < health.warn;
    events::emit(&Event::StatisticsDue(StatisticsDue { stats, report, warn, is_final }));
}

/// The counters, and what runs and waits at the moment, if anything does.
fn with_queues(mut report: Value, queues: &Queues) -> Value {
    if let Some(queues) = queues.report() {
        report["queues"] = queues;
    }
    report
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_told_of_when_there_is_something_in_them() {
        let counted = tidegate_service::stats::Statistics::default();
        let report = || counted.snapshot().report();
        let busy = with_queues(report(), &super::super::queues::tests::busy());
        assert_eq!(busy["queues"]["waiting"], 6, "{busy}");
        let idle = with_queues(report(), &Queues::default());
        assert!(idle.get("queues").is_none() && idle.is_object(), "{idle}");
    }
}
