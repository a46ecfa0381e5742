//! [`Awaited`]: a task that its caller knows nothing of.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tidegate_protocol::{Error, Id, Method};

use super::super::session::UpstreamSession;
use super::shape::id_params;
use crate::ticket::{Sink, Ticket};
use crate::time_budget::TimeBudget;

/// How long a server may take to cancel a task that nobody wants any more.
const CANCELLED: Duration = Duration::from_secs(5);

/// A task that a call waits for. Unless it has ended, it is cancelled when the call goes away.
pub(crate) struct Awaited {
    session: Arc<UpstreamSession>,
    /// The server's own id.
    pub(crate) id: String,
    /// The request that made the task.
    token: Id,
    pub(crate) ended: bool,
    /// How often its result was asked for.
    asked: u32,
}

/// How often the result of one task is asked for: the stream on which it comes may be cut off.
const MAX_ASKED: u32 = 4;

impl Awaited {
    pub(crate) fn new(session: &Arc<UpstreamSession>, id: String, token: Id) -> Awaited {
        Awaited { session: session.clone(), id, token, ended: false, asked: 0 }
    }

    /// Asks for the result, which comes when the task has ended; its questions come to the same ticket. `None` if that
    /// was done often enough.
    pub(crate) fn ask_for_result(&mut self, sink: Sink) -> Option<Result<Arc<Ticket>, Error>> {
        self.asked += 1;
        if self.asked > MAX_ASKED {
            return None;
        }
        Some(ask_for_result(&self.session, &self.id, sink).inspect(|ticket| {
            self.session.connection.router.related.follow(&self.id, &self.token, ticket);
        }))
    }
}

/// Sends `tasks/result`.
pub(super) fn ask_for_result(session: &UpstreamSession, id: &str, sink: Sink) -> Result<Arc<Ticket>, Error> {
    let params = id_params(id);
    let write = |out: &mut Vec<u8>, _: &Id| out.extend_from_slice(params.as_str().as_bytes());
    session.connection.send(Method::TasksResult, sink, params.len(), write)
}

impl Drop for Awaited {
    fn drop(&mut self) {
        self.session.connection.router.related.forget(&self.id);
        if !self.ended {
            cancel_soon(&self.session, &self.id);
        }
        self.session.touch();
    }
}

/// Cancels a task without waiting for it.
pub(super) fn cancel_soon(session: &Arc<UpstreamSession>, id: &str) {
    if !session.server_info.has_capability("tasks.cancel") || !session.connection.is_open() {
        return;
    }
    let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
    let (session, params) = (session.clone(), id_params(id));
    runtime.spawn(async move {
        let within = TimeBudget::new(Instant::now(), CANCELLED, false, None);
        if let Err(error) = session.ask(Method::TasksCancel, &params, &within).await {
            tracing::debug!(server = %session.connection.router.name, %error, "a task could not be cancelled");
        }
    });
}
