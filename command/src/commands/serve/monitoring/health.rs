//! How a gateway is (`/health`), and whether callers get somewhere (`/ready`).

use axum::body::Body;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, Response, StatusCode};
use serde_json::{Map, Value, json};
use tidegate_config::HealthSettings;
use tidegate_gateway::{Health, ServerStatus};
use tidegate_service::Identity;
use tidegate_service::layers::BreakerState;
use tidegate_service::stats::Status;

use super::super::home_page::Audience;
use super::{Inner, Monitoring, answer};

impl Monitoring {
    /// How the gateway is, in a word.
    pub(in crate::commands::serve) fn status(&self) -> Status {
        let Inner { gateway, measured, health, .. } = &*self.0;
        let recent = measured.as_ref().map_or((0, 0), |measured| measured.metrics.recent());
        judge(&gateway.status(), recent, health)
    }

    /// How the gateway is: `healthy`, `degraded` or `unhealthy`, and why for those who may know.
    pub(super) fn health(&self, audience: Audience, identity: &Identity) -> Response<Body> {
        let Inner { gateway, measured, started, health: thresholds, .. } = &*self.0;
        let servers = gateway.status();
        let recent = measured.as_ref().map_or((0, 0), |measured| measured.metrics.recent());
        let status = judge(&servers, recent, thresholds);
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
    pub(super) fn ready(&self) -> Response<Body> {
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

/// Whether a server answers, or would if it were asked.
pub(super) fn answers(server: &ServerStatus) -> bool {
    matches!(server.health, Health::Ready | Health::Resting)
}

/// The number of a state: the worse, the higher.
pub(super) fn number(circuit: BreakerState) -> u64 {
    match circuit {
        BreakerState::Closed => 0,
        BreakerState::HalfOpen => 1,
        BreakerState::Open => 2,
    }
}

/// How a gateway is whose servers are like this, and whose recent calls went well or badly.
fn judge(servers: &[ServerStatus], (well, badly): (u64, u64), health: &HealthSettings) -> Status {
    let is_well = |server: &&ServerStatus| answers(server) && server.breaker == BreakerState::Closed;
    let tried: Vec<&ServerStatus> =
        servers.iter().filter(|server| server.health != Health::Starting).collect();
    let of_servers = match tried.iter().copied().filter(is_well).count() {
        all if all == tried.len() => Status::Healthy,
        0 if !tried.iter().any(|server| server.breaker == BreakerState::HalfOpen) => Status::Unhealthy,
        _ => Status::Degraded,
    };
    let rate = well as f64 * 100.0 / (well + badly).max(1) as f64;
    let of_calls = match rate {
        _ if well + badly < health.min_calls.max(1) => Status::Healthy,
        rate if rate < health.unhealthy => Status::Unhealthy,
        rate if rate <= health.degraded => Status::Degraded,
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

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use tidegate_gateway::InUse;

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
            in_use: InUse::default(),
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
            let usual = HealthSettings::default();
            assert_eq!(judge(&servers, recent, &usual), expected, "{servers:?} {recent:?}");
        }
        let strict =
            HealthSettings { degraded: 99.0, unhealthy: 98.0, min_calls: 1, ..HealthSettings::default() };
        for (recent, expected) in [
            ((0, 0), Healthy),
            ((1, 0), Healthy),
            ((99, 1), Degraded),
            ((98, 2), Degraded),
            ((97, 3), Unhealthy),
        ] {
            assert_eq!(judge(&[fine()], recent, &strict), expected, "{recent:?}");
        }
    }
}
