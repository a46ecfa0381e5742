//! Makes each call the [current](Current) one, so that every log line below carries its correlation id, and tells
//! [recorders](crate::events) how it ended.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tower::{Layer, Service};

use crate::call::Call;
use crate::current::{Current, Working};
use crate::door::Door;
use crate::events::Observing;
use crate::reply::Reply;

/// Adds [`Events`].
#[derive(Debug, Clone, Copy, Default)]
pub struct EventsLayer;

impl<S> Layer<S> for EventsLayer {
    type Service = Events<S>;

    fn layer(&self, inner: S) -> Events<S> {
        Events { inner }
    }
}

/// Makes each call the current one, opens a span around it for whoever wants one, and emits its record when it ends.
#[derive(Debug, Clone)]
pub struct Events<S> {
    inner: S,
}

impl<S: Door> Service<Call> for Events<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = EventsFuture<S::Future>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        let observing = Observing::start(&mut call);
        let current = Current::of(&call, observing.started());
        EventsFuture { inner: current.work(|| self.inner.call(call)), observing }
    }
}

pin_project! {
    /// The future of [`Events`]. One that is dropped before it is done was cancelled.
    pub struct EventsFuture<F> {
        #[pin]
        inner: Working<F>,
        observing: Observing,
    }

    impl<F> PinnedDrop for EventsFuture<F> {
        fn drop(this: Pin<&mut Self>) {
            let mut this = this.project();
            if this.observing.is_open() {
                // What it was doing ends before it does.
                this.inner.as_mut().stop();
                this.inner.enter(|current| this.observing.end(current, None));
            }
        }
    }
}

impl<F: Future<Output = Result<Reply, Infallible>>> Future for EventsFuture<F> {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        let Ok(reply) = ready!(this.inner.as_mut().poll(cx));
        if this.observing.is_open() {
            this.inner.enter(|current| this.observing.end(current, Some(&reply)));
        }
        Poll::Ready(Ok(reply))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use tidegate_protocol::{Error, Json, Limits, Method, Params, Symbol};

    use super::*;
    use crate::Context as CallContext;
    use crate::events::{self, Event, Kind, Outcome, Recorder};

    /// How a call ended, at which server and endpoint.
    type End = (Outcome, Option<String>, Option<String>);

    /// The calls with a certain tool that have ended.
    #[derive(Default)]
    struct Ended(&'static str, Mutex<Vec<End>>);

    impl Recorder for Ended {
        fn wants(&self, kind: Kind) -> bool {
            kind == Kind::CallEnded
        }

        fn record(&self, event: &Event<'_>) {
            if let Event::CallEnded(call) = event
                && call.name() == Some(self.0)
            {
                let [server, endpoint] = [call.server, call.endpoint].map(|name| name.map(str::to_owned));
                self.1.lock().unwrap().push((call.outcome, server, endpoint));
            }
        }
    }

    fn call(tool: &str) -> Call {
        let params = Json::from(serde_json::json!({"name": tool}));
        Call::new(
            Method::ToolsCall,
            Params::parse(&params, &Limits::default()).unwrap(),
            CallContext::local(),
        )
    }

    #[tokio::test]
    async fn each_call_has_one_record_however_it_ends() {
        let ended = Arc::new(Ended("recorded", Mutex::default()));
        let recorder: Arc<dyn Recorder> = ended.clone();
        events::add(recorder.clone());
        let replies = Mutex::new(vec![
            Reply::Error(Error::new(Symbol::Timeout, "late")),
            Reply::Complete(Json::trusted(r#"{"content":[],"isError":true}"#)),
            Reply::Complete(Json::trusted(r#"{"content":[{"type":"text","text":"\"isError\":true"}]}"#)),
        ]);
        let replies = Arc::new(replies);
        let answer = move |_: Call| {
            let replies = replies.clone();
            async move {
                Current::sent_to(&"tide".into());
                tokio::task::yield_now().await;
                let next = replies.lock().unwrap().pop();
                match next {
                    Some(reply) => Ok::<_, Infallible>(reply),
                    None => std::future::pending().await,
                }
            }
        };
        let mut door = EventsLayer.layer(tower::service_fn(answer));
        for _ in 0..3 {
            door.call(call("recorded")).await.unwrap();
        }
        let mut elsewhere = call("recorded");
        elsewhere.context.endpoint = Some("research".into());
        let never = tokio::time::timeout(std::time::Duration::from_millis(1), door.call(elsewhere));
        assert!(never.await.is_err());
        events::remove(&recorder);
        let server = || Some("tide".to_owned());
        assert_eq!(
            *ended.1.lock().unwrap(),
            [
                (Outcome::Done, server(), None),
                (Outcome::ToolError, server(), None),
                (Outcome::Failed(Symbol::Timeout), server(), None),
                (Outcome::Cancelled, server(), Some("research".to_owned())),
            ]
        );
    }
}
