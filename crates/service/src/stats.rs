//! Statistics and health: what the server has done, and how well.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use indexmap::IndexMap;
use serde_json::{Value, json};
use tidegate_protocol::{Method, Symbol};

use crate::events::{Event, Kind, Outcome, Recorder};
use crate::layers::BreakerState;
use crate::time::{epoch_ms, rfc3339_ms};

/// How many tools the periodic report names.
const TOP_TOOLS: usize = 10;

/// Counts while the server runs. No lock on the way of a call.
pub struct Counters {
    started_ms: u64,
    started: Instant,
    requests: AtomicU64,
    finished: AtomicU64,
    succeeded: AtomicU64,
    refused_logins: AtomicU64,
    tools: ArcSwap<Tools>,
}

/// The counters of tools, in the order in which they came.
type Tools = IndexMap<Arc<str>, Arc<AtomicU64>, foldhash::fast::RandomState>;

impl Default for Counters {
    fn default() -> Self {
        Counters {
            started_ms: epoch_ms(),
            started: Instant::now(),
            requests: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            succeeded: AtomicU64::new(0),
            refused_logins: AtomicU64::new(0),
            tools: ArcSwap::default(),
        }
    }
}

impl Counters {
    /// The counter of a tool. It survives the tool's being removed and added again.
    pub fn tool(&self, name: &str) -> Arc<AtomicU64> {
        if let Some(count) = self.tools.load().get(name) {
            return count.clone();
        }
        let count = Arc::new(AtomicU64::new(0));
        self.tools.rcu(|tools| {
            let mut tools = Tools::clone(tools);
            tools.entry(name.into()).or_insert_with(|| count.clone());
            tools
        });
        // Somebody else may have been quicker.
        self.tools.load().get(name).cloned().unwrap_or(count)
    }

    /// Counts a tool among names of which there may be any number.
    fn count_bounded(&self, name: &str) {
        let tools = self.tools.load();
        match tools.get(name) {
            Some(count) => count.fetch_add(1, Relaxed),
            None if tools.len() < MAX_TOOLS => self.tool(name).fetch_add(1, Relaxed),
            None => self.tool(OTHER).fetch_add(1, Relaxed),
        };
    }

    /// A call has come.
    pub fn requested(&self) {
        self.requests.fetch_add(1, Relaxed);
    }

    /// A call got its answer; whether a good one, [`Counters::succeeded`] tells.
    pub fn finished(&self) {
        self.finished.fetch_add(1, Relaxed);
    }

    /// The answer to a call was a good one.
    pub fn succeeded(&self) {
        self.succeeded.fetch_add(1, Relaxed);
    }

    /// The counters as they are now.
    pub fn snapshot(&self) -> Stats {
        // Finished before succeeded: a call that ends in between must not count as more successes than answers.
        let succeeded = self.succeeded.load(Relaxed);
        let finished = self.finished.load(Relaxed).max(succeeded);
        let mut tool_executions: Vec<(String, u64)> = self
            .tools
            .load()
            .iter()
            .map(|(name, count)| (name.to_string(), count.load(Relaxed)))
            .filter(|(_, count)| *count > 0)
            .collect();
        // A stable sort: among equals, the order of registration stays.
        tool_executions.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        Stats {
            start_time_ms: self.started_ms,
            uptime: self.started.elapsed(),
            request_count: self.requests.load(Relaxed).max(finished),
            success_count: succeeded,
            error_count: finished - succeeded,
            tool_executions,
            refused_logins: self.refused_logins.load(Relaxed),
        }
    }
}

/// What the server has done so far.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stats {
    /// When it started, in milliseconds since 1970.
    pub start_time_ms: u64,
    /// For how long it has been running.
    pub uptime: Duration,
    /// How many calls have come, those still running and those cancelled included.
    pub request_count: u64,
    /// How many were answered well.
    pub success_count: u64,
    /// How many were answered with an error, or with a tool's failure.
    pub error_count: u64,
    /// How often each tool ran, most often first.
    pub tool_executions: Vec<(String, u64)>,
    /// How many requests were refused because of their credentials.
    pub refused_logins: u64,
}

impl Stats {
    /// The share of good answers in per cent. Nothing answered yet is 100.
    pub fn success_rate(&self) -> f64 {
        match self.success_count + self.error_count {
            0 => 100.0,
            answered => self.success_count as f64 * 100.0 / answered as f64,
        }
    }

    /// The counters as JSON: `{startTime, requestCount, successCount, errorCount, toolExecutions}`.
    pub fn to_json(&self) -> Value {
        let tools: serde_json::Map<_, _> =
            self.tool_executions.iter().map(|(name, count)| (name.clone(), Value::from(*count))).collect();
        json!({
            "startTime": rfc3339_ms(self.start_time_ms),
            "requestCount": self.request_count,
            "successCount": self.success_count,
            "errorCount": self.error_count,
            "toolExecutions": tools,
        })
    }

    /// The form in which statistics are logged: `{uptime, requests, topTools}`.
    pub fn report(&self) -> Value {
        let top: Vec<_> = self
            .tool_executions
            .iter()
            .take(TOP_TOOLS)
            .map(|(name, count)| json!({"name": name, "count": count}))
            .collect();
        let mut report = json!({
            "uptime": format!("{} minutes", self.uptime.as_secs() / 60),
            "requests": {
                "total": self.request_count,
                "successful": self.success_count,
                "failed": self.error_count,
                "successRate": format!("{:.2}%", self.success_rate()),
            },
            "topTools": top,
        });
        if self.refused_logins > 0 {
            report["refusedLogins"] = self.refused_logins.into();
        }
        report
    }
}

/// Most tools that are counted by name. The rest are counted together.
const MAX_TOOLS: usize = 10_000;
/// What the rest is counted as.
const OTHER: &str = "_OTHER";

/// Counts the calls of this process, for whoever reports on all of them: a gateway.
#[derive(Default)]
pub struct Statistics(Counters);

impl Statistics {
    /// What was done so far.
    pub fn snapshot(&self) -> Stats {
        self.0.snapshot()
    }
}

impl Recorder for Statistics {
    fn wants(&self, kind: Kind) -> bool {
        matches!(kind, Kind::CallEnded | Kind::LoginRefused)
    }

    fn record(&self, event: &Event<'_>) {
        if let Event::LoginRefused(_) = event {
            self.0.refused_logins.fetch_add(1, Relaxed);
        }
        let Event::CallEnded(call) = event else { return };
        self.0.requested();
        let Some(is_success) = call.outcome.is_success() else { return };
        if is_success {
            self.0.succeeded();
        }
        self.0.finished();
        // Names that lead nowhere are the caller's choice, and are not kept.
        let is_unknown = call.outcome == Outcome::Failed(Symbol::ToolNotFound);
        if let (Method::ToolsCall, Some(_), false) = (call.method, call.server, is_unknown)
            && let Some(name) = call.name()
        {
            self.0.count_bounded(name);
        }
    }
}

/// How full a cache is that the server uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CacheStats {
    /// Bytes held.
    pub size: u64,
    /// Entries held.
    pub item_count: u64,
}

/// Below which success rates, in per cent, the server is how unwell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Thresholds {
    /// Somebody should look. Default 95.
    pub warn: f64,
    /// Degraded, up to and including this rate. Default 90.
    pub degraded: f64,
    /// Unhealthy. Default 50.
    pub unhealthy: f64,
}

impl Default for Thresholds {
    fn default() -> Self {
        Thresholds { warn: 95.0, degraded: 90.0, unhealthy: 50.0 }
    }
}

/// How the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// Well.
    Healthy,
    /// Not quite well.
    Degraded,
    /// Not well.
    Unhealthy,
}

impl Status {
    /// The name on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Healthy => "healthy",
            Status::Degraded => "degraded",
            Status::Unhealthy => "unhealthy",
        }
    }
}

/// How the server is, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// The verdict.
    pub status: Status,
    /// Whether somebody should look: the success rate is below the warning threshold.
    pub warn: bool,
    /// What it rests on.
    pub stats: Stats,
    /// The state of the breaker, where there is one.
    pub breaker: Option<BreakerState>,
}

impl Health {
    /// How a server with these counters is.
    pub fn judge(stats: Stats, breaker: Option<BreakerState>, thresholds: &Thresholds) -> Health {
        let rate = stats.success_rate();
        let status = match breaker {
            Some(BreakerState::Open) => Status::Unhealthy,
            _ if rate < thresholds.unhealthy => Status::Unhealthy,
            Some(BreakerState::HalfOpen) => Status::Degraded,
            _ if rate <= thresholds.degraded => Status::Degraded,
            _ => Status::Healthy,
        };
        Health { status, warn: rate < thresholds.warn, stats, breaker }
    }

    /// As JSON: `{status, uptime, stats, circuitBreaker}`, uptime in seconds.
    pub fn to_json(&self) -> Value {
        let mut health = json!({
            "status": self.status.as_str(),
            "uptime": self.stats.uptime.as_secs(),
            "stats": self.stats.to_json(),
        });
        if let Some(breaker) = self.breaker {
            health["circuitBreaker"] = breaker.as_str().into();
        }
        health
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stats(success: u64, error: u64) -> Stats {
        Stats {
            start_time_ms: 0,
            uptime: Duration::from_secs(7230),
            request_count: success + error,
            success_count: success,
            error_count: error,
            tool_executions: vec![("species_search".into(), 45), ("species_get".into(), 32)],
            refused_logins: 0,
        }
    }

    #[test]
    fn the_report_has_the_form_that_operators_know() {
        assert_eq!(
            stats(120, 2).report(),
            json!({
                "uptime": "120 minutes",
                "requests": {"total": 122, "successful": 120, "failed": 2, "successRate": "98.36%"},
                "topTools": [{"name": "species_search", "count": 45}, {"name": "species_get", "count": 32}],
            })
        );
    }

    #[test]
    fn refused_logins_are_counted_and_reported() {
        let statistics = Statistics::default();
        let refused = crate::events::LoginRefused {
            reason: "expired",
            endpoint: None,
            address: None,
            detail: None,
            is_one_of_many: true,
        };
        statistics.record(&Event::LoginRefused(refused));
        let stats = statistics.snapshot();
        assert_eq!((stats.refused_logins, stats.request_count), (1, 0));
        assert_eq!(stats.report()["refusedLogins"], 1);
    }

    #[test]
    fn health_follows_rate_and_breaker() {
        use BreakerState::*;
        use Status::*;
        let t = Thresholds::default();
        for (success, error, breaker, status, warn) in [
            (0, 0, None, Healthy, false),
            (100, 0, Some(Closed), Healthy, false),
            (91, 9, Some(Closed), Healthy, true),
            (90, 10, None, Degraded, true),
            (50, 50, None, Degraded, true),
            (49, 51, None, Unhealthy, true),
            (100, 0, Some(HalfOpen), Degraded, false),
            (100, 0, Some(Open), Unhealthy, false),
            (10, 90, Some(HalfOpen), Unhealthy, true),
        ] {
            let health = Health::judge(stats(success, error), breaker, &t);
            assert_eq!((health.status, health.warn), (status, warn), "{success}/{error} {breaker:?}");
        }
    }
}
