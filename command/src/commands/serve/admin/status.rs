//! `/api/status`: what runs, and how it is; and `/api/calls`.

use std::time::Instant;

use serde_json::{Map, Value, json};
use tidegate_service::secrets::mask;
use tidegate_service::{epoch_ms, rfc3339_ms};

use super::asked::{self, Asked, Refusal};
use super::routes::Answering;
use super::{Admin, servers};
use crate::commands::serve::calls_api;

pub(super) fn get(admin: Admin, _: Asked) -> Answering {
    Box::pin(async move { Ok(asked::json(200, &status(&admin))) })
}

fn status(admin: &Admin) -> Value {
    let inner = &*admin.0;
    let depth = inner.gateway.depth();
    let waiting: usize = depth.waiting_by_priority.iter().sum();
    let alerts: Map<String, Value> = (inner.monitoring.alerts().into_iter())
        .map(|(alert, message)| (alert.to_owned(), mask(&message).into()))
        .collect();
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "pid": std::process::id(),
        "started": rfc3339_ms(inner.since),
        "uptime": inner.started.elapsed().as_secs(),
        "transport": inner.transport.as_str(),
        "urls": inner.urls.get().map(Vec::as_slice).unwrap_or_default(),
        "config": inner.config.get().map(|config| config.display().to_string()),
        "status": inner.monitoring.status().as_str(),
        "calls": {"running": depth.running, "waiting": waiting},
        "sessions": inner.monitoring.sessions(),
        "servers": servers::all(admin),
        "alerts": alerts,
    })
}

/// When something was, by the clock on the wall.
pub(super) fn time_of(instant: Instant) -> String {
    rfc3339_ms(epoch_ms().saturating_sub(instant.elapsed().as_millis() as u64))
}

pub(super) fn calls(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        match admin.0.monitoring.stories() {
            Some(stories) => Ok(calls_api::calls(&stories, &asked.request)),
            None => Err(Refusal::new(404, "no calls are remembered: stories = 0 in [telemetry]")),
        }
    })
}

/// The schemas of what is answered here.
pub(super) fn schemas() -> Value {
    json!({
        "Status": {
            "type": "object",
            "required": ["version", "pid", "started", "uptime", "transport", "urls", "config", "status", "calls", "sessions", "servers", "alerts"],
            "properties": {
                "version": {"type": "string"},
                "pid": {"type": "integer"},
                "started": {"type": "string", "format": "date-time"},
                "uptime": {"type": "integer", "description": "In seconds."},
                "transport": {"enum": ["http", "stdio"]},
                "urls": {"type": "array", "items": {"type": "string"}, "description": "Where clients find the endpoints."},
                "config": {"type": ["string", "null"], "description": "The configuration, if there is one."},
                "status": {"enum": ["healthy", "degraded", "unhealthy"]},
                "calls": {
                    "type": "object",
                    "required": ["running", "waiting"],
                    "properties": {"running": {"type": "integer"}, "waiting": {"type": "integer"}},
                },
                "sessions": {"type": ["integer", "null"], "description": "Legacy sessions that are open; null over stdio."},
                "servers": {"type": "array", "items": {"$ref": "#/components/schemas/Server"}},
                "alerts": {"type": "object", "additionalProperties": {"type": "string"}, "description": "What somebody should look at, by name."},
            },
        },
        "Calls": {
            "type": "object",
            "required": ["calls", "more"],
            "properties": {
                "calls": {"type": "array", "items": {"type": "object", "description": "The story of a call, as tidegate explain --json prints it."}},
                "more": {"type": "integer", "description": "How many more there are."},
            },
        },
    })
}
