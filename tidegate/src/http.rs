//! Serving over Streamable HTTP.

use std::io;

pub use tidegate_edge::http::{
    Challenge, HttpService, Listeners, SessionSealer, Settings, front, router, serve as serve_front,
};
use tidegate_server::ServerDoor;
use tokio::net::{TcpListener, ToSocketAddrs};

use crate::stdio::{log_final_statistics, with_statistics};

/// Serves at `address` until SIGINT, SIGTERM or SIGHUP, then lets running requests finish and returns.
pub async fn serve(server: ServerDoor, address: impl ToSocketAddrs, settings: Settings) -> io::Result<()> {
    serve_on(server, TcpListener::bind(address).await?, settings).await
}

/// Serves on a listener that is bound already.
pub async fn serve_on(server: ServerDoor, listener: TcpListener, settings: Settings) -> io::Result<()> {
    let handle = server.handle();
    let shutdown = async move {
        let signal = tidegate_edge::stdio::signals().await;
        tracing::info!(signal, "shutting down");
        // Subscriptions end here; else they would keep their connections open.
        handle.shut_down();
    };
    let serving = tidegate_edge::http::serve_door(server.clone(), listener, settings, shutdown);
    let served = with_statistics(&server, serving).await;
    log_final_statistics(&server);
    served
}
