//! [`Timer`]: something that happens later, unless it is dropped before.

use std::time::Duration;

use tokio::task::AbortHandle;

/// Dropping it stops the clock.
pub(crate) struct Timer(AbortHandle);

impl Timer {
    /// Does something after a time. Only within a Tokio runtime.
    pub(crate) fn after(time: Duration, then: impl FnOnce() + Send + 'static) -> Timer {
        let task = tokio::spawn(async move {
            tokio::time::sleep(time).await;
            then();
        });
        Timer(task.abort_handle())
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        self.0.abort();
    }
}
