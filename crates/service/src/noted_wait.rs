//! [`noted`]: a wait that is told of, if there was one.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use pin_project_lite::pin_project;

use crate::events::{self, CallWaited, Event, Kind};
use crate::journal::Stage;

/// Tells [recorders](crate::events) how long `future` was waited for, as a part of the current call. What is there at once was not waited for,
/// and costs nothing.
pub fn noted<F: Future>(stage: Stage, future: F) -> NotedWait<F> {
    NotedWait { inner: future, wait: Wait { stage, since: None } }
}

pin_project! {
    /// The future of [`noted`]. One that is dropped was given up.
    #[derive(Debug)]
    pub struct NotedWait<F> {
        #[pin]
        inner: F,
        wait: Wait,
    }
}

#[derive(Debug)]
struct Wait {
    stage: Stage,
    since: Option<Instant>,
}

impl Wait {
    fn end(&mut self, is_over: bool) {
        if let Some(since) = self.since.take() {
            let waited = CallWaited { stage: self.stage, took: since.elapsed(), is_over };
            events::emit(&Event::CallWaited(waited));
        }
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.end(false);
    }
}

impl<F: Future> Future for NotedWait<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.project();
        match this.inner.poll(cx) {
            Poll::Ready(done) => {
                this.wait.end(true);
                Poll::Ready(done)
            }
            Poll::Pending => {
                if this.wait.since.is_none() && events::is_wanted(Kind::CallWaited) {
                    this.wait.since = Some(Instant::now());
                }
                Poll::Pending
            }
        }
    }
}
