//! The figures of a running gateway: what was counted, and what is so when somebody asks (`/metrics`).

use axum::body::Body;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderValue, Request, Response};
use tidegate_config::TelemetryNames;
use tidegate_gateway::LimitLeft;
use tidegate_service::budget::Budget;
use tidegate_service::fair_queue::Priority;
use tidegate_service::usage::{Cache, NetworkTransport};
use tidegate_telemetry::{Alert, Exposition, Reading, Value as Measured, names};

use super::health::{answers, number};
use super::{Inner, Monitoring};

impl Monitoring {
    pub(super) fn metrics(&self, request: &Request<Body>) -> Response<Body> {
        let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let form = Exposition::accepted(accept.unwrap_or_default());
        let mut response = Response::new(Body::from(self.read().text(form)));
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(form.media_type()));
        response
    }

    /// Everything that is measured, now.
    pub(in super::super) fn read(&self) -> Reading {
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
                (names::SERVER_SESSIONS, server.in_use.sessions as u64),
                (names::SERVER_PROCESSES, server.in_use.processes as u64),
                (names::SERVER_PARKED, server.in_use.parked_calls as u64),
                (names::SERVER_SUBSCRIPTIONS, server.in_use.subscriptions as u64),
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
        let limits = gateway.limits_left();
        let has_places = limits.iter().filter(|left| left.places.is_some());
        let mut waiting: Vec<(&str, u64)> = has_places.map(|left| (left.scope.as_str(), 0)).collect();
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
        if let Some(spans) = self.0.spans.get() {
            reading.whole(names::SPANS_DROPPED, spans.dropped());
        }
        for LimitLeft { scope, rate, places } in limits {
            let of = [(names::SCOPE, scope.as_str())];
            for (instrument, left) in [(names::RATE_LEFT, rate), (names::PLACES_LEFT, places)] {
                left.into_iter().for_each(|left| reading.add(instrument, &of, Measured::Number(left)));
            }
        }
        for cache in Cache::ALL {
            let of = [(names::CACHE, cache.as_str())];
            reading.add(names::CACHE_HITS, &of, Measured::Whole(cache.hits()));
            reading.add(names::CACHE_MISSES, &of, Measured::Whole(cache.misses()));
        }
        for transport in NetworkTransport::ALL {
            let of = [(names::TRANSPORT, transport.as_str())];
            reading.add(names::RECEIVED, &of, Measured::Whole(transport.received()));
            reading.add(names::SENT, &of, Measured::Whole(transport.sent()));
        }
        reading.whole(names::SUBSCRIPTIONS, gateway.subscriptions() as u64);
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
        match self.0.names {
            TelemetryNames::OpenTelemetry => reading,
            TelemetryNames::Percolate => reading.in_names_of_percolate(),
        }
    }
}
