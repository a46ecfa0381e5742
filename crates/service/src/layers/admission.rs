//! Bounded concurrency: so many calls at once, so many waiting, and the rest refused at once.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;
use tidegate_protocol::{Error, Method, Symbol};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tower::{Layer, Service};

use crate::call::Call;
use crate::door::Door;
use crate::reply::Reply;

/// Adds an [`Admission`].
#[derive(Debug, Clone)]
pub struct AdmissionLayer {
    gate: Arc<Gate>,
}

#[derive(Debug)]
struct Gate {
    running: Arc<Semaphore>,
    waiting: AtomicUsize,
    max_waiting: usize,
}

impl AdmissionLayer {
    /// `concurrent` calls run at once and `waiting` more wait for their turn.
    pub fn new(concurrent: usize, waiting: usize) -> Self {
        let gate = Gate {
            running: Arc::new(Semaphore::new(concurrent)),
            waiting: AtomicUsize::new(0),
            max_waiting: waiting,
        };
        AdmissionLayer { gate: Arc::new(gate) }
    }
}

impl<S> Layer<S> for AdmissionLayer {
    type Service = Admission<S>;

    fn layer(&self, inner: S) -> Admission<S> {
        Admission { inner, gate: self.gate.clone() }
    }
}

/// Lets in as many calls as its limits allow.
#[derive(Debug, Clone)]
pub struct Admission<S> {
    inner: S,
    gate: Arc<Gate>,
}

type Acquire = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

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
            return AdmissionFuture::Running { inner: self.inner.call(call), permit: None };
        }
        call.context.is_admitted = true;
        if let Ok(permit) = self.gate.running.clone().try_acquire_owned() {
            return AdmissionFuture::Running { inner: self.inner.call(call), permit: Some(permit) };
        }
        match QueueSlot::take(&self.gate) {
            Some(slot) => AdmissionFuture::Waiting {
                acquire: Box::pin(self.gate.running.clone().acquire_owned()),
                // Boxed: waiting is rare, and the future of every call would be as large.
                next: Some(Box::new((self.inner.clone(), call))),
                slot: Some(slot),
            },
            None => {
                let message = "The server is busy: too many calls are waiting. Try again in a moment";
                let error = Error::new(Symbol::RateLimited, message);
                AdmissionFuture::Refused { reply: Some(Reply::Error(error)) }
            }
        }
    }
}

/// A place in the waiting line, given back when dropped.
pub struct QueueSlot(Arc<Gate>);

impl QueueSlot {
    fn take(gate: &Arc<Gate>) -> Option<QueueSlot> {
        if gate.waiting.fetch_add(1, Ordering::Relaxed) >= gate.max_waiting {
            gate.waiting.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        Some(QueueSlot(gate.clone()))
    }
}

impl Drop for QueueSlot {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

pin_project! {
    /// The future of [`Admission`].
    #[project = Project]
    #[allow(missing_docs)]
    pub enum AdmissionFuture<S: Door> {
        /// Turned away.
        Refused { reply: Option<Reply> },
        /// In line.
        Waiting { acquire: Acquire, next: Option<Box<(S, Call)>>, slot: Option<QueueSlot> },
        /// Let in; the permit goes back when the future ends or is dropped.
        Running { #[pin] inner: S::Future, permit: Option<OwnedSemaphorePermit> },
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
                Project::Waiting { acquire, next, .. } => {
                    let permit = ready!(acquire.as_mut().poll(cx)).ok();
                    let Some((mut door, call)) = next.take().map(|next| *next) else {
                        return Poll::Ready(Ok(Reply::Error(Error::internal())));
                    };
                    AdmissionFuture::Running { inner: door.call(call), permit }
                }
            };
            self.set(running);
        }
    }
}
