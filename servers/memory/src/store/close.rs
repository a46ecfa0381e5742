//! The end of a store: what was acknowledged stands in the one file, and nothing holds it any more.

use std::time::Duration;

use tokio::time::timeout;

use super::{READERS, Store};

/// How long those who read may take to finish.
const READS: Duration = Duration::from_secs(2);
/// How long what waits to be written, and the end itself, may take.
const WITHIN: Duration = Duration::from_secs(10);

impl Store {
    /// Ends it for all handles: what waits is written, a file is made whole again, so that a copy of it alone has
    /// everything, and all connections are closed. Who calls later is told that the memory is closed.
    ///
    /// It takes some seconds at most. A store that is dropped instead ends in a thread of its own, for which the end of
    /// the process does not wait.
    pub async fn close(&self) {
        // Who wants to read now waits behind this, and then finds it closed.
        let readers = timeout(READS, self.0.read_permits.acquire_many(READERS as u32)).await;
        self.0.read_permits.close();
        self.0.idle().clear();
        drop(readers);
        // The thread ends when nobody can send it anything, after all that was sent.
        self.0.jobs().take();
        let mut writer = self.0.writer.clone();
        if timeout(WITHIN, writer.changed()).await.is_err() {
            tracing::warn!("the memory was still busy at its end: its newest changes stay beside the file");
        }
    }

    /// Whether it was ended.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.read_permits.is_closed()
    }
}
