//! [`InProcessDoor`]: a service in this process, which has as much time as any other server.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use bytestring::ByteString;
use pin_project_lite::pin_project;
use tidegate_protocol::seal::Sealer;
use tidegate_service::events::{self, CallTimedOut, Event};
use tidegate_service::{BoxDoor, Call, CallerId, Outbox, Reply};
use tokio::time::{Sleep, sleep_until};
use tower::Service;

use crate::settings::ClientSettings;
use crate::time_budget::{TimeBudget, with_setting};

const MOMENT: Duration = Duration::from_millis(250);

/// Ends calls that take longer than the settings allow.
#[derive(Clone)]
pub(crate) struct InProcessDoor {
    pub(crate) inner: BoxDoor,
    pub(crate) settings: Arc<ClientSettings>,
    /// The client itself among the callers.
    pub(crate) own: CallerId,
    /// What the service seals with, if it has no keys of its own.
    pub(crate) sealer: Arc<ArcSwapOption<Sealer>>,
}

impl Service<Call> for InProcessDoor {
    type Response = Reply;
    type Error = Infallible;
    type Future = InProcessFuture;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> InProcessFuture {
        let budget = TimeBudget::of(&self.settings, self.own, &call);
        // What the service allows itself when nobody says anything is of no account here. A moment later than here, so that
        // the error is the one that names the setting.
        call.context.deadline = Some(budget.at_most() + MOMENT);
        if let Some(sealer) = self.sealer.load_full() {
            call.context.extensions.insert(sealer);
        }
        let outbox = call.context.outbox.clone();
        let tool = match self.settings.tool_timeouts.is_empty() {
            true => None,
            false => call.params.text("name"),
        };
        InProcessFuture {
            inner: self.inner.call(call),
            outbox,
            tool,
            settings: self.settings.clone(),
            budget,
            sleep: None,
        }
    }
}

pin_project! {
    /// The future of [`InProcessDoor`].
    pub(crate) struct InProcessFuture {
        #[pin]
        inner: <BoxDoor as Service<Call>>::Future,
        outbox: Option<Outbox>,
        tool: Option<ByteString>,
        settings: Arc<ClientSettings>,
        budget: TimeBudget,
        // Most calls are answered at once and never need a timer.
        #[pin]
        sleep: Option<Sleep>,
    }
}

impl Future for InProcessFuture {
    type Output = Result<Reply, Infallible>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let mut this = self.project();
        if let Poll::Ready(reply) = this.inner.poll(cx) {
            return Poll::Ready(reply);
        }
        let ends = || {
            let alive = this.outbox.as_ref().and_then(Outbox::progressed);
            tokio::time::Instant::from_std(this.budget.ends(alive))
        };
        if this.sleep.is_none() {
            this.sleep.set(Some(sleep_until(ends())));
        }
        while let Some(mut sleep) = this.sleep.as_mut().as_pin_mut() {
            if sleep.as_mut().poll(cx).is_pending() {
                break;
            }
            let later = ends();
            if later <= sleep.deadline() {
                let error = with_setting(this.budget.over(), this.settings, this.tool.as_deref());
                events::emit(&Event::CallTimedOut(CallTimedOut { error: &error }));
                return Poll::Ready(Ok(Reply::Error(error)));
            }
            sleep.reset(later);
        }
        Poll::Pending
    }
}
