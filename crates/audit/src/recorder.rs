//! [`AuditRecorder`]: what is called where things happen. It writes the members of a record into the queue, and nothing waits.

use std::cell::RefCell;
use std::sync::Arc;

use tidegate_protocol::Symbol;
use tidegate_service::epoch_ms;
use tidegate_service::events::{CallEnded, Event, Kind as EventKind, Recorder};

use crate::kind::Kind;
use crate::queue::Queue;
use crate::record;

/// Records calls, refused logins and refused requests.
#[derive(Debug)]
pub struct AuditRecorder {
    queue: Arc<Queue>,
}

thread_local! {
    /// Where a record is written before it goes into the queue, so that the queue is locked for a moment only.
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

impl AuditRecorder {
    pub(crate) fn new(queue: Arc<Queue>) -> AuditRecorder {
        AuditRecorder { queue }
    }

    #[cfg(test)]
    pub(crate) fn queue(&self) -> &Queue {
        &self.queue
    }

    fn push(&self, kind: Kind, write: impl FnOnce(&mut Vec<u8>)) {
        // A thread that is ending has none any more.
        let mut own = SCRATCH.try_with(RefCell::take).unwrap_or_default();
        own.clear();
        write(&mut own);
        self.queue.push(epoch_ms(), kind, &own);
        let _ = SCRATCH.try_with(|scratch| scratch.replace(own));
    }
}

/// Whether a call was refused because the process can take no more.
fn is_overload(call: &CallEnded<'_>) -> bool {
    call.server.is_none() && call.error().as_deref() == Some(Symbol::Overloaded.as_str())
}

impl Recorder for AuditRecorder {
    fn wants(&self, kind: EventKind) -> bool {
        matches!(
            kind,
            EventKind::CallEnded
                | EventKind::LoginRefused
                | EventKind::HostRefused
                | EventKind::PolicyChanged
                | EventKind::Operated
        )
    }

    fn record(&self, event: &Event<'_>) {
        match event {
            // What was refused because nothing can be recorded must not take the room of what was not.
            Event::CallEnded(call) if self.queue.is_crowded() && is_overload(call) => self.queue.leave_out(),
            Event::CallEnded(call) => self.push(Kind::Call, |out| record::call(out, call)),
            // Every one of them, also those that the log sums up.
            Event::LoginRefused(login) => {
                self.push(Kind::LoginRefused, |out| record::login_refused(out, login));
            }
            Event::PolicyChanged(policy) => self.push(Kind::Policy, |out| record::policy(out, policy)),
            Event::Operated(it) => self.push(Kind::Operation, |out| record::operation(out, it)),
            Event::HostRefused(host) => self.push(Kind::HostRefused, |out| record::host_refused(out, host)),
            _ => {}
        }
    }
}
