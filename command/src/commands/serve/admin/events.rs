//! `/api/events`: what happens, as it happens, in short.

use std::sync::{Arc, Mutex, PoisonError};

use serde_json::{Value, json};
use tidegate_protocol::text::escaped_json;
use tidegate_service::events::{self, CallEnded, Event, Kind, Recorder};
use tidegate_service::secrets::mask;
use tidegate_service::{epoch_ms, rfc3339_ms};

use super::Admin;
use super::asked::{Asked, Refusal};
use super::feed::{Feed, Follower};
use super::routes::Answering;
use super::stream;

/// How much of a text of others goes into an event, in bytes.
const LONGEST: usize = 500;

/// What happens, for those who follow. While nobody does, it costs nothing.
#[derive(Default)]
pub(super) struct EventFeed {
    feed: Feed,
    /// The recorder, while it is among those of the process.
    recorder: Arc<Mutex<Option<Arc<dyn Recorder>>>>,
}

impl EventFeed {
    /// Follows from now on; `None` if too many do.
    pub(super) fn follow(&self, is_operator: bool) -> Option<Follower> {
        let follower = self.feed.follow(is_operator)?;
        let mut recorder = self.recorder.lock().unwrap_or_else(PoisonError::into_inner);
        match &*recorder {
            // Who followed before may have left meanwhile.
            Some(_) => events::refresh(),
            None => {
                let added: Arc<dyn Recorder> = Arc::new(Tell(self.feed.clone()));
                events::add(added.clone());
                *recorder = Some(added);
            }
        }
        Some(follower)
    }
}

impl Drop for EventFeed {
    fn drop(&mut self) {
        if let Some(recorder) = &*self.recorder.lock().unwrap_or_else(PoisonError::into_inner) {
            events::remove(recorder);
        }
    }
}

/// Tells followers what happens.
struct Tell(Feed);

impl Recorder for Tell {
    fn wants(&self, kind: Kind) -> bool {
        let is_told = matches!(
            kind,
            Kind::CallEnded
                | Kind::ServerStateChanged
                | Kind::ServerLeft
                | Kind::CircuitChanged
                | Kind::AlertChanged
                | Kind::PolicyChanged
        );
        is_told && self.0.is_followed()
    }

    fn record(&self, event: &Event<'_>) {
        let Some((name, mut data)) = told(event) else { return };
        data["time"] = rfc3339_ms(epoch_ms()).into();
        self.0.tell(&stream::event(name, &escaped_json(&data.to_string())));
    }
}

/// The name of an event, and what there is to say of it.
fn told(event: &Event<'_>) -> Option<(&'static str, Value)> {
    Some(match event {
        Event::CallEnded(call) => ("call", call_ended(call)),
        Event::ServerStateChanged(it) => (
            "server",
            json!({
                "server": it.server, "state": it.state, "tools": it.tools,
                "revision": it.revision.map(|revision| revision.as_str()), "message": text(it.message),
            }),
        ),
        Event::ServerLeft(it) => {
            let state = if it.is_replaced { "replaced" } else { "left" };
            ("server", json!({"server": it.server, "state": state, "message": text(it.message)}))
        }
        Event::CircuitChanged(it) => (
            "circuit",
            json!({"server": text(it.breaker), "from": it.from.as_str(), "to": it.to.as_str(), "why": text(it.why)}),
        ),
        Event::AlertChanged(it) => {
            ("alert", json!({"alert": it.alert, "raised": it.is_raised, "message": text(it.message)}))
        }
        Event::PolicyChanged(it) => {
            ("policy", json!({"rules": it.rules, "mode": it.mode, "default": it.default}))
        }
        _ => return None,
    })
}

fn call_ended(call: &CallEnded<'_>) -> Value {
    json!({
        "id": call.correlation.to_string(),
        "method": text(call.method.as_str()),
        "name": call.name().map(text),
        "server": call.server,
        "outcome": call.outcome.as_str(),
        "error": call.error(),
        "durationMs": call.duration.as_micros() as f64 / 1000.0,
        "subject": call.principal.subject.as_deref().map(text),
        "tenant": call.principal.tenant.as_deref().map(text),
        "endpoint": call.endpoint,
    })
}

/// Text of others: no secret, and not too much of it.
fn text(foreign: &str) -> String {
    let masked = mask(foreign);
    let end = (0..=LONGEST.min(masked.len())).rev().find(|at| masked.is_char_boundary(*at)).unwrap_or(0);
    masked[..end].to_owned()
}

pub(super) fn follow(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        match admin.0.events.follow(asked.is_operator) {
            Some(follower) => Ok(stream::answer(follower, asked.still, admin.0.ending.clone())),
            None => Err(Refusal::new(503, "too many follow the events: one of them has to end first")),
        }
    })
}

/// The schemas of what is told here.
pub(super) fn schemas() -> Value {
    json!({
        "Event": {
            "type": "object",
            "description": "The data of an event, by its name. server: server, state, tools, revision, message. circuit: server, from, to, why. \
                            alert: alert, raised, message. policy: rules, mode, default. call: id, method, name, server, outcome, error, \
                            durationMs, subject, tenant, endpoint. lost: count.",
            "properties": {"time": {"type": "string", "format": "date-time"}, "server": {"type": ["string", "null"]}},
        },
    })
}
