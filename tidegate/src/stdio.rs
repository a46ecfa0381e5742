//! Serving over the standard streams.

use std::time::Duration;

pub use tidegate_edge::stdio::{Ended, Settings};
use tidegate_server::{ServerDoor, log_periodically, log_statistics};

/// Serves the process's standard streams until the input ends or a signal comes, then logs the final statistics.
///
/// Nothing but protocol goes to stdout; send logs to stderr, as [`logging::init`](crate::logging::init) does.
pub async fn serve(server: ServerDoor, settings: Settings) -> Ended {
    let ended = with_statistics(&server, tidegate_edge::stdio::serve(server.clone(), settings)).await;
    server.handle().shut_down();
    tracing::info!(?ended, "shutting down");
    log_final_statistics(&server);
    ended
}

/// Logs the statistics every five minutes while `serving`.
pub(crate) async fn with_statistics<T>(server: &ServerDoor, serving: impl Future<Output = T>) -> T {
    tokio::select! {
        served = serving => served,
        () = log_periodically(server.handle(), Duration::from_secs(300)) => unreachable!("it never ends"),
    }
}

pub(crate) fn log_final_statistics(server: &ServerDoor) {
    log_statistics(&server.handle(), true);
}
