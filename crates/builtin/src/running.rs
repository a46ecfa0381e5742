//! [`Running`]: a server of the program as a door behind which it is opened when somebody comes, and not before: one that
//! cannot be opened is down, and everything else works.

use std::convert::Infallible;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use tidegate_protocol::{Error, Symbol};
use tidegate_service::{Call, Door, Reply};
use tokio::sync::Mutex;
use tower::Service;

use crate::erased::Builtin;
use crate::opened::Opened;
use crate::server::Host;
use crate::settings::BuiltinSettings;

/// The pause after the first attempt that failed; each later one is twice as long.
const PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// How long the end waits for an attempt that is under way. Nothing can be lost by it.
const LEAVE: Duration = Duration::from_secs(2);

/// A server that is opened when it is needed. One that cannot be opened is tried again, after pauses that grow. Clones are
/// the same.
#[derive(Clone)]
pub struct Running(Arc<Lifecycle>);

/// What all clones share: what is opened, and how far that has come.
struct Lifecycle {
    builtin: Builtin,
    /// What the configuration calls it.
    server: String,
    settings: BuiltinSettings,
    host: Host,
    opened: OnceLock<Opened>,
    is_closed: AtomicBool,
    /// One attempt at a time.
    last: Mutex<Option<FailedAttempt>>,
}

/// An attempt that failed.
struct FailedAttempt {
    why: Error,
    pause: Duration,
    again: Instant,
}

impl Running {
    pub(crate) fn new(builtin: Builtin, server: &str, settings: BuiltinSettings, host: Host) -> Running {
        Running(Arc::new(Lifecycle {
            builtin,
            server: server.to_owned(),
            settings,
            host,
            opened: OnceLock::new(),
            is_closed: AtomicBool::default(),
            last: Mutex::default(),
        }))
    }

    /// Opens it, unless that was done, or failed just now. The error is for the operator: it may say where
    /// something is.
    pub async fn open(&self) -> Result<(), Error> {
        let running = self.clone();
        // A task of its own: a caller who gives up does not take it away from the others.
        let attempt = tokio::spawn(async move { running.attempt().await });
        attempt.await.unwrap_or_else(|_| Err(Error::internal()))
    }

    async fn attempt(self) -> Result<(), Error> {
        let mut last = self.0.last.lock().await;
        if self.0.is_closed.load(Ordering::SeqCst) {
            return Err(self.0.closed());
        }
        if self.0.opened.get().is_some() {
            return Ok(());
        }
        if let Some(failed) = last.as_ref().filter(|failed| Instant::now() < failed.again) {
            return Err(failed.why.clone());
        }
        let lifecycle = self.0.clone();
        let opened = tokio::task::spawn_blocking(move || lifecycle.open()).await;
        match opened.unwrap_or_else(|_| Err(Error::internal())) {
            Ok(opened) if self.0.is_closed.load(Ordering::SeqCst) => {
                opened.close().await;
                Err(self.0.closed())
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
                *last = Some(FailedAttempt { why: why.clone(), pause, again: Instant::now() + pause });
                Err(why)
            }
        }
    }

    /// Ends it for good: whatever was acknowledged is where it belongs afterwards.
    pub async fn close(self) {
        self.0.is_closed.store(true, Ordering::SeqCst);
        // An attempt that ends later sees that it is too late.
        let _ = tokio::time::timeout(LEAVE, self.0.last.lock()).await;
        if let Some(opened) = self.0.opened.get() {
            opened.close().await;
        }
    }
}

impl Lifecycle {
    fn open(&self) -> Result<Opened, Error> {
        self.builtin.open(&self.settings, self.host.clone()).map_err(|error| {
            Error::new(error.symbol(), format!("server {:?}: {}", self.server, error.message()))
        })
    }

    fn closed(&self) -> Error {
        Error::new(Symbol::Unavailable, format!("The {} is closed", self.builtin.name())).unexecuted()
    }

    /// What callers are told: where something is kept is none of their business.
    fn shut(&self) -> Error {
        let what = format!("The {} cannot be opened; the log of the gateway says why", self.builtin.name());
        Error::new(Symbol::Unavailable, what).unexecuted()
    }
}

impl fmt::Debug for Running {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Running({})", self.0.builtin.name())
    }
}

impl Service<Call> for Running {
    type Response = Reply;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Reply, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: Call) -> Self::Future {
        if let Some(opened) = self.0.opened.get() {
            return opened.door.answer(call);
        }
        let running = self.clone();
        Box::pin(async move {
            let tried = running.open().await;
            match running.0.opened.get() {
                Some(opened) if tried.is_ok() => opened.door.answer(call).await,
                _ => Ok(Reply::Error(running.0.shut())),
            }
        })
    }
}
