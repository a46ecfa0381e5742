//! [`OpenSession`]: tells that a legacy session is over, and how long it was open.

use std::sync::Arc;
use std::time::Instant;

use crate::events::{self, Event, SessionEnded};

/// A legacy session that is open. When this is dropped, it is over, and everybody who wants to know is told.
#[derive(Debug)]
pub struct OpenSession {
    server: Option<Arc<str>>,
    since: Instant,
}

impl OpenSession {
    /// One that a client has here.
    pub fn of_client() -> OpenSession {
        OpenSession { server: None, since: Instant::now() }
    }

    /// One with a server.
    pub fn with_server(server: Arc<str>) -> OpenSession {
        OpenSession { server: Some(server), since: Instant::now() }
    }
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        let ended = SessionEnded { server: self.server.as_deref(), duration: self.since.elapsed() };
        events::emit(&Event::SessionEnded(ended));
    }
}
