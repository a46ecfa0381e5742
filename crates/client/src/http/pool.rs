//! [`Pool`]: the connections to one origin.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use ::http::{Request, response};
use bytes::Bytes;
use http_body_util::Full;
use tidegate_protocol::Error;
use tokio::sync::Notify;

use super::connect::Connector;
use super::connection::{Flow, HttpConnection};
use super::failure;

/// A connection that nobody used for this long is closed. Many servers (uvicorn, Node.js) close theirs after five seconds,
/// and a request that is sent just then is lost: nobody knows whether it was read, so it cannot be sent again.
const MAX_IDLE_TIME: Duration = Duration::from_secs(4);
/// How often the idle connections are looked through.
const SWEEP: Duration = Duration::from_secs(15);

/// Open connections that nobody uses, and how to get more. The one used last is used next, so that those that are too
/// many grow old and go.
pub(super) struct Pool {
    connector: Connector,
    max_idle: usize,
    idle: Mutex<Vec<Idle>>,
    /// Whether a task looks through the idle connections.
    swept: AtomicBool,
    /// Makes that task look at once.
    look: Arc<Notify>,
    /// Whether no connection is kept any more.
    closed: AtomicBool,
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.look.notify_one();
    }
}

struct Idle {
    connection: Box<HttpConnection>,
    since: Instant,
}

impl Pool {
    pub(super) fn new(connector: Connector, max_idle: usize) -> Arc<Pool> {
        let (swept, closed) = (AtomicBool::new(false), AtomicBool::new(false));
        Arc::new(Pool { connector, max_idle, idle: Mutex::default(), swept, look: Arc::default(), closed })
    }

    /// Whose connections they are, for error messages.
    pub(super) fn host(&self) -> &Arc<str> {
        self.connector.host()
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// Sends a request and waits for the head of the answer.
    pub(super) async fn exchange(
        self: &Arc<Self>,
        mut request: Request<Full<Bytes>>,
    ) -> Result<(response::Parts, Flow), Error> {
        loop {
            let (mut connection, fresh) = match self.take() {
                Some(connection) => (connection, false),
                // In a box, so that requests over an open connection do not carry the state of connecting around.
                None => (Box::pin(self.connector.open()).await?, true),
            };
            match connection.send(request).await {
                Ok(answer) => {
                    let (head, body) = answer.into_parts();
                    return Ok((head, Flow::new(body, connection, self.clone())));
                }
                Err(mut failed) => match failed.take_message() {
                    // The server had closed the connection before anything was sent: no harm done.
                    Some(unsent) if !fresh => request = unsent,
                    Some(_) => return Err(failure::lost(self.host(), failed.error()).unexecuted()),
                    None => return Err(failure::lost(self.host(), failed.error())),
                },
            }
        }
    }

    /// An idle connection that is still open.
    fn take(&self) -> Option<Box<HttpConnection>> {
        loop {
            let Idle { connection, since } = self.idle().pop()?;
            // One that the server has closed meanwhile says so before anything is sent over it.
            if since.elapsed() < MAX_IDLE_TIME && connection.is_ready() {
                return Some(connection);
            }
        }
    }

    /// Closes the connections that nobody uses, and keeps none from now on.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.rest();
    }

    /// Closes the connections that nobody uses.
    pub(super) fn rest(&self) {
        self.idle().clear();
        self.look.notify_one();
    }

    /// Takes a connection back, if it is any good.
    pub(super) fn put(self: &Arc<Self>, mut connection: Box<HttpConnection>) {
        // Most are ready by now; the others may only have to take note of the end of the answer.
        if !connection.is_ready() && !connection.is_idle() {
            return;
        }
        let mut idle = self.idle();
        if idle.len() < self.max_idle && !self.closed.load(Ordering::Acquire) {
            idle.push(Idle { connection, since: Instant::now() });
            drop(idle);
            self.start_sweeping();
        }
    }

    /// Idle connections have no task of their own that would notice their end; one task does it for all, as long as
    /// there are any.
    fn start_sweeping(self: &Arc<Self>) {
        if self.swept.load(Ordering::Relaxed) || self.swept.swap(true, Ordering::AcqRel) {
            return;
        }
        let (mut sweeper, look) = (Sweeper(Arc::downgrade(self)), self.look.clone());
        // Outside of a runtime the sweeper is dropped at once, and the next chance is taken.
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                loop {
                    let _ = tokio::time::timeout(SWEEP, look.notified()).await;
                    if sweeper.sweep().is_none() {
                        break;
                    }
                }
            });
        }
    }

    #[cfg(test)]
    pub(super) fn idle_count(&self) -> usize {
        self.idle().len()
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Looks through the idle connections. When it goes, however that comes, another can start.
struct Sweeper(Weak<Pool>);

impl Sweeper {
    /// Closes connections that are old or that the server has closed. `None` if nothing is left to watch.
    fn sweep(&mut self) -> Option<()> {
        let pool = self.0.upgrade()?;
        let mut idle = pool.idle();
        idle.retain_mut(|one| one.since.elapsed() < MAX_IDLE_TIME && one.connection.is_idle());
        if idle.is_empty() {
            // While the lock is held, so that whoever puts the next one sees it; and only once, because that may start
            // another sweeper.
            pool.swept.store(false, Ordering::Release);
            self.0 = Weak::new();
            return None;
        }
        Some(())
    }
}

impl Drop for Sweeper {
    fn drop(&mut self) {
        if let Some(pool) = self.0.upgrade() {
            pool.swept.store(false, Ordering::Release);
        }
    }
}
