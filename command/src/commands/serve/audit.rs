//! [`Trail`]: the audit trail of a gateway that is served, if the configuration has one.

use std::sync::Arc;
use std::time::Duration;

use tidegate_audit::Audit;
use tidegate_config::Settings;
use tidegate_gateway::GatewayBuilder;
use tidegate_service::events::{self, Recorder};

use crate::commands::failure::Failure;

/// How long writing may take at the end.
const CLOSING: Duration = Duration::from_secs(5);

/// The audit trail. It is closed when this is dropped.
pub(super) struct Trail(Option<(Audit, Arc<dyn Recorder>)>);

impl Trail {
    /// Begins or continues it. From now on, what happens is recorded.
    pub(super) fn start(settings: &Settings, is_stdio: bool) -> Result<Trail, Failure> {
        let Some(audit) = &settings.audit else { return Ok(Trail(None)) };
        if audit.stdout && is_stdio {
            return Err(Failure::usage(
                "[audit] writes to standard output, which belongs to the client with --stdio",
            )
            .advise("Use file or syslog instead of stdout = true."));
        }
        let audit = Audit::start(audit, env!("CARGO_PKG_VERSION")).map_err(Failure::usage)?;
        let recorder: Arc<dyn Recorder> = audit.recorder();
        events::add(recorder.clone());
        Ok(Trail(Some((audit, recorder))))
    }

    /// Has calls refused while they cannot be recorded, if that is wanted.
    pub(super) fn guard(&self, builder: GatewayBuilder) -> GatewayBuilder {
        match self.0.as_ref().and_then(|(audit, _)| audit.check()) {
            Some(check) => builder.check(check),
            None => builder,
        }
    }

    /// Writes the rest of it.
    pub(super) async fn close(self) {
        // What still waits is written by threads that this one waits for.
        let _ = tokio::task::spawn_blocking(move || drop(self)).await;
    }
}

impl Drop for Trail {
    fn drop(&mut self) {
        if let Some((audit, recorder)) = self.0.take() {
            events::remove(&recorder);
            audit.close(CLOSING);
        }
    }
}
