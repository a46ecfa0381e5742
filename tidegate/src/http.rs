//! Serving over Streamable HTTP.

use std::io;
use std::time::Duration;

use axum::serve::ListenerExt;
use tidegate_edge::http::StallGuard;
pub use tidegate_edge::http::{Endpoint, Settings, router};
use tidegate_server::ServerDoor;
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::stdio::log_final_statistics;

/// A connection that takes no bytes for this long is closed.
const STALLED: Duration = Duration::from_secs(30);
/// How long running requests may go on after a signal.
const DRAIN: Duration = Duration::from_secs(5);

/// Serves at `address` until SIGINT, SIGTERM or SIGHUP, then lets running requests finish and returns.
pub async fn serve(server: ServerDoor, address: impl ToSocketAddrs, settings: Settings) -> io::Result<()> {
    serve_on(server, TcpListener::bind(address).await?, settings).await
}

/// Serves on a listener that is bound already.
pub async fn serve_on(server: ServerDoor, listener: TcpListener, settings: Settings) -> io::Result<()> {
    let handle = server.handle();
    let app = router(server.clone(), settings);
    // Small responses must not wait for more to come.
    let listener = listener.tap_io(|tcp| drop(tcp.set_nodelay(true)));
    let listener = StallGuard::new(listener, STALLED);
    let (stop, mut stopped) = tokio::sync::watch::channel(false);
    let on_signal = async move {
        let signal = tidegate_edge::stdio::signals().await;
        tracing::info!(signal, "shutting down");
        // Subscriptions end here; else they would keep their connections open.
        handle.shut_down();
        let _ = stop.send(true);
    };
    let serving = axum::serve(listener, app).with_graceful_shutdown(on_signal);
    let drained = async {
        let _ = stopped.wait_for(|stop| *stop).await;
        tokio::time::sleep(DRAIN).await;
    };
    let served = tokio::select! {
        served = serving.into_future() => served,
        () = drained => {
            tracing::warn!("some connections did not end in time and were closed");
            Ok(())
        }
    };
    log_final_statistics(&server);
    served
}
