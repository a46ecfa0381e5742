//! Ctrl-C, and the other signals that ask politely: the first one ends the work, the second one the process.

use std::io::IsTerminal;

use tokio_util::sync::CancellationToken;

use super::exit::Exit;
use super::failure::Failure;
use super::output;

/// Listens for signals from now on.
pub(crate) struct Interrupt(CancellationToken);

impl Interrupt {
    /// Starts to listen. Only within a Tokio runtime.
    pub(crate) fn listen() -> Interrupt {
        let token = CancellationToken::new();
        let fired = token.clone();
        tokio::spawn(async move {
            let signal = tidegate::edge::stdio::signals().await;
            tracing::debug!(signal, "asked to stop");
            fired.cancel();
            if std::io::stderr().is_terminal() {
                output::note("\nCancelling; press Ctrl-C again to stop at once.");
            }
            tidegate::edge::stdio::signals().await;
            std::process::exit(Exit::Cancelled.number().into());
        });
        Interrupt(token)
    }

    /// Does something unless a signal comes first. What was begun is then dropped, which cancels it at the server.
    pub(crate) async fn or<T>(&self, work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            () = self.0.cancelled() => Err(Failure::cancelled()),
            done = work => done,
        }
    }
}
