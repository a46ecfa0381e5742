//! Tells [recorders](crate::events) how each call to a server ended, and gives it a span of its own.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use pin_project_lite::pin_project;
use tidegate_protocol::{Method, Params};
use tower::{Layer, Service};

use crate::call::Call;
use crate::door::Door;
use crate::events::{self, Event, Kind, Outcome, ServerCallEnded, ServerPlace};
use crate::reply::Reply;
use crate::trace::TraceContext;

/// Adds [`ServerCalls`].
#[derive(Debug, Clone)]
pub struct ServerCallsLayer {
    server: Arc<Server>,
}

#[derive(Debug)]
struct Server {
    name: Arc<str>,
    place: ServerPlace,
}

impl ServerCallsLayer {
    /// For the calls to this server.
    pub fn new(name: Arc<str>, place: ServerPlace) -> ServerCallsLayer {
        ServerCallsLayer { server: Arc::new(Server { name, place }) }
    }
}

impl<S> Layer<S> for ServerCallsLayer {
    type Service = ServerCalls<S>;

    fn layer(&self, inner: S) -> ServerCalls<S> {
        ServerCalls { inner, server: self.server.clone() }
    }
}

/// Emits [`ServerCallEnded`] for each call, and makes a span of it for whoever records them: the server gets that as its parent.
#[derive(Debug, Clone)]
pub struct ServerCalls<S> {
    inner: S,
    server: Arc<Server>,
}

impl<S: Door> Service<Call> for ServerCalls<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = ServerCallsFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let is_ours = |trace: &TraceContext| trace.is_sampled && crate::trace::is_on();
        let span = call.context.trace.filter(is_ours).map(|parent| {
            let own = parent.child();
            call.context.trace = Some(own);
            (own, parent.span)
        });
        let observed = events::is_wanted(Kind::ServerCallEnded).then(|| Observed {
            started: Instant::now(),
            server: self.server.clone(),
            method: call.method.clone(),
            params: call.params.clone(),
            span,
        });
        ServerCallsFuture { inner: self.inner.call(call), observed }
    }
}

struct Observed {
    started: Instant,
    server: Arc<Server>,
    method: Method,
    params: Params,
    span: Option<(TraceContext, [u8; 8])>,
}

impl Observed {
    fn end(self, reply: Option<&Reply>) {
        let ended = Instant::now();
        events::emit(&Event::ServerCallEnded(ServerCallEnded {
            server: &self.server.name,
            place: &self.server.place,
            method: &self.method,
            params: &self.params,
            outcome: reply.map_or(Outcome::Cancelled, |reply| Outcome::of(&self.method, reply)),
            duration: ended.saturating_duration_since(self.started),
            ended,
            span: self.span,
            reply,
        }));
    }
}

pin_project! {
    /// The future of [`ServerCalls`]. One that is dropped before it is done was given up.
    pub struct ServerCallsFuture<F> {
        #[pin]
        inner: F,
        observed: Option<Observed>,
    }

    impl<F> PinnedDrop for ServerCallsFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            if let Some(observed) = this.project().observed.take() {
                observed.end(None);
            }
        }
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for ServerCallsFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = self.project();
        let Ok(reply) = ready!(this.inner.poll(cx));
        if let Some(observed) = this.observed.take() {
            observed.end(Some(&reply));
        }
        Poll::Ready(Ok(reply))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tidegate_protocol::{Error, Json, Limits, Symbol};

    use super::*;
    use crate::events::Recorder;
    use crate::layers::EventsLayer;
    use crate::trace;
    use crate::{Context as CallContext, Current};

    /// The spans of one trace: what they are, their own id and that of their parent, in the order in which they ended.
    struct Spans([u8; 16], Mutex<Vec<Named>>);

    type Named = (String, [u8; 8], Option<[u8; 8]>);

    impl Recorder for Spans {
        fn wants(&self, kind: Kind) -> bool {
            matches!(kind, Kind::CallEnded | Kind::ServerCallEnded | Kind::SpanEnded)
        }

        fn record(&self, event: &Event<'_>) {
            let (what, context, parent) = match event {
                Event::CallEnded(call) => (call.method.as_str().to_owned(), call.trace, call.parent),
                Event::ServerCallEnded(call) => {
                    let what = format!("{} {:?} {:?}", call.server, call.name(), call.error());
                    (what, call.span.map(|(own, _)| own), call.span.map(|(_, parent)| parent))
                }
                Event::SpanEnded(span) => (span.name.to_owned(), Some(span.context), Some(span.parent)),
                _ => return,
            };
            if let Some(context) = context.filter(|context| context.trace == self.0) {
                self.1.lock().unwrap().push((what, context.span, parent));
            }
        }
    }

    fn call(method: Method, params: &serde_json::Value) -> Call {
        let params = Params::parse(&Json::of(params).unwrap(), &Limits::default()).unwrap();
        Call::new(method, params, CallContext::local())
    }

    #[tokio::test]
    async fn spans_are_parts_of_each_other_and_of_the_trace_of_the_caller() {
        trace::take_part(0.0);
        let caller = TraceContext::parse("00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01").unwrap();
        let spans = Arc::new(Spans(caller.trace, Mutex::default()));
        let recorder: Arc<dyn Recorder> = spans.clone();
        events::add(recorder.clone());
        // A server that tells under which span it was called.
        let answer = |call: Call| async move {
            let told = call.context.trace.map(|span| span.traceparent().as_str().to_owned());
            assert_eq!(told.is_some(), Current::look(Current::trace).flatten().is_some());
            Ok::<_, Infallible>(Reply::Error(Error::new(Symbol::Timeout, told.unwrap_or_default())))
        };
        let server = ServerCallsLayer::new("tide".into(), ServerPlace::Here).layer(tower::service_fn(answer));
        let nested = EventsLayer.layer(server.clone());
        let outer = move |call: Call| {
            let (mut server, mut nested) = (server.clone(), nested.clone());
            async move {
                let run = async {
                    // A call that is part of this one, with a context of its own.
                    let part = self::call(Method::PromptsGet, &serde_json::json!({"name": "inner"}));
                    nested.call(part).await.unwrap();
                };
                trace::span("agent.run", Vec::new, run).await;
                server.call(call).await
            }
        };
        let mut outer_call = call(Method::ToolsCall, &serde_json::json!({"name": "outer"}));
        outer_call.context.trace = Some(caller);
        let reply = EventsLayer.layer(tower::service_fn(outer)).call(outer_call).await.unwrap();
        events::remove(&recorder);
        trace::take_no_part();

        let spans = spans.1.lock().unwrap();
        let found = |what: &str| {
            let named = spans.iter().filter(|(name, ..)| name == what);
            let all: Vec<_> = named.map(|(_, span, parent)| (*span, *parent)).collect();
            assert_eq!(all.len(), 1, "{what}: {spans:?}");
            all[0]
        };
        let tool = found("tools/call");
        let run = found("agent.run");
        let prompt = found("prompts/get");
        assert_eq!(tool.1, Some(caller.span));
        assert_eq!(run.1, Some(tool.0));
        assert_eq!(prompt.1, Some(run.0));
        assert_eq!(found("tide Some(\"inner\") Some(\"TIMEOUT_ERROR\")").1, Some(prompt.0));
        let server = found("tide Some(\"outer\") Some(\"TIMEOUT_ERROR\")");
        assert_eq!(server.1, Some(tool.0));
        let Reply::Error(told) = reply else { panic!("{reply:?}") };
        let told = TraceContext::parse(told.message()).unwrap();
        assert_eq!((told.trace, told.span), (caller.trace, server.0), "the server goes on from this span");
    }
}
