//! [`Opening`]: the memory as a door behind which it is opened when somebody comes, and not before: one that cannot be
//! opened is down, and everything else works.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::{BoxFuture, Either};
use tidegate::ServerDoor;
use tidegate::protocol::{Error, Symbol};
use tidegate_memory::Store;
use tidegate_service::{Call, Door, Reply};
use tokio::sync::Mutex;
use tower::Service;

/// The pause after the first attempt that failed; each later one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the end waits for an attempt that is under way. Nothing can be lost by it.
const LEAVE: Duration = Duration::from_secs(2);

/// Opens a memory; this may wait.
type Open = dyn Fn() -> Result<Opened, Error> + Send + Sync;

/// A memory that is open.
pub(super) struct Opened {
    pub(super) store: Store,
    pub(super) door: ServerDoor,
}

/// A memory that is opened when it is needed. One that cannot be opened is tried again, after pauses that grow. Clones are
/// the same.
#[derive(Clone)]
pub(crate) struct Opening(Arc<Inner>);

struct Inner {
    open: Box<Open>,
    opened: OnceLock<Opened>,
    is_closed: AtomicBool,
    /// One attempt at a time.
    last: Mutex<Option<Failed>>,
}

/// An attempt that failed.
struct Failed {
    why: Error,
    pause: Duration,
    again: Instant,
}

impl Opening {
    pub(super) fn new(open: impl Fn() -> Result<Opened, Error> + Send + Sync + 'static) -> Opening {
        let open = Box::new(open);
        Opening(Arc::new(Inner {
            open,
            opened: OnceLock::new(),
            is_closed: AtomicBool::default(),
            last: Mutex::default(),
        }))
    }

    /// Opens it, unless that was done, or failed just now. The error is for the operator: it says where the memory is.
    pub(crate) async fn open(&self) -> Result<(), Error> {
        let opening = self.clone();
        // A task of its own: a caller who gives up does not take it away from the others.
        let attempt = tokio::spawn(async move { opening.attempt().await });
        attempt.await.unwrap_or_else(|_| Err(Error::internal()))
    }

    async fn attempt(self) -> Result<(), Error> {
        let mut last = self.0.last.lock().await;
        if self.0.is_closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        if self.0.opened.get().is_some() {
            return Ok(());
        }
        if let Some(failed) = last.as_ref().filter(|failed| Instant::now() < failed.again) {
            return Err(failed.why.clone());
        }
        let inner = self.0.clone();
        let opened = tokio::task::spawn_blocking(move || (inner.open)()).await;
        match opened.unwrap_or_else(|_| Err(Error::internal())) {
            Ok(opened) if self.0.is_closed.load(Ordering::SeqCst) => {
                opened.store.close().await;
                Err(closed())
            }
            Ok(opened) => {
                let _ = self.0.opened.set(opened);
                *last = None;
                Ok(())
            }
            Err(why) => {
                let before = last.take();
                if before.as_ref().is_none_or(|before| before.why.message() != why.message()) {
                    tracing::error!("{}", why.message());
                }
                let pause = before.map_or(PAUSE, |before| (before.pause * 2).min(LONGEST_PAUSE));
                *last = Some(Failed { why: why.clone(), pause, again: Instant::now() + pause });
                Err(why)
            }
        }
    }

    /// Ends it for good: whatever was acknowledged is where it belongs afterwards.
    pub(crate) async fn close(self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        // An attempt that ends later sees that it is too late.
        let _ = tokio::time::timeout(LEAVE, self.0.last.lock()).await;
        if let Some(opened) = self.0.opened.get() {
            opened.store.close().await;
        }
    }
}

fn closed() -> Error {
    Error::new(Symbol::Unavailable, "The memory is closed").unexecuted()
}

/// What callers are told: where the memory is kept is none of their business.
fn shut() -> Error {
    let what = "The memory cannot be opened; the log of the gateway says why";
    Error::new(Symbol::Unavailable, what).unexecuted()
}

impl Service<Call> for Opening {
    type Response = Reply;
    type Error = Infallible;
    type Future =
        Either<<ServerDoor as Service<Call>>::Future, BoxFuture<'static, Result<Reply, Infallible>>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        if let Some(opened) = self.0.opened.get() {
            return Either::Left(opened.door.answer(call));
        }
        let opening = self.clone();
        Either::Right(Box::pin(async move {
            let tried = opening.open().await;
            match opening.0.opened.get() {
                Some(opened) if tried.is_ok() => opened.door.answer(call).await,
                _ => Ok(Reply::Error(shut())),
            }
        }))
    }
}
