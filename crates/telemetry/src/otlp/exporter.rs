//! [`Exporter`]: the tasks that send what there is to a collector.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, sleep, timeout};
use url::Url;

use super::buffer::SpanBuffer;
use super::figures::Times;
use super::request::Resource;
use super::sender::{NotSent, Protocol, Sender, Signal};
use crate::reading::Reading;

/// Where things go, and how.
#[derive(Debug, Clone)]
pub struct ExporterSettings {
    /// The collector.
    pub endpoint: Url,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// What goes with every request: credentials, for one.
    pub headers: HeaderMap,
    /// How long a request may take.
    pub timeout: Duration,
    /// Who sends, by name: `service.name` and the like.
    pub resource: Vec<(String, String)>,
}

/// What is read and sent now and then.
pub struct Figures {
    /// How often.
    pub every: Duration,
    /// Reads everything.
    pub read: Box<dyn Fn() -> Reading + Send + Sync>,
}

/// How long spans wait for others at most.
const DELAY: Duration = Duration::from_secs(2);
/// How long to wait after the first failure, and at most.
const FIRST_WAIT: Duration = Duration::from_secs(1);
const LONGEST_WAIT: Duration = Duration::from_secs(10);
/// How long the end of the process waits for what is left.
const LAST: Duration = Duration::from_secs(3);

/// Sends spans and figures until it is [ended](Exporter::end).
#[derive(Debug)]
pub struct Exporter {
    ending: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl Exporter {
    /// Starts to send.
    pub fn start(
        settings: &ExporterSettings,
        spans: Option<Arc<SpanBuffer>>,
        figures: Option<Figures>,
    ) -> Exporter {
        let (ending, over) = watch::channel(false);
        let ExporterSettings { endpoint, protocol, headers, timeout, resource } = settings;
        let way = Way {
            sender: Sender::new(endpoint, *protocol, headers.clone(), *timeout),
            resource: Resource::new(resource),
            over,
        };
        let spans = spans.map(|buffer| tokio::spawn(way.clone().send_spans(buffer)));
        let figures = figures.map(|figures| tokio::spawn(way.send_figures(figures)));
        Exporter { ending, tasks: spans.into_iter().chain(figures).collect() }
    }

    /// Sends what is left, if that can be done soon.
    pub async fn end(self) {
        let _ = self.ending.send(true);
        let all = async {
            for task in self.tasks {
                let _ = task.await;
            }
        };
        let _ = timeout(LAST, all).await;
    }
}

/// The way to a collector.
#[derive(Clone)]
struct Way {
    sender: Sender,
    resource: Resource,
    /// Becomes true when the process ends.
    over: watch::Receiver<bool>,
}

impl Way {
    async fn send_spans(mut self, buffer: Arc<SpanBuffer>) {
        let mut trouble = Trouble::new("Spans", self.sender.host());
        loop {
            tokio::select! {
                () = buffer.enough.notified() => {}
                () = sleep(DELAY) => {}
                _ = self.over.wait_for(|over| *over) => {}
            }
            while let Some(parcel) = buffer.take() {
                match self.sender.send(Signal::Spans, self.resource.spans(&parcel.bytes)).await {
                    Ok(rejected) => {
                        buffer.give_up(rejected.count);
                        trouble.over(buffer.untold(), &rejected.why);
                    }
                    Err(NotSent { why, again: Some(asked) }) => {
                        let wait = trouble.begun(&why, asked);
                        buffer.put_back(parcel);
                        if !self.wait(wait).await {
                            return;
                        }
                    }
                    Err(NotSent { why, again: None }) => {
                        buffer.give_up(parcel.spans as u64);
                        let wait = trouble.begun(&why, Duration::ZERO);
                        if !self.wait(wait).await {
                            return;
                        }
                    }
                }
            }
            if *self.over.borrow() && buffer.is_empty() {
                return;
            }
        }
    }

    async fn send_figures(mut self, figures: Figures) {
        let mut trouble = Trouble::new("Metrics", self.sender.host());
        let start = nanos();
        let mut ticks = tokio::time::interval_at(tokio::time::Instant::now() + figures.every, figures.every);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let is_over = tokio::select! {
                _ = ticks.tick() => false,
                _ = self.over.wait_for(|over| *over) => true,
            };
            let times = Times { start, now: nanos() };
            let message = self.resource.figures(&(figures.read)(), times);
            // What could not be sent is in the next, which has everything since the start.
            match self.sender.send(Signal::Figures, message).await {
                Ok(rejected) => trouble.over(rejected.count, &rejected.why),
                Err(NotSent { why, .. }) => _ = trouble.begun(&why, Duration::ZERO),
            }
            if is_over {
                return;
            }
        }
    }

    /// Waits, and says whether it is worth going on: at the end, once more is enough.
    async fn wait(&mut self, wait: Duration) -> bool {
        if *self.over.borrow() {
            return false;
        }
        tokio::select! {
            () = sleep(wait) => true,
            _ = self.over.wait_for(|over| *over) => true,
        }
    }
}

/// Whether things can be sent, and what of it gets into the log: that it began, and that it is over.
struct Trouble {
    what: &'static str,
    host: String,
    failures: u32,
}

impl Trouble {
    fn new(what: &'static str, host: String) -> Trouble {
        Trouble { what, host, failures: 0 }
    }

    /// Something could not be sent. How long to wait until the next attempt.
    fn begun(&mut self, why: &str, asked: Duration) -> Duration {
        if self.failures == 0 {
            tracing::warn!(
                target: "tidegate::telemetry",
                "{} cannot be sent to {}: {why}. Further ones are tried, and calls do not wait for it", self.what, self.host
            );
        }
        self.failures = self.failures.saturating_add(1);
        let usual = FIRST_WAIT.saturating_mul(2_u32.saturating_pow(self.failures - 1)).min(LONGEST_WAIT);
        // So that not all who were sent away come back together.
        asked.min(LONGEST_WAIT).max(usual.mul_f64(0.5 + fastrand::f64() / 2.0))
    }

    /// Something was sent. So many were lost meanwhile, or are not taken, for this reason if there is any.
    fn over(&mut self, lost: u64, why: &str) {
        let because = if why.is_empty() { String::new() } else { format!(": {why}") };
        match (std::mem::take(&mut self.failures), lost) {
            (0, 0) => {}
            (0, lost) => tracing::warn!(
                target: "tidegate::telemetry",
                "{lost} {} were not sent to {}{because}", self.what.to_lowercase(), self.host
            ),
            (_, 0) => tracing::info!(
                target: "tidegate::telemetry",
                "{} are sent to {} again", self.what, self.host
            ),
            (_, lost) => tracing::info!(
                target: "tidegate::telemetry",
                "{} are sent to {} again; {lost} were lost{because}", self.what, self.host
            ),
        }
    }
}

fn nanos() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_nanos()).unwrap_or(u64::MAX)
}
