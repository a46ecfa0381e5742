//! [`Stories`]: what happened to each of the latest calls, for whoever asks about one.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexMap;
use tidegate_protocol::json::ObjectWriter;
use tidegate_protocol::{Json, Method, Revision};
use tidegate_service::events::{CallEnded, Event, Kind, Outcome, Recorder};
use tidegate_service::secrets::mask;
use tidegate_service::{CorrelationId, Current, Decision, Principal, epoch_ms, rfc3339_ms};

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

/// What is remembered of a call. It becomes text only when somebody asks: few are asked about.
struct Story {
    id: CorrelationId,
    ended_ms: u64,
    method: Method,
    name: Option<Box<str>>,
    endpoint: Option<Box<str>>,
    principal: Principal,
    client: Option<Box<str>>,
    revision: Revision,
    decision: Option<Decision>,
    server: Option<Box<str>>,
    server_revision: Option<Revision>,
    outcome: Outcome,
    error: Option<Cow<'static, str>>,
    message: Option<Box<str>>,
    limit: Option<Json>,
    duration: Duration,
    events: Vec<Json>,
}

impl Story {
    fn of(call: &CallEnded<'_>, events: Vec<Json>) -> Story {
        Story {
            id: call.correlation,
            ended_ms: epoch_ms(),
            method: call.method.clone(),
            name: call.name().as_deref().map(cut),
            endpoint: call.endpoint.map(cut),
            principal: call.principal.clone(),
            client: call.client().as_deref().map(cut),
            revision: call.revision,
            decision: call.decision().cloned(),
            server: call.server.map(cut),
            server_revision: call.server_revision(),
            outcome: call.outcome,
            error: call.error(),
            message: call.message().map(cut),
            // In the gateway's own words, unless a server has put something there. A copy, so that nothing larger is kept for it.
            limit: call
                .limit()
                .filter(|limit| limit.len() <= LONGEST)
                .map(|limit| Json::trusted(limit.as_str().to_owned())),
            duration: call.duration,
            events,
        }
    }

    fn tool(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.method == Method::ToolsCall)
    }

    fn has_failed(&self) -> bool {
        matches!(self.outcome, Outcome::Failed(_) | Outcome::ToolError)
    }

    /// How many bytes it takes, those of the principal included as if nobody else had it.
    fn size(&self) -> usize {
        let Story { name, endpoint, client, server, message, .. } = self;
        let texts = [name, endpoint, client, server, message].into_iter().flatten().map(|text| text.len());
        let Principal { issuer, subject, tenant } = &self.principal;
        let of_principal = [issuer, subject, tenant].into_iter().flatten().map(|text| text.len());
        let json = self.events.iter().chain(&self.limit).map(|json| json.len() + size_of::<Json>());
        size_of::<Story>() + self.method.as_str().len() + texts.chain(of_principal).chain(json).sum::<usize>()
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
                && (!wanted.failed || story.has_failed())
                && wanted.tool.is_none_or(|tool| story.tool() == Some(tool))
        };
        kept.stories.iter().rev().filter(is_wanted).take(most).map(told).collect()
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
        let mut kept = self.lock();
        let events = if kept.open.is_empty() { None } else { kept.open.swap_remove(&call.correlation) };
        let story = Story::of(call, events.unwrap_or_default());
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
fn told(story: &Story) -> Json {
    let mut out = ObjectWriter::new();
    let optional = |out: &mut ObjectWriter, name: &str, value: Option<&str>| {
        if let Some(value) = value {
            out.str(name, &mask(value));
        }
    };
    out.str("id", story.id.as_str()).str("time", &rfc3339_ms(story.ended_ms));
    out.str("method", &mask(&cut(story.method.as_str())));
    let title = if story.method == Method::ToolsCall { "tool" } else { "name" };
    optional(&mut out, title, story.name.as_deref());
    optional(&mut out, "endpoint", story.endpoint.as_deref());
    optional(&mut out, "issuer", story.principal.issuer.as_deref());
    optional(&mut out, "subject", story.principal.subject.as_deref());
    optional(&mut out, "tenant", story.principal.tenant.as_deref());
    optional(&mut out, "client", story.client.as_deref());
    out.str("revision", story.revision.as_str());
    if let Some(decision) = &story.decision {
        out.str("decision", decision.as_str());
        optional(&mut out, "rule", Some(&decision.rule));
        if let Some(line) = decision.line {
            out.value("line", &line);
        }
    }
    optional(&mut out, "server", story.server.as_deref());
    if let Some(revision) = story.server_revision {
        out.str("serverRevision", revision.as_str());
        // What the caller and the server say is not the same language.
        out.value("translated", &(revision != story.revision));
    }
    out.str("outcome", story.outcome.as_str());
    optional(&mut out, "error", story.error.as_deref());
    optional(&mut out, "message", story.message.as_deref());
    if let Some(limit) = &story.limit {
        out.json("limit", limit);
    }
    out.value("durationMs", &(story.duration.as_micros() as f64 / 1e3));
    if !story.events.is_empty() {
        out.with("events", |out| {
            for (at, event) in story.events.iter().enumerate() {
                out.push(if at == 0 { b'[' } else { b',' });
                out.extend_from_slice(event.as_str().as_bytes());
            }
            out.push(b']');
        });
    }
    out.finish()
}

/// A text of others: nobody reads on forever.
fn cut(text: &str) -> Box<str> {
    match text.len() > LONGEST {
        true => text.chars().take(LONGEST).collect::<String>().into(),
        false => text.into(),
    }
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
                out.str("error", it.symbol.as_str()).str("why", &mask(&cut(it.detail)));
            }),
            Event::CallTimedOut(it) => {
                self.note("timed out", |out| _ = out.str("why", &mask(&cut(&it.error.to_string()))))
            }
            Event::CallRetried(it) => self.note("is made again", |out| {
                out.value("attempt", &it.attempt).value("afterMs", &(it.delay.as_millis() as u64));
                out.str("why", &mask(&cut(it.reason)));
            }),
            Event::ResultTooLarge(it) => self.note("result is too large", |out| {
                out.value("bytes", &it.size).value("limit", &it.limit);
            }),
            Event::HandlerPanicked(it) => {
                self.note("panicked", |out| _ = out.str("why", &mask(&cut(it.message))))
            }
            Event::ToolFailed(it) => {
                self.note("tool failed", |out| _ = out.str("why", &mask(&cut(it.error))))
            }
            Event::HandlerFailed(it) => self.note("failed", |out| _ = out.str("why", &mask(&cut(it.error)))),
            Event::CircuitChanged(it) => self.note("circuit breaker", |out| {
                out.str("server", it.breaker).str("state", it.to.as_str()).str("why", &mask(&cut(it.why)));
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
        let kept = stories.find(&Wanted::default(), usize::MAX).len();
        assert!((100..400).contains(&kept), "{kept}");
        let held = stories.lock();
        assert_eq!(held.stories.iter().map(Story::size).sum::<usize>(), held.bytes);
        drop(held);
        assert!(stories.find(&Wanted { tool: Some("echo"), ..Wanted::default() }, 1).is_empty());
    }
}
