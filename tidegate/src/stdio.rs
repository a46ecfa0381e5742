//! Serving over the standard streams.

pub use tidegate_edge::stdio::{Ended, Settings};
use tidegate_server::ServerDoor;

/// Serves the process's standard streams until the input ends or a signal comes, then logs the final statistics.
///
/// Nothing but protocol goes to stdout; send logs to stderr, as [`logging::init`](crate::logging::init) does.
pub async fn serve(server: ServerDoor, settings: Settings) -> Ended {
    let ended = tidegate_edge::stdio::serve(server.clone(), settings).await;
    server.handle().shut_down();
    tracing::info!(?ended, "shutting down");
    log_final_statistics(&server);
    ended
}

pub(crate) fn log_final_statistics(server: &ServerDoor) {
    tracing::info!(statistics = %server.handle().stats().to_json(), "final statistics");
}
