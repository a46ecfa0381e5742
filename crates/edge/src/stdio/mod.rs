//! stdio: one JSON message per line, in and out.
//!
//! Several requests run at once; responses go out as they are ready. Nothing but protocol is ever written to the
//! output. The end of the input, SIGINT, SIGTERM and SIGHUP all end the connection cleanly: no new requests, a short
//! while for running ones, everything flushed.

mod connection;
mod modern_request;
mod output;
mod streams;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_service::{Door, Principal};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::edge_settings::EdgeSettings;

/// Settings of a stdio connection.
#[derive(Debug, Clone)]
pub struct Settings {
    /// What HTTP has too.
    pub edge: EdgeSettings,
    /// How long running requests may go on after the end of the input or a signal. Default 5 s.
    pub drain: Duration,
    /// How many bytes may wait for a reader that does not read, before the connection is given up. Default 64 MiB.
    pub max_backlog: usize,
    /// Who is at the other end. Default nobody in particular.
    pub principal: Principal,
    /// Whether SIGHUP does not end the connection, because it means that the configuration is to be read again. It is
    /// looked at when the signal comes. Default no.
    pub ignores_hangup: Arc<AtomicBool>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            edge: EdgeSettings::default(),
            drain: Duration::from_secs(5),
            max_backlog: 64 * 1024 * 1024,
            principal: Principal::default(),
            ignores_hangup: Arc::default(),
        }
    }
}

/// What SIGHUP is called.
const HANGUP: &str = "SIGHUP";

/// Why a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The input ended.
    Eof,
    /// A signal asked for it.
    Signal(&'static str),
    /// The other side stopped reading or went away.
    OutputClosed,
}

/// Serves the process's own standard streams until the input ends or a signal comes.
///
/// ```no_run
/// # use tidegate_service::{Call, Reply};
/// # let door = tower::service_fn(|call: Call| async move {
/// #     Ok::<_, std::convert::Infallible>(Reply::method_not_found(&call.method))
/// # });
/// # async fn run(door: impl tidegate_service::Door) {
/// use tidegate_edge::stdio::{self, Settings};
///
/// let ended = stdio::serve(door, Settings::default()).await;
/// tracing::info!(?ended, "bye");
/// # }
/// ```
pub async fn serve<D: Door>(door: D, settings: Settings) -> Ended {
    let (input, output) = streams::standard();
    // On a task of its own, because a runtime wakes its tasks more cheaply than whoever waits outside of it.
    let mut task = tokio::task::JoinSet::new();
    task.spawn(async move {
        let ignores_hangup = settings.ignores_hangup.clone();
        let signal = std::pin::pin!(async move {
            loop {
                match signals().await {
                    HANGUP if ignores_hangup.load(Ordering::Relaxed) => {}
                    signal => return signal,
                }
            }
        });
        connection::run(door, settings, input, output, async { Some(signal.await) }).await
    });
    match task.join_next().await {
        Some(Ok(ended)) => ended,
        failed => {
            tracing::error!(?failed, "the connection failed");
            Ended::OutputClosed
        }
    }
}

/// Serves any pair of streams that carry one message per line, such as a socket. Ends with the input.
pub async fn serve_streams<D: Door>(
    door: D,
    settings: Settings,
    input: impl AsyncRead + Unpin + Send,
    output: impl AsyncWrite + Unpin + Send + 'static,
) -> Ended {
    connection::run(door, settings, input, output, std::future::pending()).await
}

/// The first of the signals that end a process politely.
#[cfg(unix)]
pub async fn signals() -> &'static str {
    tokio::select! {
        name = ending_signals() => name,
        name = received(tokio::signal::unix::SignalKind::hangup(), HANGUP) => name,
    }
}

/// The same without SIGHUP, for processes that read their configuration again when that comes.
#[cfg(unix)]
pub async fn ending_signals() -> &'static str {
    use tokio::signal::unix::SignalKind;
    tokio::select! {
        name = received(SignalKind::interrupt(), "SIGINT") => name,
        name = received(SignalKind::terminate(), "SIGTERM") => name,
    }
}

#[cfg(unix)]
async fn received(kind: tokio::signal::unix::SignalKind, name: &'static str) -> &'static str {
    match tokio::signal::unix::signal(kind) {
        Ok(mut stream) => {
            stream.recv().await;
            name
        }
        Err(e) => {
            tracing::warn!(error = %e, name, "cannot listen for a signal");
            std::future::pending().await
        }
    }
}

/// The first of the signals that end a process politely.
#[cfg(not(unix))]
pub async fn signals() -> &'static str {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    "Ctrl-C"
}

/// The same, as there is nothing else.
#[cfg(not(unix))]
pub async fn ending_signals() -> &'static str {
    signals().await
}
