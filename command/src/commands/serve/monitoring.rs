//! [`Monitoring`]: what is measured while the gateway runs (`/metrics`), and how it is (`/health`, `/ready`, `/live`).

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderValue, Request, Response, StatusCode};
use serde_json::{Map, Value, json};
use tidegate::edge::http::Page;
use tidegate_config::Settings;
use tidegate_gateway::{Gateway, Health, ServerStatus};
use tidegate_service::Identity;
use tidegate_service::budget::Budget;
use tidegate_service::events::{self, AlertChanged, Event, Recorder};
use tidegate_service::fair_queue::Priority;
use tidegate_service::layers::BreakerState;
use tidegate_service::stats::{Statistics, Status, Thresholds};
use tidegate_telemetry::{
    Alert, AlertChange, Alerts, Exposition, Metrics, Reading, Seen, Stories, Value as Measured, names,
};

use super::calls_api;
use super::home_page::Audience;

/// From how many calls on their success says something.
const ENOUGH: u64 = 20;

/// What is measured, and how the gateway is.
#[derive(Clone)]
pub(super) struct Monitoring(Arc<Inner>);

struct Inner {
    gateway: Gateway,
    measured: Option<MeasuredCalls>,
    stories: Option<(Arc<Stories>, Arc<dyn Recorder>)>,
    /// What somebody should look at.
    alerts: Mutex<Alerts>,
    /// Where the gateway writes.
    folders: Vec<PathBuf>,
    started: Instant,
    /// When it started, in seconds since 1970.
    since: f64,
    /// How many legacy sessions are open, once that can be asked.
    sessions: OnceLock<Box<dyn Fn() -> usize + Send + Sync>>,
}

/// Counts and times of calls, unless the configuration wants none.
struct MeasuredCalls {
    metrics: Arc<Metrics>,
    counted: Arc<Statistics>,
    recorders: [Arc<dyn Recorder>; 2],
}

impl Monitoring {
    /// Begins to measure.
    pub(super) fn start(settings: &Settings, gateway: &Gateway) -> Monitoring {
        let measured = settings.telemetry.metrics.then(|| {
            let offered = gateway.clone();
            let metrics = Arc::new(Metrics::new(move |tool| offered.offers_tool(tool)));
            let counted = Arc::new(Statistics::default());
            let recorders: [Arc<dyn Recorder>; 2] = [metrics.clone(), counted.clone()];
            recorders.iter().for_each(|recorder| events::add(recorder.clone()));
            MeasuredCalls { metrics, counted, recorders }
        });
        let stories = (settings.telemetry.stories > 0).then(|| {
            let stories = Arc::new(Stories::new(settings.telemetry.stories));
            let recorder: Arc<dyn Recorder> = stories.clone();
            events::add(recorder.clone());
            (stories, recorder)
        });
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let monitoring = Monitoring(Arc::new(Inner {
            gateway: gateway.clone(),
            measured,
            stories,
            alerts: Mutex::default(),
            folders: written_folders(settings),
            started: Instant::now(),
            since,
            sessions: OnceLock::new(),
        }));
        tokio::spawn(watch(Arc::downgrade(&monitoring.0)));
        monitoring
    }

    /// The calls that were counted so far, if they are.
    pub(super) fn counted(&self) -> Option<Arc<Statistics>> {
        self.0.measured.as_ref().map(|measured| measured.counted.clone())
    }

    /// Says how to find out how many legacy sessions are open.
    pub(super) fn set_sessions(&self, sessions: impl Fn() -> usize + Send + Sync + 'static) {
        let _ = self.0.sessions.set(Box::new(sessions));
    }

    /// Measures nothing any more.
    pub(super) fn end(&self) {
        if let Some(measured) = &self.0.measured {
            measured.recorders.iter().for_each(events::remove);
        }
        if let Some((_, recorder)) = &self.0.stories {
            events::remove(recorder);
        }
    }

    /// The pages: the figures for those who may see them, and how it is for everybody, with details for those who may.
    pub(super) fn pages(&self, audience: Audience) -> Vec<Page> {
        let mut pages = self.open_pages(audience).to_vec();
        // They name servers, which is nothing for machines of which nobody knows whose they are.
        if self.0.measured.is_some() && audience != Audience::Remote {
            let (own, gateway) = (self.clone(), self.0.gateway.clone());
            let metrics = Page::answered("/metrics", move |request, _| own.metrics(request));
            pages.push(metrics.only_for(move |identity| gateway.allows_page(identity, "/metrics")));
        }
        if let Some((stories, _)) = &self.0.stories {
            pages.extend(calls_api::page(stories.clone(), self.0.gateway.clone(), audience));
        }
        pages
    }

    /// Those that are open to everybody.
    pub(super) fn open_pages(&self, audience: Audience) -> [Page; 3] {
        let [health, ready] = [self.clone(), self.clone()];
        [
            Page::answered("/health", move |_, identity| health.health(audience, identity)),
            Page::answered("/ready", move |_, _| ready.ready()).alike_for_all(),
            Page::answered("/live", |_, _| answer(StatusCode::OK, &json!({"status": "alive"})))
                .alike_for_all(),
        ]
    }

    fn metrics(&self, request: &Request<Body>) -> Response<Body> {
        let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let form = Exposition::accepted(accept.unwrap_or_default());
        let mut response = Response::new(Body::from(self.read().text(form)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
        response
    }

    /// Everything that is measured, now.
    fn read(&self) -> Reading {
        let Inner { gateway, measured, since, sessions, .. } = &*self.0;
        let mut reading = Reading::default();
        if let Some(measured) = measured {
            measured.metrics.read(&mut reading);
        }
        for server in gateway.status() {
            let of = [(names::SERVER, server.name.as_str())];
            for (instrument, value) in [
                (names::SERVER_UP, u64::from(answers(&server))),
                (names::CIRCUIT, number(server.breaker)),
                (names::SERVER_CALLS, server.in_flight as u64),
                (names::SERVER_TOOLS, server.tools as u64),
            ] {
                reading.add(instrument, &of, Measured::Whole(value));
            }
        }
        let depth = gateway.depth();
        reading.whole(names::CALLS_RUNNING, depth.running as u64);
        for (priority, waiting) in Priority::ALL.into_iter().zip(depth.waiting_by_priority) {
            let of = [(names::PRIORITY, priority.as_str())];
            reading.add(names::CALLS_WAITING, &of, Measured::Whole(waiting as u64));
        }
        // Tenants and users have names, which are no labels.
        let mut waiting: Vec<(&str, u64)> = Vec::new();
        for queue in gateway.queues() {
            let scope = queue.scope.as_str();
            match waiting.iter_mut().find(|(known, _)| *known == scope) {
                Some((_, sum)) => *sum += queue.waiting as u64,
                None => waiting.push((scope, queue.waiting as u64)),
            }
        }
        for (scope, sum) in waiting {
            reading.add(names::LIMIT_WAITING, &[(names::SCOPE, scope)], Measured::Whole(sum));
        }
        if let Some(sessions) = sessions.get() {
            reading.whole(names::SESSIONS, sessions() as u64);
        }
        let budget = Budget::of_process();
        reading.whole(names::BUFFERED, budget.used() as u64);
        reading.whole(names::BUFFERED_LIMIT, budget.limit() as u64);
        reading.add(names::BUILD, &[(names::VERSION, env!("CARGO_PKG_VERSION"))], Measured::Whole(1));
        reading.add(names::START, &[], Measured::Number(*since));
        reading.add_process();
        let raised: Vec<Alert> = self.0.alerts().raised().map(|(alert, _)| alert).collect();
        for alert in Alert::ALL {
            let of = [(names::ALERT_NAME, alert.as_str())];
            reading.add(names::ALERT, &of, Measured::Whole(u64::from(raised.contains(&alert))));
        }
        reading
    }

    /// How the gateway is: `healthy`, `degraded` or `unhealthy`, and why for those who may know.
    fn health(&self, audience: Audience, identity: &Identity) -> Response<Body> {
        let Inner { gateway, measured, started, .. } = &*self.0;
        let servers = gateway.status();
        let recent = measured.as_ref().map_or((0, 0), |measured| measured.metrics.recent());
        let status = judge(&servers, recent);
        let code = match status {
            Status::Unhealthy => StatusCode::SERVICE_UNAVAILABLE,
            Status::Healthy | Status::Degraded => StatusCode::OK,
        };
        let mut health = json!({"status": status.as_str(), "uptime": started.elapsed().as_secs()});
        let may_know = match audience {
            Audience::Local => true,
            Audience::Remote => false,
            Audience::Authenticated => identity.claims.is_some(),
        };
        if may_know && gateway.allows_page(identity, "/health") {
            if let Some(measured) = measured {
                health["stats"] = measured.counted.snapshot().to_json();
                health["recent"] = json!({"succeeded": recent.0, "failed": recent.1});
            }
            let worst = servers.iter().map(|server| server.breaker).max_by_key(|breaker| number(*breaker));
            health["circuitBreaker"] = worst.unwrap_or(BreakerState::Closed).as_str().into();
            let each: Map<String, Value> =
                servers.iter().map(|one| (one.name.clone(), server(one))).collect();
            health["servers"] = each.into();
            let alerts: Map<String, Value> = (self.0.alerts().raised())
                .map(|(alert, message)| (alert.as_str().to_owned(), message.into()))
                .collect();
            health["alerts"] = alerts.into();
        }
        answer(code, &health)
    }

    /// Whether callers get somewhere: every server was tried, and one answers.
    fn ready(&self) -> Response<Body> {
        let servers = self.0.gateway.status();
        let is_starting = servers.iter().any(|server| server.health == Health::Starting);
        let status = match () {
            () if is_starting => "starting",
            () if !servers.is_empty() && !servers.iter().any(answers) => "no server answers",
            () => return answer(StatusCode::OK, &json!({"status": "ready"})),
        };
        let mut response = answer(StatusCode::SERVICE_UNAVAILABLE, &json!({"status": status}));
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
        response
    }
}

impl Inner {
    fn alerts(&self) -> MutexGuard<'_, Alerts> {
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks whether somebody should look at something, and says what has changed.
    fn look(&self) {
        let metrics = self.measured.as_ref().map(|measured| &measured.metrics);
        let budget = Budget::of_process();
        let open = |server: &ServerStatus| server.breaker == BreakerState::Open;
        let seen = Seen {
            calls: metrics.map_or((0, 0), |metrics| metrics.recent()),
            latency: metrics.and_then(|metrics| metrics.latency()),
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

/// How often it is looked whether somebody should look at something.
const LOOK: Duration = Duration::from_secs(10);

async fn watch(monitoring: Weak<Inner>) {
    let mut ticks = tokio::time::interval(LOOK);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(monitoring) = monitoring.upgrade() else { return };
        // Asking about a disk may take a while.
        let _ = tokio::task::spawn_blocking(move || monitoring.look()).await;
    }
}

/// Where the gateway writes: what it keeps, and the audit trail.
fn written_folders(settings: &Settings) -> Vec<PathBuf> {
    let trail = settings.audit.as_ref().and_then(|audit| audit.file.as_ref());
    let trail = trail.and_then(|file| file.path.parent()).map(|folder| match folder.as_os_str().is_empty() {
        true => PathBuf::from("."),
        false => folder.to_owned(),
    });
    settings.state_dir.clone().into_iter().chain(trail).collect()
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

/// Whether a server answers, or would if it were asked.
fn answers(server: &ServerStatus) -> bool {
    matches!(server.health, Health::Ready | Health::Resting)
}

/// The number of a state: the worse, the higher.
fn number(circuit: BreakerState) -> u64 {
    match circuit {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    }
}

/// How a gateway is whose servers are like this, and whose recent calls went well or badly.
fn judge(servers: &[ServerStatus], (well, badly): (u64, u64)) -> Status {
    let is_well = |server: &&ServerStatus| answers(server) && server.breaker == BreakerState::Closed;
    let tried: Vec<&ServerStatus> =
        servers.iter().filter(|server| server.health != Health::Starting).collect();
    let of_servers = match tried.iter().copied().filter(is_well).count() {
        all if all == tried.len() => Status::Healthy,
        0 if !tried.iter().any(|server| server.breaker == BreakerState::HalfOpen) => Status::Unhealthy,
        _ => Status::Degraded,
    };
    let Thresholds { degraded, unhealthy, .. } = Thresholds::default();
    let rate = well as f64 * 100.0 / (well + badly).max(1) as f64;
    let of_calls = match rate {
        _ if well + badly < ENOUGH => Status::Healthy,
        rate if rate < unhealthy => Status::Unhealthy,
        rate if rate <= degraded => Status::Degraded,
        _ => Status::Healthy,
    };
    match (of_servers, of_calls) {
        (Status::Unhealthy, _) | (_, Status::Unhealthy) => Status::Unhealthy,
        (Status::Degraded, _) | (_, Status::Degraded) => Status::Degraded,
        _ => Status::Healthy,
    }
}

/// How a server is.
fn server(server: &ServerStatus) -> Value {
    let mut shown = json!({
        "health": server.health.as_str(), "circuitBreaker": server.breaker.as_str(), "tools": server.tools, "running": server.in_flight,
    });
    if let Health::Down { told, .. } = &server.health {
        shown["why"] = told.as_str().into();
    }
    if let Some(revision) = server.revision {
        shown["revision"] = revision.as_str().into();
    }
    shown
}

pub(super) fn answer(code: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(health: Health, breaker: BreakerState) -> ServerStatus {
        let name = "one".to_owned();
        ServerStatus {
            name,
            health,
            since: Instant::now(),
            revision: None,
            breaker,
            in_flight: 0,
            listed: [0; 4],
            tools: 0,
        }
    }

    fn down() -> Health {
        Health::Down { why: "gone".to_owned(), told: "gone".to_owned() }
    }

    #[test]
    fn servers_and_recent_calls_say_how_it_is() {
        use BreakerState::{Closed, HalfOpen, Open};
        use Status::{Degraded, Healthy, Unhealthy};
        let fine = || one(Health::Ready, Closed);
        for (servers, recent, expected) in [
            (vec![], (0, 0), Healthy),
            (vec![fine(), one(Health::Resting, Closed)], (0, 0), Healthy),
            (vec![one(Health::Starting, Closed)], (0, 0), Healthy),
            (vec![fine(), one(down(), Closed)], (0, 0), Degraded),
            (vec![fine(), one(Health::Ready, Open)], (0, 0), Degraded),
            (vec![one(Health::Ready, HalfOpen)], (0, 0), Degraded),
            (vec![one(Health::Ready, Open)], (100, 0), Unhealthy),
            (vec![one(down(), Closed)], (0, 0), Unhealthy),
            // A few calls say nothing.
            (vec![fine()], (0, 19), Healthy),
            (vec![fine()], (91, 9), Healthy),
            (vec![fine()], (90, 10), Degraded),
            (vec![fine()], (50, 50), Degraded),
            (vec![fine()], (49, 51), Unhealthy),
        ] {
            assert_eq!(judge(&servers, recent), expected, "{servers:?} {recent:?}");
        }
    }
}
