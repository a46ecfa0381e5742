//! [`Stories`]: what happened to each of the latest calls, for whoever asks about one.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indexmap::IndexMap;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Method};
use tidegate_service::events::{CallEnded, Event, Kind, Outcome, Recorder};
use tidegate_service::secrets::mask;
use tidegate_service::{CorrelationId, Current, epoch_ms, rfc3339_ms};

/// How many calls that have not ended can have events.
const MOST_OPEN: usize = 1024;
/// How many events of a call are kept: the first ones.
const MOST_EVENTS: usize = 32;
/// How much of a text is kept, in characters.
const LONGEST: usize = 1024;

/// The stories of the latest calls, as long as they have room. Arguments and results are no part of them.
pub struct Stories {
    /// How many bytes they may have.
    room: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    stories: VecDeque<Story>,
    bytes: usize,
    /// What happened to calls that have not ended.
    open: IndexMap<CorrelationId, Vec<Json>>,
}

struct Story {
    id: CorrelationId,
    has_failed: bool,
    tool: Option<Box<str>>,
    text: Json,
}

impl Story {
    fn size(&self) -> usize {
        size_of::<Story>() + self.text.len() + self.tool.as_ref().map_or(0, |tool| tool.len())
    }
}

/// Which stories are wanted.
#[derive(Debug, Clone, Default)]
pub struct Wanted<'a> {
    /// Those with this id: calls of one trace share theirs.
    pub id: Option<&'a str>,
    /// Only calls that failed.
    pub failed: bool,
    /// Only calls of this tool.
    pub tool: Option<&'a str>,
}

impl Stories {
    /// Keeps stories in so many bytes.
    pub fn new(room: usize) -> Stories {
        Stories { room, kept: Mutex::default() }
    }

    /// At most so many of those that are wanted, the latest first: JSON objects.
    pub fn find(&self, wanted: &Wanted<'_>, most: usize) -> Vec<Json> {
        let kept = self.lock();
        let is_wanted = |story: &&Story| {
            wanted.id.is_none_or(|id| story.id.as_str() == id)
                && (!wanted.failed || story.has_failed)
                && wanted.tool.is_none_or(|tool| story.tool.as_deref() == Some(tool))
        };
        kept.stories.iter().rev().filter(is_wanted).take(most).map(|story| story.text.clone()).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Something happened to the call that this thread works on.
    fn note(&self, what: &str, write: impl FnOnce(&mut ObjectWriter)) {
        let Some(id) = Current::look(Current::correlation) else { return };
        let mut event = ObjectWriter::new();
        event.str("what", what).str("time", &rfc3339_ms(epoch_ms()));
        write(&mut event);
        let event = event.finish();
        let mut kept = self.lock();
        if !kept.open.contains_key(&id) && kept.open.len() >= MOST_OPEN {
            // The one that was the first to have any.
            kept.open.shift_remove_index(0);
        }
        let events = kept.open.entry(id).or_default();
        if events.len() < MOST_EVENTS {
            events.push(event);
        }
    }

    fn ended(&self, call: &CallEnded<'_>) {
        let events = {
            let mut kept = self.lock();
            if kept.open.is_empty() { None } else { kept.open.swap_remove(&call.correlation) }
        };
        let name = call.name();
        let is_tool = *call.method == Method::ToolsCall;
        let tool = name.as_deref().filter(|_| is_tool).map(Into::into);
        let text = told(call, name.as_deref(), is_tool, events.as_deref().unwrap_or_default());
        let has_failed = matches!(call.outcome, Outcome::Failed(_) | Outcome::ToolError);
        let story = Story { id: call.correlation, has_failed, tool, text };
        let mut kept = self.lock();
        kept.bytes += story.size();
        kept.stories.push_back(story);
        while kept.bytes > self.room
            && let Some(oldest) = kept.stories.pop_front()
        {
            kept.bytes -= oldest.size();
        }
    }
}

/// The story of a call.
fn told(call: &CallEnded<'_>, name: Option<&str>, is_tool: bool, events: &[Json]) -> Json {
    let mut out = ObjectWriter::new();
    let optional = |out: &mut ObjectWriter, name: &str, value: Option<&str>| {
        if let Some(value) = value {
            out.str(name, &cut(value));
        }
    };
    out.str("id", call.correlation.as_str()).str("time", &rfc3339_ms(epoch_ms()));
    out.str("method", &cut(call.method.as_str()));
    optional(&mut out, if is_tool { "tool" } else { "name" }, name);
    optional(&mut out, "endpoint", call.endpoint);
    optional(&mut out, "issuer", call.principal.issuer.as_deref());
    optional(&mut out, "subject", call.principal.subject.as_deref());
    optional(&mut out, "tenant", call.principal.tenant.as_deref());
    optional(&mut out, "client", call.client().as_deref());
    out.str("revision", call.revision.as_str());
    if let Some(decision) = call.decision() {
        out.str("decision", decision.as_str());
        optional(&mut out, "rule", Some(&decision.rule));
        if let Some(line) = decision.line {
            out.value("line", &line);
        }
    }
    optional(&mut out, "server", call.server);
    if let Some(revision) = call.server_revision() {
        out.str("serverRevision", revision.as_str());
        // What the caller and the server say is not the same language.
        out.value("translated", &(revision != call.revision));
    }
    out.str("outcome", call.outcome.as_str());
    optional(&mut out, "error", call.error().as_deref());
    optional(&mut out, "message", call.message());
    // In the gateway's own words, unless a server has put something there.
    if let Some(limit) = call.limit().filter(|limit| limit.len() <= LONGEST) {
        out.json("limit", &limit);
    }
    out.value("durationMs", &(call.duration.as_micros() as f64 / 1e3));
    if !events.is_empty() {
        out.with("events", |out| {
            for (at, event) in events.iter().enumerate() {
                out.push(if at == 0 { b'[' } else { b',' });
                out.extend_from_slice(event.as_str().as_bytes());
            }
            out.push(b']');
        });
    }
    out.finish()
}

/// A text of others: no secret is shown, and nobody reads on forever.
fn cut(text: &str) -> String {
    mask(text).chars().take(LONGEST).collect()
}

impl Recorder for Stories {
    fn wants(&self, kind: Kind) -> bool {
        matches!(
            kind,
            Kind::CallEnded
                | Kind::CallFailed
                | Kind::CallTimedOut
                | Kind::CallRetried
                | Kind::ResultTooLarge
                | Kind::HandlerPanicked
                | Kind::ToolFailed
                | Kind::HandlerFailed
                | Kind::CircuitChanged
                | Kind::SessionExpired
                | Kind::EraChanged
        )
    }

    fn record(&self, event: &Event<'_>) {
        match event {
            Event::CallEnded(call) => self.ended(call),
            Event::CallFailed(it) => self.note("failed", |out| {
                out.str("error", it.symbol.as_str()).str("why", &cut(it.detail));
            }),
            Event::CallTimedOut(it) => {
                self.note("timed out", |out| _ = out.str("why", &cut(&it.error.to_string())))
            }
            Event::CallRetried(it) => self.note("is made again", |out| {
                out.value("attempt", &it.attempt).value("afterMs", &(it.delay.as_millis() as u64));
                out.str("why", &cut(it.reason));
            }),
            Event::ResultTooLarge(it) => self.note("result is too large", |out| {
                out.value("bytes", &it.size).value("limit", &it.limit);
            }),
            Event::HandlerPanicked(it) => self.note("panicked", |out| _ = out.str("why", &cut(it.message))),
            Event::ToolFailed(it) => self.note("tool failed", |out| _ = out.str("why", &cut(it.error))),
            Event::HandlerFailed(it) => self.note("failed", |out| _ = out.str("why", &cut(it.error))),
            Event::CircuitChanged(it) => self.note("circuit breaker", |out| {
                out.str("server", it.breaker).str("state", it.to.as_str()).str("why", &cut(it.why));
            }),
            Event::SessionExpired(it) => self.note("session expired", |out| _ = out.str("server", it.server)),
            Event::EraChanged(it) => {
                self.note("era is detected again", |out| _ = out.str("server", it.server))
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Arc;

    use tidegate_protocol::{Error, Params, Symbol};
    use tidegate_service::events::{self, CallFailed};
    use tidegate_service::layers::EventsLayer;
    use tidegate_service::{Call, Context, Reply};
    use tower::{Layer, Service};

    use super::*;

    /// Makes calls of tools, and tells of nothing else that happens in this process.
    async fn call(stories: &Arc<Stories>, tool: &str, fails: bool) -> CorrelationId {
        let recorder: Arc<dyn Recorder> = stories.clone();
        let answer = move |_: Call| async move {
            Ok::<_, Infallible>(match fails {
                false => Reply::Complete(Json::empty_object()),
                true => {
                    let detail = "the socket sk-stories-0001 is closed";
                    events::emit(&Event::CallFailed(CallFailed { symbol: Symbol::Unavailable, detail }));
                    Reply::Error(Error::new(Symbol::Unavailable, "Try again later"))
                }
            })
        };
        let params = Json::of(&serde_json::json!({"name": tool, "arguments": {"password": "p"}})).unwrap();
        let params = Params::parse(&params, &Default::default()).unwrap();
        let call = Call::new(Method::ToolsCall, params, Context::local());
        let id = call.context.correlation;
        events::add(recorder.clone());
        EventsLayer.layer(tower::service_fn(answer)).call(call).await.unwrap();
        events::remove(&recorder);
        id
    }

    // One test: recorders hear of everything in their process.
    #[tokio::test]
    async fn stories_are_found_by_id_by_tool_and_by_failure_and_the_oldest_go_first() {
        tidegate_service::secrets::register("sk-stories-0001");
        let stories = Arc::new(Stories::new(100_000));
        let (first, failed) = (call(&stories, "echo", false).await, call(&stories, "break", true).await);
        let find = |wanted: Wanted<'_>| -> Vec<serde_json::Value> {
            stories.find(&wanted, 10).iter().map(|story| story.to().unwrap()).collect()
        };
        let all = find(Wanted::default());
        assert_eq!((all.len(), &all[0]["tool"]), (2, &"break".into()), "the latest first: {all:?}");
        assert_eq!(find(Wanted { id: Some(first.as_str()), ..Wanted::default() }), all[1..]);
        assert_eq!(find(Wanted { tool: Some("echo"), ..Wanted::default() }), all[1..]);
        assert_eq!(find(Wanted { failed: true, ..Wanted::default() }), all[..1]);
        assert_eq!(find(Wanted { id: Some("none"), ..Wanted::default() }), [serde_json::Value::Null; 0]);
        let story = &all[0];
        assert_eq!((&story["id"], &story["outcome"]), (&failed.as_str().into(), &"error".into()));
        assert_eq!(
            (&story["error"], &story["message"]),
            (&"SERVICE_UNAVAILABLE".into(), &"Try again later".into())
        );
        assert_eq!(story["events"][0]["why"], "the socket *** is closed", "{story}");
        assert!(!format!("{all:?}").contains("password"), "arguments are no part of it");

        let long = "x".repeat(200);
        for _ in 0..500 {
            call(&stories, &long, false).await;
        }
        let kept = stories.find(&Wanted::default(), usize::MAX);
        let bytes: usize = kept.iter().map(|story| story.len()).sum();
        assert!(bytes <= 100_000 && kept.len() > 100 && kept.len() < 400, "{} in {bytes}", kept.len());
        assert!(stories.find(&Wanted { tool: Some("echo"), ..Wanted::default() }, 1).is_empty());
    }
}
