//! The end of the process, whatever its calls are doing.
//!
//! Serving ends in order on the first SIGINT or SIGTERM. That needs the runtime, so a thread of its own looks on: at the
//! second signal, or when the orderly end takes far too long, the process ends at once.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
#[cfg(unix)]
use std::sync::atomic::Ordering;
use std::time::Duration;

use tidegate::edge::stdio;
#[cfg(unix)]
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What the orderly end may take after running calls had their time: servers are closed, the memory is written out.
const CLOSING: Duration = Duration::from_secs(20);

/// Signals that come so soon after the first are the same one.
const TWICE: Duration = Duration::from_millis(50);

/// The signals that end serving, heard from the moment that this is made: one that comes while servers are being started
/// is not lost.
#[cfg(unix)]
pub(super) struct ShutdownSignals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

#[cfg(unix)]
impl ShutdownSignals {
    pub(super) fn listen() -> std::io::Result<ShutdownSignals> {
        Ok(ShutdownSignals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for one. SIGHUP ends serving as long as there is no configuration that it could have read again.
    pub(super) async fn wait(mut self, is_configured: Arc<AtomicBool>) {
        loop {
            tokio::select! {
                _ = self.interrupt.recv() => return,
                _ = self.terminate.recv() => return,
                _ = self.hangup.recv() => {
                    if !is_configured.load(Ordering::Relaxed) {
                        return;
                    }
                }
            }
        }
    }
}

/// The signals that end serving.
#[cfg(not(unix))]
pub(super) struct ShutdownSignals;

#[cfg(not(unix))]
impl ShutdownSignals {
    pub(super) fn listen() -> std::io::Result<ShutdownSignals> {
        Ok(ShutdownSignals)
    }

    /// Waits for one.
    pub(super) async fn wait(self, _: Arc<AtomicBool>) {
        stdio::ending_signals().await;
    }
}

/// Watches for signals from now on. `drain` is how long running calls may go on after the first.
pub(super) fn watch(drain: Duration) {
    let watching = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        match tokio::runtime::Builder::new_current_thread().enable_all().build() {
            Ok(runtime) => runtime.block_on(end_at_once(drain.saturating_add(CLOSING))),
            Err(error) => tracing::warn!(%error, "A second signal will not stop the process at once"),
        }
    });
    if let Err(error) = watching {
        tracing::warn!(%error, "A second signal will not stop the process at once");
    }
}

async fn end_at_once(orderly: Duration) {
    stdio::ending_signals().await;
    // Some who start programs send a signal twice, to the process and to its group.
    tokio::time::sleep(TWICE).await;
    let (why, code) = tokio::select! {
        signal = stdio::ending_signals() => ("second signal", if signal == "SIGINT" { 130 } else { 143 }),
        () = tokio::time::sleep(orderly) => ("shutting down took too long", 1),
    };
    tracing::error!("Stopping at once: {why}");
    tidegate::logging::flush();
    std::process::exit(code);
}

#[cfg(all(test, unix))]
mod tests {
    use std::process::{Child, Command};
    use std::time::Instant;

    use super::*;

    /// In a process of its own: all that it does is to keep its only other thread busy, as a runaway call would.
    #[test]
    fn runaway() {
        if std::env::var_os("TIDEGATE_TEST_RUNAWAY").is_none() {
            return;
        }
        watch(Duration::from_secs(600));
        loop {
            std::hint::spin_loop();
        }
    }

    fn kill(child: &Child) {
        assert!(Command::new("kill").arg(child.id().to_string()).status().unwrap().success());
    }

    #[test]
    fn the_second_signal_ends_a_process_that_is_busy() {
        let mut runaway = Command::new(std::env::current_exe().unwrap());
        runaway.args(["--exact", "commands::serve::signals::tests::runaway", "--nocapture"]);
        let mut child = runaway.env("TIDEGATE_TEST_RUNAWAY", "1").spawn().unwrap();
        // Signals that come before anybody listens end it too, and with no code: so this waits until it listens.
        let listening = || {
            let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
            let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
            u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught & (1 << 14) != 0)
        };
        let started = Instant::now();
        while cfg!(target_os = "linux") && !listening() {
            assert!(started.elapsed() < Duration::from_secs(30), "it does not listen");
            std::thread::sleep(Duration::from_millis(10));
        }
        let ended = loop {
            kill(&child);
            std::thread::sleep(Duration::from_millis(50));
            if let Some(status) = child.try_wait().unwrap() {
                break status;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "it does not end");
        };
        assert_eq!(ended.code(), Some(143));
    }
}
