//! Bounded concurrency: so many calls at once, so many waiting, and the rest refused at once. Where calls wait, tenants take turns, and
//! priorities count: see [`fair_queue`](crate::fair_queue).

use std::convert::Infallible;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Method, Symbol};
use tower::{Layer, Service};

use crate::call::Call;
use crate::door::Door;
use crate::fair_queue::{Depth, Entry, FairKey, FairQueue, Place, Priority, Waiting};
use crate::journal::Stage;
use crate::noted_wait::{NotedWait, noted};
use crate::reply::Reply;

/// Says which calls are let in first. It is asked only about calls that have to wait.
pub type PriorityOf = Arc<dyn Fn(&Call) -> Priority + Send + Sync>;

/// Adds an [`Admission`].
#[derive(Clone)]
pub struct AdmissionLayer {
    queue: FairQueue,
    priority: Option<PriorityOf>,
}

impl AdmissionLayer {
    /// `concurrent` calls run at once and `waiting` more wait for their turn.
    pub fn new(concurrent: usize, waiting: usize) -> Self {
        AdmissionLayer { queue: FairQueue::new(concurrent, waiting), priority: None }
    }

    /// The same, where some calls are let in before others.
    pub fn by_priority(mut self, priority: Option<PriorityOf>) -> Self {
        self.priority = priority;
        self
    }

    /// How many calls run and wait.
    pub fn depth(&self) -> Depth {
        self.queue.depth()
    }
}

impl fmt::Debug for AdmissionLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AdmissionLayer").field(&self.queue.depth()).finish()
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        Admission { inner, queue: self.queue.clone(), priority: self.priority.clone() }
    }
}

/// Lets in as many calls as its limits allow. Where calls wait, tenants take turns.
#[derive(Clone)]
pub struct Admission<S> {
    inner: S,
    queue: FairQueue,
    priority: Option<PriorityOf>,
}

impl<S: fmt::Debug> fmt::Debug for Admission<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admission").field("inner", &self.inner).field("queue", &self.queue.depth()).finish()
    }
}

impl<S: Door> Service<Call> for Admission<S> {
    type Response = Reply;
    type Error = Infallible;
    type Future = AdmissionFuture<S>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut call: Call) -> Self::Future {
        // A subscription is not work: it must not hold a place while it is open. A call that is part of another, such as one
        // of an agent, has a place already: waiting for a second one could take forever.
        if call.method == Method::Listen || call.context.is_admitted {
            return AdmissionFuture::Running { inner: self.inner.call(call), place: None };
        }
        call.context.is_admitted = true;
        if let Some(place) = self.queue.try_enter() {
            return AdmissionFuture::Running { inner: self.inner.call(call), place: Some(place) };
        }
        let priority = self.priority.as_ref().map(|priority| priority(&call)).unwrap_or_default();
        // The deadline of the call, which is around this, ends the wait.
        match self.queue.enter(FairKey::of_tenant(&call.context.principal), priority, None) {
            Entry::Entered(place) => {
                AdmissionFuture::Running { inner: self.inner.call(call), place: Some(place) }
            }
            // Boxed: waiting is rare, and the future of every call would be as large.
            Entry::Waits(waiting) => AdmissionFuture::Waiting {
                waiting: Box::new(noted(Stage::Admission, waiting)),
                next: Some(Box::new((self.inner.clone(), call))),
            },
            Entry::Full => AdmissionFuture::Refused { reply: Some(busy()) },
        }
    }
}

/// After which time it is worth trying again.
const AGAIN: Duration = Duration::from_secs(1);

#[cold]
fn busy() -> Reply {
    let message = "The server is busy: too many calls are waiting. Try again in a moment";
    Reply::Error(Error::new(Symbol::RateLimited, message).with_retry_after(AGAIN).unexecuted())
}

pin_project! {
    /// The future of [`Admission`].
    #[project = Project]
    #[allow(missing_docs)]
    pub enum AdmissionFuture<S: Door> {
        /// Turned away.
        Refused { reply: Option<Reply> },
        /// In line.
        Waiting { waiting: Box<NotedWait<Waiting>>, next: Option<Box<(S, Call)>> },
        /// Let in; the place goes back when the future ends or is dropped.
        Running { #[pin] inner: S::Future, place: Option<Place> },
    }
}

impl<S: Door> Future for AdmissionFuture<S> {
    type Output = Result<Reply, Infallible>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let running = match self.as_mut().project() {
                Project::Refused { reply } => {
                    return Poll::Ready(Ok(reply.take().unwrap_or_else(|| Reply::Error(Error::internal()))));
                }
                Project::Running { inner, .. } => return inner.poll(cx),
                Project::Waiting { waiting, next } => {
                    // Without a deadline, only others who have a better claim end a wait.
                    let Ok(place) = ready!(Pin::new(&mut **waiting).poll(cx)) else {
                        return Poll::Ready(Ok(busy()));
                    };
                    let Some((mut door, call)) = next.take().map(|next| *next) else {
                        return Poll::Ready(Ok(Reply::Error(Error::internal())));
                    };
                    AdmissionFuture::Running { inner: door.call(call), place: Some(place) }
                }
            };
            self.set(running);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tidegate_protocol::{Json, Params};
    use tokio::sync::Semaphore;
    use tower::service_fn;

    use super::*;
    use crate::context::Context as CallContext;
    use crate::principal::Principal;

    fn call(tenant: &str) -> Call {
        let mut context = CallContext::local();
        context.principal = Principal::subject("somebody").in_tenant(tenant);
        Call::new(Method::ToolsCall, Params::empty(), context)
    }

    /// Makes calls while one is running, and says in which order they were let in.
    async fn order(tenants: &[&'static str], waiting: usize, priority: Option<PriorityOf>) -> Vec<String> {
        let (gate, served) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
        let door = {
            let (gate, served) = (gate.clone(), served.clone());
            service_fn(move |call: Call| {
                let (gate, served) = (gate.clone(), served.clone());
                async move {
                    let tenant = call.context.principal.tenant.clone().unwrap_or_default();
                    served.lock().unwrap().push(tenant.to_string());
                    gate.acquire().await.unwrap().forget();
                    Ok::<_, Infallible>(Reply::Complete(Json::empty_object()))
                }
            })
        };
        let mut door = AdmissionLayer::new(1, waiting).by_priority(priority).layer(door);
        let mut tasks = Vec::new();
        for tenant in tenants {
            tasks.push(tokio::spawn(door.call(call(tenant))));
            tokio::task::yield_now().await;
        }
        gate.add_permits(tenants.len());
        for task in tasks {
            if let Ok(Reply::Error(error)) = task.await.unwrap() {
                assert_eq!(error.symbol(), Symbol::RateLimited);
                assert!(error.is_unexecuted() && error.retry_after().is_some());
            }
        }
        served.lock().unwrap().clone()
    }

    #[tokio::test]
    async fn tenants_take_turns() {
        let served = order(&["flood", "flood", "flood", "flood", "quiet"], 10, None).await;
        assert_eq!(served, ["flood", "flood", "quiet", "flood", "flood"]);
        // A full queue has room for whoever has nobody in it.
        let served = order(&["flood", "flood", "flood", "flood", "quiet"], 2, None).await;
        assert_eq!(served, ["flood", "flood", "quiet"]);
    }

    #[tokio::test]
    async fn priorities_count_where_calls_wait() {
        let urgent: PriorityOf = Arc::new(|call| match call.context.principal.tenant.as_deref() {
            Some("urgent") => Priority::High,
            _ => Priority::Normal,
        });
        let served = order(&["a", "b", "c", "urgent"], 10, Some(urgent)).await;
        assert_eq!(served, ["a", "urgent", "b", "c"]);
    }
}
