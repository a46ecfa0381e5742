//! [`Run`]: drives one handler until it is done, asks something, times out or is cancelled.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_util::future::BoxFuture;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::Reply;
use tidegate_service::events::{self, Event, HandlerFailed};
use tokio::time::Sleep;
use tokio_util::sync::WaitForCancellationFutureOwned;

use crate::cx::Cx;
use crate::tool::{self, ToolEntry, ToolError, ToolFuture};

/// A handler at work.
pub(crate) enum Work {
    /// A tool, kept apart so that the most frequent call has one future and no wrapper.
    Tool(ToolFuture, Arc<ToolEntry>),
    /// Anything else.
    Other(BoxFuture<'static, Result<Reply, ToolError>>),
}

/// A handler being driven.
///
/// Timer and cancellation are only set up when the handler does not finish at its first poll; most do.
pub(crate) struct Run {
    pub(crate) cx: Cx,
    work: Work,
    timer: Option<Pin<Box<Sleep>>>,
    cancelled: Option<Pin<Box<WaitForCancellationFutureOwned>>>,
}

/// What a poll of the handler led to.
pub(crate) enum Step {
    /// The answer, and whether it counts as a success.
    Done(Reply, bool),
    /// The handler wants to go on in the background.
    Detach,
}

impl Run {
    pub(crate) fn new(cx: Cx, work: Work) -> Run {
        Run { cx, work, timer: None, cancelled: None }
    }

    /// Drives the handler on behalf of the caller.
    pub(crate) fn poll_call(&mut self, poll: &mut Context<'_>) -> Poll<Step> {
        match self.poll_work(poll) {
            Poll::Ready((reply, ok)) => return Poll::Ready(Step::Done(reply, ok)),
            Poll::Pending if self.cx.wants_detach() => return Poll::Ready(Step::Detach),
            Poll::Pending => {}
        }
        let stopped = self.cx.replay().as_mut().and_then(|replay| replay.stop(&self.cx));
        match stopped {
            Some(Reply::Error(error)) => {
                let (reply, ok) = self.failed(error);
                return Poll::Ready(Step::Done(reply, ok));
            }
            Some(reply) => return Poll::Ready(Step::Done(reply, true)),
            None => {}
        }
        let token = &self.cx.call().context.cancel;
        let cancelled = self.cancelled.get_or_insert_with(|| Box::pin(token.clone().cancelled_owned()));
        ready!(cancelled.as_mut().poll(poll));
        // Nobody reads this: a cancelled request gets no response. Returning drops the handler.
        Poll::Ready(Step::Done(
            Reply::Error(Error::new(Symbol::Cancelled, "The request was cancelled")),
            false,
        ))
    }

    /// The answer to a call that fails for a reason outside its handler: of a tool, in the tool's form where the
    /// catalogue says so.
    pub(crate) fn failed(&self, error: Error) -> (Reply, bool) {
        match &self.work {
            Work::Tool(_, tool) => tool::finish(&self.cx, tool, Err(error.into())),
            Work::Other(_) => (Reply::Error(error), false),
        }
    }

    /// Drives the handler and its timer. Registers who is to be woken.
    pub(crate) fn poll_work(&mut self, poll: &mut Context<'_>) -> Poll<(Reply, bool)> {
        match &mut self.work {
            Work::Tool(future, tool) => {
                if let Poll::Ready(outcome) = future.as_mut().poll(poll) {
                    return Poll::Ready(tool::finish(&self.cx, tool, outcome));
                }
                self.cx.runner().register(poll.waker());
                let Some(timeout) = tool.timeout else { return Poll::Pending };
                let timer = self.timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(timeout)));
                while timer.as_mut().poll(poll).is_ready() {
                    // Waiting for a person is not work.
                    if self.cx.task().is_some_and(|task| task.is_waiting()) {
                        timer.as_mut().reset(tokio::time::Instant::now() + timeout);
                        continue;
                    }
                    let secs = timeout.as_secs_f32();
                    let message = format!("{} did not finish within {secs:.1} s and was stopped", tool.name);
                    let error = ToolError::new(Symbol::Timeout, message);
                    return Poll::Ready(tool::finish(&self.cx, tool, Err(error)));
                }
                Poll::Pending
            }
            Work::Other(future) => {
                let Poll::Ready(outcome) = future.as_mut().poll(poll) else {
                    self.cx.runner().register(poll.waker());
                    return Poll::Pending;
                };
                Poll::Ready(match outcome {
                    Ok(reply) => (reply, true),
                    Err(error) => {
                        events::emit(&Event::HandlerFailed(HandlerFailed { error: error.message() }));
                        (Reply::Error(error.into_error()), false)
                    }
                })
            }
        }
    }
}
