//! `/api/logs`: the latest log lines, and those to come; `/api/log/level`: which lines there are.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use futures_util::FutureExt;
use serde_json::{Value, json};
use tidegate::logging::{self, Followed, Following, LogLine};
use tidegate_protocol::Object;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tracing::Level;

use super::super::logs::configured_level;
use super::asked::{self, Asked, Refusal};
use super::routes::Answering;
use super::stream::{self, Source};
use super::{Admin, Detail};

/// How many lines are given if nobody says so, and at most.
const USUAL: u64 = 100;
pub(super) const MOST: u64 = 10_000;
/// How many may follow at once.
const MOST_FOLLOWERS: usize = 16;
/// How many lines go out together.
const TOGETHER: usize = 64;
/// How long a stream waits before it sends more: sending may be something to log, which would never end.
const PAUSE: Duration = Duration::from_millis(50);

/// The levels, from few lines to many.
pub(super) const LEVELS: [&str; 5] = ["error", "warn", "info", "debug", "trace"];

/// Places for those who follow: for the operator, and for others, who cannot take those.
pub(super) struct Places {
    operator: Arc<Semaphore>,
    others: Arc<Semaphore>,
}

impl Places {
    pub(super) fn new() -> Places {
        let places = || Arc::new(Semaphore::new(MOST_FOLLOWERS));
        Places { operator: places(), others: places() }
    }

    fn take(&self, is_operator: bool) -> Option<OwnedSemaphorePermit> {
        let places = if is_operator { &self.operator } else { &self.others };
        places.clone().try_acquire_owned().ok()
    }
}

/// Which lines somebody wants.
struct Wanted {
    level: Option<Level>,
    server: Option<String>,
    id: Option<String>,
}

impl Wanted {
    fn of(asked: &Asked) -> Wanted {
        let own = |name: &str| asked.text(name).map(str::to_owned);
        let level = asked.text("level").and_then(|level| level.parse().ok());
        Wanted { level, server: own("server"), id: own("id") }
    }

    fn has(&self, line: &LogLine) -> bool {
        let says = |name: &str, wanted: &Option<String>| match wanted {
            None => true,
            Some(wanted) => Object::of(&line.json)
                .and_then(|line| line.str(name).map(|said| said == *wanted))
                .unwrap_or(false),
        };
        // A level is the greater, the more lines it lets through.
        self.level.is_none_or(|level| line.level <= level)
            && says("server", &self.server)
            && says("correlationId", &self.id)
    }
}

/// A line as it is sent: the line of the log, and its number.
fn text(line: &LogLine) -> String {
    let members = line.json.as_str().strip_prefix('{').unwrap_or("}");
    let comma = if members.starts_with('}') { "" } else { "," };
    format!("{{\"number\":{}{comma}{members}", line.number)
}

pub(super) fn list(_: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        let wanted = Wanted::of(&asked);
        let limit = asked.number("limit").unwrap_or(USUAL) as usize;
        let after = asked.number("after");
        // Lines become JSON for it, which takes a while if there are many.
        let found = tokio::task::spawn_blocking(move || {
            let mut lines = logging::recent(after, MOST as usize);
            let last = lines.last().map(|line| line.number);
            lines.retain(|line| wanted.has(line));
            // What comes after a line comes in its order; without one, the latest are wanted.
            let is_cut = lines.len() > limit;
            match after {
                Some(_) => lines.truncate(limit),
                None => drop(lines.drain(..lines.len().saturating_sub(limit))),
            }
            let next = if is_cut { lines.last().map(|line| line.number) } else { last };
            let texts: Vec<String> = lines.iter().map(text).collect();
            (texts, next.or(after))
        });
        let (lines, next) = found.await.map_err(|_| Refusal::new(503, "the lines cannot be read"))?;
        let next = next.map_or("null".to_owned(), |next| next.to_string());
        let body = format!("{{\"lines\":[{}],\"next\":{next}}}\n", lines.join(","));
        let mut response = asked::json(200, &Value::Null);
        *response.body_mut() = body.into();
        Ok(response)
    })
}

pub(super) fn follow(admin: Admin, asked: Asked) -> Answering {
    Box::pin(async move {
        let Some(place) = admin.0.log_places.take(asked.is_operator) else {
            return Err(Refusal::new(503, "too many follow the log: one of them has to end first"));
        };
        // Browsers say after which event they come back.
        let seen =
            asked.request.headers().get("last-event-id").and_then(|seen| seen.to_str().ok()?.parse().ok());
        let following = logging::follow(asked.number("after").or(seen));
        let lines = Lines { following, wanted: Wanted::of(&asked), is_first: true, _place: place };
        Ok(stream::answer(lines, asked.still, admin.0.ending.clone()))
    })
}

/// The lines to come that somebody wants.
struct Lines {
    following: Following,
    wanted: Wanted,
    is_first: bool,
    _place: OwnedSemaphorePermit,
}

impl Lines {
    fn sent(&self, followed: &Followed) -> Option<Bytes> {
        match followed {
            Followed::Line(line) if self.wanted.has(line) => {
                let mut event = format!("id: {}\n", line.number).into_bytes();
                event.extend_from_slice(&stream::event("log", &text(line)));
                Some(event.into())
            }
            Followed::Missed(count) => Some(stream::lost(*count)),
            _ => None,
        }
    }
}

impl Source for Lines {
    async fn next(&mut self) -> Bytes {
        if !std::mem::replace(&mut self.is_first, false) {
            tokio::time::sleep(PAUSE).await;
        }
        let mut out = loop {
            let followed = self.following.next().await;
            if let Some(bytes) = self.sent(&followed) {
                break bytes.to_vec();
            }
        };
        for _ in 1..TOGETHER {
            let Some(followed) = self.following.next().now_or_never() else { break };
            out.extend_from_slice(&self.sent(&followed).unwrap_or_default());
        }
        out.into()
    }
}

pub(super) fn level(_: Admin, _: Asked) -> Answering {
    Box::pin(async move { Ok(asked::json(200, &levels())) })
}

fn levels() -> Value {
    json!({"level": logging::filter(), "configured": configured_level()})
}

pub(super) fn set_level(_: Admin, mut asked: Asked) -> Answering {
    Box::pin(async move {
        let body = asked.body().await?;
        let level = match &body["level"] {
            Value::String(level) => level.clone(),
            // As it was before anybody asked for something else.
            Value::Null if body.get("level").is_some() => configured_level(),
            _ => {
                return Err(Refusal::bad(
                    "the body must be {\"level\": \"…\"}, such as {\"level\": \"info,tidegate_edge=debug\"}, or {\"level\": null} for what is configured",
                ));
            }
        };
        if let Some(other) =
            body.as_object().into_iter().flatten().map(|(name, _)| name).find(|name| *name != "level")
        {
            return Err(Refusal::bad(format!("unknown member {other:?}: only level is known")));
        }
        let before = logging::filter();
        logging::set_filter(&level).map_err(|error| Refusal::bad(format!("level: {error}")))?;
        let mut said = levels();
        said["before"] = before.into();
        let mut response = asked::json(200, &said);
        response.extensions_mut().insert(Detail(level));
        Ok(response)
    })
}

/// The schemas of what is answered here.
pub(super) fn schemas() -> Value {
    json!({
        "LogLines": {
            "type": "object",
            "required": ["lines", "next"],
            "properties": {
                "lines": {"type": "array", "items": {"$ref": "#/components/schemas/LogLine"}, "description": "The oldest first."},
                "next": {"type": ["integer", "null"], "description": "What to ask for as after, for the lines after these."},
            },
        },
        "LogLine": {
            "type": "object",
            "required": ["number", "level", "message"],
            "properties": {
                "number": {"type": "integer", "description": "Its number in this process."},
                "timestamp": {"type": "string"},
                "level": {"enum": LEVELS},
                "target": {"type": "string"},
                "message": {"type": "string"},
                "correlationId": {"type": "string"},
                "server": {"type": "string"},
            },
        },
        "WantedLevel": {
            "type": "object",
            "required": ["level"],
            "properties": {
                "level": {
                    "type": ["string", "null"],
                    "description": "A level, or a list such as info,tidegate_edge=debug; null for what is configured.",
                },
            },
        },
        "LogLevel": {
            "type": "object",
            "required": ["level", "configured"],
            "properties": {
                "level": {"type": "string", "description": "What is logged now."},
                "configured": {"type": "string", "description": "What is logged from the next start on."},
                "before": {"type": "string", "description": "What was logged before it was changed."},
            },
        },
    })
}
