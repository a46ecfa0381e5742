//! [`Monitoring`]: what is measured while the gateway runs (`/metrics`), and how it is (`/health`, `/ready`, `/live`). It is put together here;
//! `figures` has what is read, `health` what that means, and `watch` tells when somebody should look.

mod figures;
mod health;
mod watch;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use axum::body::Body;
use axum::http::header::CONTENT_TYPE;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::{Value, json};
use tidegate::edge::http::Page;
use tidegate_config::{HealthSettings, Settings, TelemetryNames};
use tidegate_gateway::Gateway;
use tidegate_service::events::{self, Recorder};
use tidegate_service::stats::Statistics;
use tidegate_telemetry::{Alerts, Metrics, SpanBuffer, Stories};

use super::home_page::Audience;
use super::story_keeper::StoryKeeper;
use watch::{thresholds, watch, written_folders};

/// What is measured, and how the gateway is.
#[derive(Clone)]
pub(super) struct Monitoring(Arc<Inner>);

struct Inner {
    gateway: Gateway,
    measured: Option<MeasuredCalls>,
    stories: Option<StoryKeeper>,
    /// By which names what is measured goes out.
    names: TelemetryNames,
    /// How well things must go.
    health: HealthSettings,
    /// What somebody should look at.
    alerts: Mutex<Alerts>,
    /// Where the gateway writes.
    folders: Vec<PathBuf>,
    started: Instant,
    /// When it started, in seconds since 1970.
    since: f64,
    /// How many legacy sessions are open, once that can be asked.
    sessions: OnceLock<Box<dyn Fn() -> usize + Send + Sync>>,
    /// Spans that wait to be sent, if any are.
    spans: OnceLock<Arc<SpanBuffer>>,
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
        let health = settings.telemetry.health;
        let measured = settings.telemetry.metrics.then(|| {
            let offered = gateway.clone();
            let metrics = Arc::new(Metrics::new(move |tool| offered.offers_tool(tool), health.window));
            let counted = Arc::new(Statistics::default());
            let recorders: [Arc<dyn Recorder>; 2] = [metrics.clone(), counted.clone()];
            recorders.iter().for_each(|recorder| events::add(recorder.clone()));
            MeasuredCalls { metrics, counted, recorders }
        });
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        let monitoring = Monitoring(Arc::new(Inner {
            gateway: gateway.clone(),
            measured,
            stories: StoryKeeper::start(&settings.telemetry.stories),
            names: settings.telemetry.names,
            health,
            alerts: Mutex::new(Alerts::new(thresholds(&health))),
            folders: written_folders(settings),
            started: Instant::now(),
            since,
            sessions: OnceLock::new(),
            spans: OnceLock::new(),
        }));
        tokio::spawn(watch(Arc::downgrade(&monitoring.0), health.every));
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

    /// Whether what callers send and get is kept.
    pub(super) fn has_bodies(&self) -> bool {
        self.0.stories.as_ref().is_some_and(StoryKeeper::has_bodies)
    }

    /// Says where spans wait to be sent.
    pub(super) fn set_spans(&self, spans: Arc<SpanBuffer>) {
        let _ = self.0.spans.set(spans);
    }

    /// Measures nothing any more.
    pub(super) fn end(&self) {
        if let Some(measured) = &self.0.measured {
            measured.recorders.iter().for_each(events::remove);
        }
        self.0.stories.iter().for_each(StoryKeeper::end);
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
        pages
    }

    /// The stories of the latest calls, if they are kept.
    pub(super) fn stories(&self) -> Option<Arc<Stories>> {
        self.0.stories.as_ref().map(|keeper| keeper.stories().clone())
    }

    /// How many legacy sessions are open, if there can be any.
    pub(super) fn sessions(&self) -> Option<usize> {
        self.0.sessions.get().map(|sessions| sessions())
    }

    /// What somebody should look at: its name, and a sentence.
    pub(super) fn alerts(&self) -> Vec<(&'static str, String)> {
        let alerts = self.0.alerts();
        alerts.raised().map(|(alert, message)| (alert.as_str(), message.to_owned())).collect()
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
}

impl Inner {
    fn alerts(&self) -> MutexGuard<'_, Alerts> {
        self.alerts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(super) fn answer(code: StatusCode, body: &Value) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{body}\n")));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
